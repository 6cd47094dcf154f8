"""Encode results and errors in the envelope that every response has."""

from typing import Any

import msgspec
from starlette.types import Send

from holdfast.errors import HoldfastError, InvalidArgumentError, TooSlowError
from holdfast.http.routes import Route

Header = tuple[bytes, bytes]
JSON: Header = (b"content-type", b"application/json")

_encode = msgspec.json.Encoder().encode


class EncodedResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: list[Header]


def success(route: Route, result: Any, seconds: float, telemetry_id: str | None) -> EncodedResponse:
    """Encode an operation's result. With `telemetry_id`, the request's id, the envelope includes telemetry."""
    extra_fields = b""
    if route.entry.result_field is not None:
        fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != route.entry.result_field}
        extra_fields = b"," + _encode(fields)[1:-1]
        result = getattr(result, route.entry.result_field)
    body = b'{"status":"ok","result":%b,"error":null,"telemetry":%b%b,"time":%.6f}' % (
        _encode(result),
        b"null" if telemetry_id is None else _telemetry(telemetry_id, route.name, "ok", seconds),
        extra_fields,
        seconds,
    )
    return EncodedResponse(200, body, _etag(result))


def failure(error: HoldfastError, location: str = "body") -> EncodedResponse:
    """Encode an error. `location` names the part of the request, for errors in a field: `body` or `query`."""
    details = error.details
    headers: list[Header] = []
    if isinstance(error, InvalidArgumentError):
        field, problem = details.get("field", ""), details.get("problem", "")
        validation_error = {"loc": [location, field], "message": problem, "type": "value_error"}
        details = {**details, "validation_errors": [validation_error]}
    if "retry_after" in details:
        headers.append((b"retry-after", str(max(1, round(details["retry_after"]))).encode()))
    if error.status == TooSlowError.status:
        # The client may still send the rest of its request, which would be read as the next one.
        headers.append((b"connection", b"close"))
    if "allow" in details:
        headers.append((b"allow", details["allow"].encode()))
    body = {
        "status": "error",
        "result": None,
        "error": {"code": error.code, "message": error.message, "details": details},
    }
    return EncodedResponse(error.status, msgspec.json.encode(body, enc_hook=str), headers)


def encode_json(value: Any) -> bytes:
    """Encode a body without the envelope."""
    return _encode(value)


async def send(response: EncodedResponse, send: Send) -> None:
    headers = [JSON, (b"content-length", str(len(response.body)).encode()), *response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def _telemetry(id: str, operation: str, status: str, seconds: float) -> bytes:
    return _encode(
        {"id": id, "summary": {"operation": operation, "status": status, "duration_ms": round(seconds * 1_000, 3)}}
    )


def _etag(result: Any) -> list[Header]:
    """The seq of the session's last message as an ETag, for the `If-Match` of an append."""
    seq = getattr(result, "seq", None) or getattr(result, "total_message_count", None)
    return [] if seq is None else [(b"etag", b'"%d"' % seq)]
