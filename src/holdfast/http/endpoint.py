"""The one endpoint: parse, build the operation, hand it to the gate, map the error."""

import functools
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from holdfast.errors import (
    DeadlineExceededError,
    HoldfastError,
    InvalidArgumentError,
    PermissionDeniedError,
    TooSlowError,
    shown,
)
from holdfast.http import responses
from holdfast.http.auth import Caller, Headers
from holdfast.http.event_stream import Stream
from holdfast.http.executor import LARGE
from holdfast.http.limits import Disconnected, read_body
from holdfast.http.request_middleware import RequestRecord
from holdfast.http.routes import Route, Routes
from holdfast.http.server_state import ServerState
from holdfast.ops.administration import DeleteAccount, DeleteUser, RevokeKey, RotateKey, SetRole
from holdfast.ops.sessions import ReadEvents
from holdfast.ops.table import checked

ABOUT_KEYS = {DeleteAccount, DeleteUser, RevokeKey, RotateKey, SetRole}
"""What makes a key stop working, or work otherwise."""
SAID_ONCE = {
    b"host",
    b"origin",
    b"x-api-key",
    b"authorization",
    b"x-openviking-account",
    b"x-openviking-user",
    b"x-openviking-role",
    b"idempotency-key",
    b"if-match",
    b"last-event-id",
}
MAX_DIGITS = 18
MAX_KEY_LENGTH = 255


class Endpoint:
    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._routes = Routes()
        self._most = state.settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note: RequestRecord = scope["note"]
        try:
            headers = _once(scope["headers"])
            route, fields = self._routes.find(scope["method"], scope["raw_path"])
            note.operation = route.name
            caller = await self._admit(route, headers)
            note.principal = caller.principal
            if route.entry.stream and b"text/event-stream" in headers.get(b"accept", b""):
                await self._stream(scope, receive, send, route, caller, fields, headers)
                return
            answer = await self._answer(scope, receive, route, caller, fields, headers)
        except HoldfastError as error:
            answer = responses.failure(error, "query" if scope["method"] in {"GET", "DELETE"} else "body")
        except Disconnected:
            note.status = 499
            return
        await responses.send(answer, send)

    async def _admit(self, route: Route, headers: Headers) -> Caller:
        caller = await self._state.authenticator.identify(headers)
        if caller.operator and route.entry.scope == "tenant":
            raise PermissionDeniedError(
                f"the root key does not open {route.name}, which is about a tenant's data; use a user's key"
            )
        self._state.rate.spend(caller.principal)
        return caller

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        route: Route,
        caller: Caller,
        in_path: dict[str, Any],
        headers: Headers,
    ) -> responses.Answer:
        note: RequestRecord = scope["note"]
        arrived = in_query = route.entry.verb in {"GET", "DELETE"}
        size = 0
        try:
            with self._state.deadlines:
                if in_query:
                    given = _in_query(scope["query_string"])
                else:
                    body = await read_body(receive, headers, self._most)
                    size = len(body)
                    read = partial(_in_body, body)
                    given = read() if size <= LARGE else await self._state.executor.in_thread(read)
                    arrived = True
                telemetry = given.pop("telemetry", None)
                fields = {**given, **_in_headers(route, headers, given), **in_path}
                result = await self._state.executor.call(
                    caller.principal, route.cls, fields, strict=not in_query, size=size
                )
        except TimeoutError:
            raise _too_late(self._state.deadlines.seconds, route, arrived=arrived) from None
        finally:
            if route.cls in ABOUT_KEYS:
                self._state.authenticator.forget_keys()
        if route.entry.verb != "GET" and "session_id" in fields:
            self._state.hub.wake((caller.principal.account_id, caller.principal.user_id, fields["session_id"]))
        told = note.request_id.decode() if _is_wanted(telemetry) else None
        return responses.success(route, result, note.seconds(), told)

    async def _stream(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        route: Route,
        caller: Caller,
        in_path: dict[str, Any],
        headers: Headers,
    ) -> None:
        state = self._state
        given = {**_in_query(scope["query_string"]), **_in_headers(route, headers, {})}
        op = checked(ReadEvents, {**given, **in_path}, strict=False)
        with state.streams.one_more(caller.principal):
            identify = functools.partial(state.authenticator.identify, headers)
            await Stream(state.executor, state.hub, state.settings, caller.principal, op, identify).run(receive, send)


def _once(headers: list[tuple[bytes, bytes]]) -> Headers:
    """The headers by name. One that says who calls or what is meant must not be there twice, or others would differ."""
    named = dict(headers)
    if len(named) < len(headers):
        names = [name for name, _ in headers]
        for name in sorted(SAID_ONCE & named.keys()):
            if names.count(name) > 1:
                raise InvalidArgumentError(name.decode(), "is there more than once; send it once")
    return named


def _is_wanted(telemetry: Any) -> bool:
    """`telemetry` is true, or an object that says more; in a query it is text."""
    return bool(telemetry) and telemetry not in ("0", "false")


def _in_query(query: bytes) -> dict[str, Any]:
    if not query:
        return {}
    try:
        return dict(parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100))
    except ValueError as error:
        raise InvalidArgumentError("query", f"cannot be read: {error}; encode it properly") from None


def _in_body(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        given = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidArgumentError("body", f"is not JSON: {error}; send a JSON object") from None
    except RecursionError:
        raise InvalidArgumentError("body", "is nested too deeply; flatten it") from None
    if not isinstance(given, dict):
        raise InvalidArgumentError("body", f"is a JSON {type(given).__name__}; send an object")
    return given


def _in_headers(route: Route, headers: Headers, given: Mapping[str, Any]) -> dict[str, Any]:
    """`Idempotency-Key`, `If-Match` and `Last-Event-ID`, where the operation has such a field and was not given it."""
    found: dict[str, Any] = {}
    for header, field in route.header_fields:
        value = headers.get(header)
        if value is None:
            continue
        text = value.decode("latin-1")
        if field == "idempotency_key" and not 1 <= len(text) <= MAX_KEY_LENGTH:
            raise InvalidArgumentError("idempotency_key", f"has not 1 to {MAX_KEY_LENGTH} characters")
        if field == "expected_seq":
            text = text.strip().removeprefix("W/").strip('"')
            if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
                raise InvalidArgumentError("If-Match", f'{shown(text)} is not the number of a message; send "12"')
            found[field] = int(text)
        else:
            found[field] = text
    return {field: value for field, value in found.items() if given.get(field) is None}


def _too_late(seconds: float, route: Route, *, arrived: bool) -> DeadlineExceededError:
    if not arrived:
        return TooSlowError(f"the request did not arrive within {seconds:g} s; nothing was done")
    return DeadlineExceededError(
        f"{route.name} was not done within {seconds:g} s; "
        "its outcome is unknown, retry it with the same idempotency key"
    )
