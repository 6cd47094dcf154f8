"""The server as an ASGI application: pages for people and machines, and one endpoint over the table of operations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from holdfast.errors import NotFoundError
from holdfast.http import answers, pages
from holdfast.http.endpoint import Endpoint
from holdfast.http.routes import MethodNotAllowedError
from holdfast.http.service import Service
from holdfast.http.surface import Surface


def build(service: Service) -> Starlette:
    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        service.open()
        yield
        service.close()

    app = Starlette(
        routes=[
            Mount("/api/v1", app=Endpoint(service)),
            Route("/health", pages.health),
            Route("/ready", pages.ready),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi_document),
            Route("/docs", pages.reference),
            Route("/", pages.reference),
        ],
        middleware=[Middleware(Surface, service=service)],
        exception_handlers={HTTPException: _not_here},
        lifespan=life,
    )
    app.router.redirect_slashes = False  # clients of this protocol follow no redirects
    app.state.service = service
    return app


async def _not_here(request: Request, error: Any) -> Response:
    """What Starlette has no page for, in our envelope."""
    if error.status_code == MethodNotAllowedError.status:
        refused: Any = MethodNotAllowedError(f"{request.method} is not possible here; use GET", allow="GET")
    else:
        refused = NotFoundError("route", request.url.path)
    answer = answers.failure(refused)
    return Response(answer.body, answer.status, {name.decode(): value.decode() for name, value in answer.headers})
