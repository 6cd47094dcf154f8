"""Pages that are not operations: health, readiness, metrics, and the API reference."""

import asyncio
import functools
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import holdfast
from holdfast.config import AuthMode
from holdfast.errors import HoldfastError, PermissionDeniedError
from holdfast.http import openapi, responses
from holdfast.http.auth import AuthenticatedCaller
from holdfast.http.server_state import ServerState
from holdfast.http.telemetry.readiness import OK

MAX_IDENTIFY_SECONDS = 1.0
"""How long `/health` waits for the database to name the caller. The server is healthy without it."""


async def health(request: Request) -> Response:
    """Report that the server runs. With a valid key, the body also names the caller."""
    state = _state(request)
    body: dict[str, Any] = {
        "status": "ok",
        "healthy": True,
        "version": holdfast.__version__,
        "auth_mode": state.authenticator.mode,
    }
    try:
        async with asyncio.timeout(MAX_IDENTIFY_SECONDS):
            caller = await _caller(request)
    except (HoldfastError, TimeoutError):
        caller = None
    if caller is not None and not caller.is_operator:
        principal = caller.principal
        body |= {"account_id": principal.account_id, "user_id": principal.user_id, "role": principal.role}
    return _json(200, body)


async def ready(request: Request) -> Response:
    """Report whether requests can be served now. This reads and writes the database."""
    state = _state(request)
    storage = await state.readiness.check()
    if storage != OK:
        return _json(503, {"status": "not_ready", "checks": {"storage": storage}})
    if state.notifier.is_closing:
        return _json(503, {"status": "not_ready", "checks": {"storage": "ok", "server": "stopping"}})
    return _json(200, {"status": "ready", "checks": {"storage": "ok"}})


async def metrics(request: Request) -> Response:
    """Return the metrics of all tenants. Only the operator may see them."""
    state = _state(request)
    try:
        caller = await _caller(request)
        if caller.principal.role != "root":
            raise PermissionDeniedError("metrics are for the operator only; send the root key")
        tasks = await state.executor.in_thread(state.engine.count_tasks)
    except HoldfastError as error:
        response = responses.failure(error)
        return Response(response.body, response.status, media_type="application/json")
    return Response(state.metrics.render(tasks), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi_document(request: Request) -> Response:
    return Response(_document(_state(request).authenticator.mode), media_type="application/json")


async def api_reference(_request: Request) -> Response:
    return Response(
        _page(),
        media_type="text/html; charset=utf-8",
        headers={"content-security-policy": openapi.CONTENT_SECURITY_POLICY},
    )


@functools.cache
def _document(mode: AuthMode) -> bytes:
    return openapi.document(holdfast.__version__, mode)


@functools.cache
def _page() -> str:
    return (resources.files("holdfast.http") / "page.html").read_text("utf-8")


def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


async def _caller(request: Request) -> AuthenticatedCaller:
    return await _state(request).authenticator.identify(dict(request.scope["headers"]))


def _json(status: int, value: Any) -> Response:
    return Response(responses.encode_json(value), status, media_type="application/json")
