"""The endpoint of all operations: parse the request, call the operation, encode the result or the error."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from holdfast.errors import (
    DataDamagedError,
    DeadlineExceededError,
    HoldfastError,
    InvalidArgumentError,
    PermissionDeniedError,
    TooSlowError,
    short_repr,
)
from holdfast.http import responses
from holdfast.http.auth import AuthenticatedCaller, Headers
from holdfast.http.executor import MAX_INLINE_BYTES, Requester
from holdfast.http.limits import Disconnected, read_body
from holdfast.http.memory.budget import MemoryReservation
from holdfast.http.request_middleware import RequestRecord
from holdfast.http.routes import Route, Routes
from holdfast.http.server_state import ServerState
from holdfast.http.streaming.event_stream import SessionStream
from holdfast.http.streaming.response_stream import ResponseStream
from holdfast.http.transfers.downloading import Downloading
from holdfast.http.transfers.packing import PackExporting
from holdfast.http.transfers.request import TransferRequest
from holdfast.http.transfers.uploading import Uploading
from holdfast.http.unsupported_fields import refuse_unsupported
from holdfast.json_documents import MAX_VALUES, decode_json, has_too_many_values
from holdfast.model.identity import Origin
from holdfast.ops.administration import DeleteAccount, DeleteUser, RevokeKey, RotateKey, SetRole
from holdfast.ops.sessions import ReadEvents
from holdfast.ops.table import validate_operation

KEY_CHANGES = {DeleteAccount, DeleteUser, RevokeKey, RotateKey, SetRole}
"""Operations that revoke keys or change their role."""
SINGLE_HEADERS = {
    b"host",
    b"origin",
    b"x-api-key",
    b"authorization",
    b"x-openviking-account",
    b"x-openviking-user",
    b"x-openviking-role",
    b"x-openviking-agent",
    b"idempotency-key",
    b"if-match",
    b"last-event-id",
}
NUMBERS_TO_MATCH = {"expected_seq": "the seq of a message", "expected_version": "the version of a file"}
"""The fields that `If-Match` may have, and what their values are."""
MAX_SEQ_DIGITS = 18
MAX_KEY_LENGTH = 255
CLIENT_CLOSED_REQUEST = 499


class Endpoint:
    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._routes = Routes()
        self._max_body_bytes = state.settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: RequestRecord = scope["record"]
        try:
            headers = _header_dict(scope["headers"])
            route, fields = self._routes.find(scope["method"], scope["raw_path"])
            record.operation = route.name
            caller = await self._authorise(route, headers, _address(scope))
            record.principal = caller.principal
            if route.transfer is not None:
                await self._transfer(scope, receive, send, route, caller, headers)
                return
            if route.entry.stream and b"text/event-stream" in headers.get(b"accept", b""):
                await self._stream(scope, receive, send, route, caller, fields, headers)
                return
            with self._state.responses_memory.new_reservation(caller.principal) as reservation:
                await self._respond(scope, receive, send, route, caller, fields, headers, reservation)
        except HoldfastError as error:
            if record.is_disconnected:
                record.status = CLIENT_CLOSED_REQUEST
                return
            if isinstance(error, DataDamagedError):  # the operator must know; its cause may also be a bug
                request_id = record.request_id.decode()
                self._state.log.write_exception("data damaged", request_id=request_id, operation=record.operation)
            if record.status:  # a part of the response was sent; the client sees that the rest is missing
                self._state.log.write(
                    "warning", "response broken off", request_id=record.request_id.decode(), reason=error.message
                )
                return
            response = responses.failure(error, "query" if scope["method"] in {"GET", "DELETE"} else "body")
            await responses.send(response, send)
        except Disconnected:
            record.status = CLIENT_CLOSED_REQUEST

    async def _authorise(self, route: Route, headers: Headers, address: str) -> AuthenticatedCaller:
        """Identify the caller, and apply the rate limit. The engine checks the role."""
        caller = await self._state.authenticator.identify(headers, address)
        if caller.is_operator and route.entry.scope == "tenant":
            self._state.executor.engine.audit_log.record_denied(caller.principal, route.name, {}, Origin(address))
            raise PermissionDeniedError(
                f"the root key gives no access to a tenant's data, which {route.name} needs; use a user's key"
            )
        self._state.rate_limit.consume(caller.principal)
        return caller

    async def _respond(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        route: Route,
        caller: AuthenticatedCaller,
        path_fields: dict[str, Any],
        headers: Headers,
        reservation: MemoryReservation,
    ) -> None:
        record: RequestRecord = scope["record"]
        encoded, telemetry = await self._call(scope, receive, route, caller, path_fields, headers, reservation)
        telemetry_id = record.request_id.decode() if _is_true(telemetry) else None
        extra_fields = encoded.extra_fields

        def envelope_end() -> bytes:
            return responses.envelope_end(route, extra_fields, record.seconds(), telemetry_id)

        if encoded.stream is None:
            await responses.send_success(encoded, envelope_end(), send)
            return
        stream = ResponseStream(
            self._state.executor,
            reservation,
            self._state.settings.request_timeout_seconds,
            Requester.of(caller.principal, record.cancellation),
        )
        await stream.send(encoded.stream, encoded.headers, envelope_end, receive, send)

    async def _call(
        self,
        scope: Scope,
        receive: Receive,
        route: Route,
        caller: AuthenticatedCaller,
        path_fields: dict[str, Any],
        headers: Headers,
        reservation: MemoryReservation,
    ) -> tuple[responses.EncodedResult, Any]:
        """Call the operation. Return its encoded result, and the `telemetry` that the request asks for."""
        record: RequestRecord = scope["record"]
        is_received = in_query = route.entry.verb in {"GET", "DELETE"}
        state, body_size = self._state, 0
        try:
            with (
                state.deadlines,
                state.body_memory.buffer() as buffer,
                state.processing_memory.new_reservation(caller.principal) as processing,
            ):
                if in_query:
                    parsed = _parse_query(scope["query_string"])
                if in_query and route.entry.verb == "DELETE" and _has_body(headers):
                    body = await read_body(receive, headers, MAX_INLINE_BYTES, buffer)
                    parsed |= parse_body(body)
                elif not in_query:
                    body = await read_body(receive, headers, self._max_body_bytes, buffer)
                    is_received, body_size = True, len(body)
                    if body_size <= MAX_INLINE_BYTES:
                        parsed = parse_body(body)
                    else:
                        await processing.reserve(body_size)
                        user = (caller.principal.account_id, caller.principal.user_id)
                        parsed = await state.executor.in_checker(partial(parse_body, body), user)
                    del body
                telemetry = parsed.pop("telemetry", None)
                if not in_query:
                    parsed = _with_query_fields(route, parsed, scope["query_string"])
                refuse_unsupported(route.cls, parsed)
                fields = {**parsed, **_header_fields(route, headers, parsed), **path_fields}
                encoded = await state.executor.call_encoded(
                    caller.principal,
                    route.cls,
                    fields,
                    strict=not in_query,
                    body_size=body_size,
                    encode=partial(responses.encode_result, route),
                    reservation=reservation,
                    cancellation=record.cancellation,
                    origin=Origin(_address(scope), caller.key_id),
                )
        except TimeoutError:
            raise _timeout_error(state.deadlines.seconds, route, is_received=is_received) from None
        finally:
            if route.cls in KEY_CHANGES:
                state.authenticator.clear_cache()
        if not route.entry.reads and "session_id" in fields:
            state.notifier.notify((caller.principal.account_id, fields["session_id"]))
        return encoded, telemetry

    async def _transfer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        route: Route,
        caller: AuthenticatedCaller,
        headers: Headers,
    ) -> None:
        query = _parse_query(scope["query_string"])
        if route.transfer in {"export", "backup"}:
            query |= await self._read_small_body(receive, headers)
        request = TransferRequest(route, caller, headers, query, scope["record"], _address(scope))
        if route.transfer in {"export", "backup"}:
            await PackExporting(self._state, request).run(receive, send)
            return
        if route.transfer == "upload":
            await Uploading(self._state, request).run(receive, send)
            return
        with self._state.responses_memory.new_reservation(caller.principal) as reservation:
            await Downloading(self._state, request, reservation).run(receive, send)

    async def _read_small_body(self, receive: Receive, headers: Headers) -> dict[str, Any]:
        try:
            with self._state.deadlines, self._state.body_memory.buffer() as buffer:
                return parse_body(await read_body(receive, headers, MAX_INLINE_BYTES, buffer))
        except TimeoutError:
            raise TooSlowError(
                f"the request was not received within {self._state.deadlines.seconds:g} s; send it again"
            ) from None

    async def _stream(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        route: Route,
        caller: AuthenticatedCaller,
        path_fields: dict[str, Any],
        headers: Headers,
    ) -> None:
        state = self._state
        fields = {**_parse_query(scope["query_string"]), **_header_fields(route, headers, {}), **path_fields}
        op = validate_operation(ReadEvents, fields, strict=False)
        with state.stream_limit.reserve(caller.principal):
            address = _address(scope)
            identify = partial(state.authenticator.identify, headers, address, is_new_request=False)
            origin = Origin(address, caller.key_id)
            with state.responses_memory.new_reservation(caller.principal) as reservation:
                stream = SessionStream(
                    state.executor, state.notifier, state.settings, caller.principal, op, identify, reservation, origin
                )
                await stream.run(receive, send)


def _address(scope: Scope) -> str:
    """The address of the client. Empty if it is not known, as with a Unix socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _header_dict(headers: list[tuple[bytes, bytes]]) -> Headers:
    """The headers by name.

    A repeated header that identifies the caller or changes the operation is an error: a proxy might use its first
    value and this server its last.
    """
    by_name = dict(headers)
    if len(by_name) < len(headers):
        names = [name for name, _ in headers]
        for name in sorted(SINGLE_HEADERS & by_name.keys()):
            if names.count(name) > 1:
                raise InvalidArgumentError(name.decode(), "was sent more than once; send it once")
    return by_name


