"""The HTTP protocol of the client: encode an operation as a request, decode its response, decide when to retry."""

import re
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from holdfast.config import Settings
from holdfast.engine.engine import HANDLERS
from holdfast.engine.gate.ids import Ids, system_clock
from holdfast.engine.gate.operation_handler import CallContext, CallSignals
from holdfast.errors import (
    FailedPreconditionError,
    HoldfastError,
    InvalidArgumentError,
    UnavailableError,
    from_wire,
    short_repr,
)
from holdfast.model.identity import NO_ORIGIN, AccessRole
from holdfast.model.messages import Appended, Telemetry
from holdfast.ops.sessions import AddMessage, AddMessages
from holdfast.ops.table import OPERATIONS, Operation, fields_of, validate_operation
from holdfast.storable import to_plain_str
from holdfast.validation import prebuild_decoder

R = TypeVar("R")

FIRST_DELAY_SECONDS = 0.05
MAX_DELAY_SECONDS = 5.0
MAX_RETRY_AFTER_SECONDS = 60.0
CONNECT_SECONDS = 5.0
KEEPALIVE_SECONDS = 4.0
"""Shorter than the server's own limit: a connection that the server closes first may lose a request."""

NOT_EXECUTED_STATUSES = {408, 429}
"""The server rejected the request before it executed anything."""
RETRYABLE_STATUSES = {*NOT_EXECUTED_STATUSES, 502, 503, 504}


class Request(msgspec.Struct, frozen=True):
    verb: str
    path: str
    query: dict[str, str]
    body: bytes | None
    is_retryable: bool
    """Whether the request is safe to repeat when its response was lost."""


class ErrorBody(msgspec.Struct, frozen=True):
    code: str = "INTERNAL"
    message: str = ""
    details: dict[str, Any] | None = None


@prebuild_decoder
class Envelope(msgspec.Struct, frozen=True):
    """The body of every response: a result or an error."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorBody | None = None
    telemetry: msgspec.Raw = msgspec.Raw(b"null")


class HttpCodec:
    """Encodes operations as requests and decodes responses into results. It does no input or output itself."""

    def __init__(self, url: str, headers: dict[str, str], settings: Settings) -> None:
        self.url = url
        self.headers = headers
        self.settings = settings
        self.ids = Ids(system_clock)

    def request(self, op: Operation[Any]) -> Request:
        """Encode `op` as a request. An invalid operation raises the same error here as it would on the server."""
        cls, entry = type(op), OPERATIONS[type(op)]
        valid = validate_operation(cls, fields_of(op))
        context = CallContext(
            now=system_clock(),
            ids=self.ids,
            settings=self.settings,
            count_waiting_writes=lambda: 0,
            signals=CallSignals(),
            origin=NO_ORIGIN,
        )
        HANDLERS[cls].check(context, valid)
        is_append = isinstance(valid, AddMessage | AddMessages)
        if is_append and valid.idempotency_key is None:  # type: ignore[attr-defined]  # is_append narrows it
            valid = msgspec.structs.replace(valid, idempotency_key=self.ids.new("idem"))
        fields = _non_default_fields(valid)
        in_path = {name: quote(str(fields.pop(name)), safe="") for name in list(fields) if f"{{{name}}}" in entry.path}
        in_query = entry.verb in {"GET", "DELETE"}
        return Request(
            verb=entry.verb,
            path=entry.path.format_map(in_path),
            query={name: _query_value(value) for name, value in fields.items()} if in_query else {},
            body=None if in_query else msgspec.json.encode(fields, enc_hook=to_plain_str),
            is_retryable=entry.is_retryable or is_append,
        )

    def result(self, op: Operation[R], status: int, content: bytes) -> R:
        """Decode a response: return the operation's result, or raise its error."""
        entry = OPERATIONS[type(op)]
        try:
            envelope = msgspec.json.decode(content, type=Envelope)
            if envelope.error is None and status < 400:  # noqa: PLR2004 - the first error status
                if entry.result_field is None:
                    result: R = msgspec.json.decode(envelope.result, type=entry.returns)
                    return _with_telemetry(result, envelope.telemetry)
                body = msgspec.json.decode(content)
                return msgspec.convert({**body, entry.result_field: body["result"]}, entry.returns)  # type: ignore[no-any-return]
        except msgspec.MsgspecError as error:
            raise self._unexpected_response(status, f"{content[:80]!r}: {error}") from None
        if envelope.error is None:
            raise self._unexpected_response(status, short_repr(content.decode(errors="replace")))
        raise from_wire(envelope.error.code, envelope.error.message, envelope.error.details or {}, status)

    def _unexpected_response(self, status: int, excerpt: str) -> HoldfastError:
        return UnavailableError(
            f"{self.url} answered {status} with a body that is not a Holdfast response: {excerpt}; check the URL",
            service="http",
            reason="not a Holdfast response",
        )

    def httpx_options(self, httpx: Any) -> dict[str, Any]:
        return {
            "base_url": self.url,
            "headers": self.headers,
            "verify": self.url.startswith("https:"),  # loading the TLS certificates takes longer than many requests
            "timeout": httpx.Timeout(self.settings.http_timeout_seconds, connect=CONNECT_SECONDS),
            "limits": httpx.Limits(
                max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEPALIVE_SECONDS
            ),
        }

    def backup_error(self, target: Path) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"a server writes no files for its clients; run `holdfast backup {target}` on the machine of {self.url}"
        )

    def unreachable_error(self, error: Exception, *, sent: bool) -> UnavailableError:
        reason = str(error) or type(error).__name__
        advice = (
            "the outcome of this call is unknown; retry it with the same idempotency key"
            if sent
            else "check that the server is running there"
        )
        return UnavailableError(
            f"{self.url} does not answer: {reason}; {advice}", service="http", reason=type(error).__name__
        )

    def require_open(self, *, closed: bool) -> None:
        if closed:
            raise FailedPreconditionError("this client was closed; connect again to use it")

    def retry_delays(self) -> Iterator[float | None]:
        """Yield the seconds to wait after each attempt: exponential backoff with jitter. The last is None."""
        delay = FIRST_DELAY_SECONDS
        for _ in range(self.settings.http_attempts - 1):
            random_half = self.ids.random_48_bits() / 2**49  # 0 to 0.5
            yield delay * (0.5 + random_half)
            delay = min(2 * delay, MAX_DELAY_SECONDS)
        yield None

    def should_retry(self, request: Request, status: int) -> bool:
        return status in NOT_EXECUTED_STATUSES or (request.is_retryable and status in RETRYABLE_STATUSES)


