"""What stands outside the table: health, readiness, metrics, and the description of the API."""

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
from holdfast.http.auth import Caller
from holdfast.http.server_state import ServerState
from holdfast.model.identity import Principal
from holdfast.ops.system import CheckHealth

NOBODY = Principal("default", "nobody", "user")


async def health(request: Request) -> Response:
    """Answers whatever the key; a key that works is told whose it is."""
    state = _state(request)
    told: dict[str, Any] = {
        "status": "ok",
        "healthy": True,
        "version": holdfast.__version__,
        "auth_mode": state.authenticator.mode,
    }
    try:
        caller = await _caller(request)
    except HoldfastError:
        caller = None
    if caller is not None and not caller.operator:
        principal = caller.principal
        told |= {"account_id": principal.account_id, "user_id": principal.user_id, "role": principal.role}
    return _json(200, told)


async def ready(request: Request) -> Response:
    """Whether requests can be served now: the database is asked."""
    state = _state(request)
    try:
        async with asyncio.timeout(state.settings.request_timeout_seconds):
            await state.executor.call(NOBODY, CheckHealth, {}, strict=True, size=0)
    except HoldfastError:
        state.log.failure("storage is away")
        return _json(503, {"status": "not_ready", "checks": {"storage": "it cannot be used; the log tells more"}})
    except TimeoutError:
        return _json(503, {"status": "not_ready", "checks": {"storage": "it does not answer"}})
    if state.hub.closing:
        return _json(503, {"status": "not_ready", "checks": {"storage": "ok", "server": "it is stopping"}})
    return _json(200, {"status": "ready", "checks": {"storage": "ok"}})


async def metrics(request: Request) -> Response:
    """For the operator: what all tenants together do is not for each of them."""
    state = _state(request)
    try:
        caller = await _caller(request)
        if caller.principal.role != "root":
            raise PermissionDeniedError("metrics are the operator's; send the root key")
        tasks = await state.executor.in_thread(state.engine.count_tasks)
    except HoldfastError as error:
        answer = responses.failure(error)
        return Response(answer.body, answer.status, media_type="application/json")
    return Response(state.metrics.text(tasks), media_type="text/plain; version=0.0.4; charset=utf-8")


async def openapi_document(request: Request) -> Response:
    return Response(_document(_state(request).authenticator.mode), media_type="application/json")


async def reference(_request: Request) -> Response:
    return Response(_page(), media_type="text/html; charset=utf-8", headers={"content-security-policy": openapi.POLICY})


@functools.cache
def _document(mode: AuthMode) -> bytes:
    return openapi.document(holdfast.__version__, mode)


@functools.cache
def _page() -> str:
    return (resources.files("holdfast.http") / "page.html").read_text("utf-8")


def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


async def _caller(request: Request) -> Caller:
    return await _state(request).authenticator.identify(dict(request.scope["headers"]))


def _json(status: int, value: Any) -> Response:
    return Response(responses.plain(value), status, media_type="application/json")