def _is_true(telemetry: Any) -> bool:
    """`telemetry` may be a boolean, an object with options, or, in a query, a string."""
    return bool(telemetry) and telemetry not in ("0", "false")


def _parse_query(query: bytes) -> dict[str, Any]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise InvalidArgumentError("query", f"cannot be parsed: {error}; percent-encode it as UTF-8") from None
    fields: dict[str, Any] = dict(pairs)
    if len(fields) < len(pairs):  # a repeated name is a list; a field that takes none refuses it
        for name in {name for name, _ in pairs if sum(other == name for other, _ in pairs) > 1}:
            fields[name] = [value for other, value in pairs if other == name]
    return fields


def _has_body(headers: Headers) -> bool:
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _with_query_fields(route: Route, parsed: dict[str, Any], query: bytes) -> dict[str, Any]:
    """Return the fields of a body with those of the query: they may be in the query of any request, as strings.

    The owner of a shared session is a part of its address, so it takes precedence there. Another field that is in both
    places with two values is an error: one of them would have no effect.
    """
    if not query:
        return parsed
    in_query = {name: value for name, value in _parse_query(query).items() if name in route.cls.__struct_fields__}
    for name, value in in_query.items():
        if name != "owner" and parsed.get(name, value) != value:
            raise InvalidArgumentError(name, f"is {short_repr(value)} in the query and another value in the body")
    return {**parsed, **in_query}