def headers_for(
    api_key: str | None, account: str | None, user: str | None, role: AccessRole | None, agent: str | None = None
) -> dict[str, str]:
    values = {
        "X-API-Key": api_key,
        "X-OpenViking-Account": account,
        "X-OpenViking-User": user,
        "X-OpenViking-Role": role,
        "X-OpenViking-Agent": agent,
    }
    for name, value in values.items():
        if value is not None and not re.fullmatch(r"[!-~]+", value):
            field = "api_key" if name == "X-API-Key" else name
            raise InvalidArgumentError(
                field, "has a character that an HTTP header cannot carry; check it for a space or a line break"
            )
    return {"Content-Type": "application/json", **{name: value for name, value in values.items() if value is not None}}


def delay_with_retry_after(headers: Mapping[str, str], delay: float) -> float:
    """Return `delay`, or the response's `Retry-After` if that is longer."""
    try:
        return max(delay, min(float(headers.get("Retry-After", delay)), MAX_RETRY_AFTER_SECONDS))
    except ValueError:
        return delay


def _with_telemetry(result: R, telemetry: msgspec.Raw) -> R:
    """Return the result of an append with the telemetry that the response has beside it."""
    if not isinstance(result, Appended):
        return result
    return msgspec.structs.replace(result, telemetry=_decode_telemetry(telemetry))


_decode_telemetry = msgspec.json.Decoder(Telemetry | None).decode


def _non_default_fields(op: Operation[Any]) -> dict[str, Any]:
    return {
        field.name: value
        for field in msgspec.structs.fields(op)
        for value in [getattr(op, field.name)]
        if value is not msgspec.UNSET and (field.required or value != field.default)
    }


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def close_when_dropped(transport: object, connections: object) -> None:
    """Close the connections when the program drops the transport without closing it.

    Asynchronous connections are left open: only their event loop can close them.
    """
    close = getattr(connections, "close", None)
    if close is not None:
        weakref.finalize(transport, close)
