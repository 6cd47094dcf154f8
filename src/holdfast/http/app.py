"""The server as an ASGI application: one endpoint over the table of operations, and pages beside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.errors import HoldfastError, MethodNotAllowedError, NotFoundError
from holdfast.http import pages, responses
from holdfast.http.endpoint import Endpoint
from holdfast.http.request_middleware import RequestMiddleware
from holdfast.http.server_state import ServerState


def build(state: ServerState) -> RequestMiddleware:
    return RequestMiddleware(state, Endpoint(state), _pages(state))


def _pages(state: ServerState) -> Starlette:
    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        state.open()
        yield
        state.close()

    app = Starlette(
        routes=[
            Route("/health", pages.health),
            Route("/ready", pages.ready),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi_document),
            Route("/docs", pages.reference),
            Route("/", pages.reference),
        ],
        exception_handlers={HTTPException: _not_here},
        lifespan=life,
    )
    app.router.redirect_slashes = False  # clients of this protocol follow no redirects
    app.state.server = state
    return app


async def _not_here(request: Request, error: Any) -> Response:
    """What there is no page for, in our envelope."""
    refused: HoldfastError = NotFoundError("route", request.url.path)
    if error.status_code == MethodNotAllowedError.status:
        refused = MethodNotAllowedError(f"{request.method} is not possible here; use GET", allow="GET")
    answer = responses.failure(refused)
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, media_type="application/json")
