"""The ASGI application: one endpoint for all operations, and a few pages such as `/health`."""

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


def build_app(state: ServerState) -> RequestMiddleware:
    return RequestMiddleware(state, Endpoint(state), _pages(state))


def _pages(state: ServerState) -> Starlette:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        state.open()
        yield
        state.close()

    app = Starlette(
        routes=[
            Route("/health", pages.health),
            Route("/ready", pages.ready),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi_document),
            Route("/docs", pages.api_reference),
            Route("/", pages.api_reference),
        ],
        exception_handlers={HTTPException: _routing_error},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # published clients do not follow redirects
    app.state.server = state
    return app


async def _routing_error(request: Request, error: Any) -> Response:
    """Encode Starlette's 404 and 405 like all other errors."""
    converted: HoldfastError = NotFoundError("route", request.url.path)
    if error.status_code == MethodNotAllowedError.status:
        converted = MethodNotAllowedError(f"{request.method} is not allowed here; use GET", allow="GET")
    response = responses.failure(converted)
    headers = {name.decode(): value.decode() for name, value in response.headers}
    return Response(response.body, response.status, headers, media_type="application/json")