def parse_body(body: bytes | bytearray) -> dict[str, Any]:
    if not body:
        return {}
    if has_too_many_values(body):
        raise InvalidArgumentError(
            "body", f"has more than {MAX_VALUES} JSON values, nested ones included; send large data as strings"
        )
    try:
        decoded = decode_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidArgumentError("body", f"is not JSON: {error}; send a JSON object") from None
    except RecursionError:
        raise InvalidArgumentError("body", "is nested too deeply; flatten it") from None
    if not isinstance(decoded, dict):
        raise InvalidArgumentError("body", f"is a JSON {type(decoded).__name__}; send an object")
    return decoded


def _header_fields(route: Route, headers: Headers, parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The fields in `Idempotency-Key`, `If-Match` and `Last-Event-ID`. Fields in the query or body take precedence."""
    fields: dict[str, Any] = {}
    for header, field in route.header_fields:
        value = headers.get(header)
        if value is None:
            continue
        text = value.decode("latin-1")
        if field == "idempotency_key" and not 1 <= len(text) <= MAX_KEY_LENGTH:
            raise InvalidArgumentError("idempotency_key", f"must have 1 to {MAX_KEY_LENGTH} characters")
        if field in NUMBERS_TO_MATCH:
            text = text.strip().removeprefix("W/").strip('"')
            if not text.isascii() or not text.isdigit() or len(text) > MAX_SEQ_DIGITS:
                raise InvalidArgumentError(
                    "If-Match", f'{short_repr(text)} is not {NUMBERS_TO_MATCH[field]}; send one such as "12"'
                )
            fields[field] = int(text)
        else:
            fields[field] = text
    return {field: value for field, value in fields.items() if parsed.get(field) is None}


def _timeout_error(seconds: float, route: Route, *, is_received: bool) -> DeadlineExceededError:
    if not is_received:
        return TooSlowError(f"the request was not received within {seconds:g} s; nothing was done, send it again")
    return DeadlineExceededError(
        f"{route.name} did not finish within {seconds:g} s; "
        "its outcome is unknown, retry it with the same idempotency key"
    )
