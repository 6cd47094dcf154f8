"""The envelope that every answer comes in."""

from typing import Any

import msgspec
from starlette.types import Send

from holdfast.errors import HoldfastError, InvalidArgumentError, TooSlowError
from holdfast.http.routes import Route

Header = tuple[bytes, bytes]
JSON: Header = (b"content-type", b"application/json")

_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: list[Header]


def success(route: Route, result: Any, seconds: float, telemetry: str | None) -> Answer:
    """What the operation resulted in. `telemetry` is the request's id, if its details were asked for."""
    beside = b""
    if route.entry.bare is not None:
        fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != route.entry.bare}
        beside = b"," + _encode(fields)[1:-1]
        result = getattr(result, route.entry.bare)
    body = b'{"status":"ok","result":%b,"error":null,"telemetry":%b%b,"time":%.6f}' % (
        _encode(result),
        b"null" if telemetry is None else _telemetry(telemetry, route.name, "ok", seconds),
        beside,
        seconds,
    )
    return Answer(200, body, _etag(result))


def failure(error: HoldfastError, place: str = "body") -> Answer:
    details = error.details
    headers: list[Header] = []
    if isinstance(error, InvalidArgumentError):
        told = {"loc": [place, details.get("field", "")], "message": details.get("problem", ""), "type": "value_error"}
        details = {**details, "validation_errors": [told]}
    if "retry_after" in details:
        headers.append((b"retry-after", str(max(1, round(details["retry_after"]))).encode()))
    if error.status == TooSlowError.status:
        headers.append((b"connection", b"close"))  # whoever did not send all of it may send the rest at any time
    if "allow" in details:
        headers.append((b"allow", details["allow"].encode()))
    body = {
        "status": "error",
        "result": None,
        "error": {"code": error.code, "message": error.message, "details": details},
    }
    return Answer(error.status, msgspec.json.encode(body, enc_hook=str), headers)


def plain(value: Any) -> bytes:
    """A body without the envelope."""
    return _encode(value)


async def send(answer: Answer, send: Send) -> None:
    headers = [JSON, (b"content-length", str(len(answer.body)).encode()), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _telemetry(id: str, operation: str, status: str, seconds: float) -> bytes:
    return _encode(
        {"id": id, "summary": {"operation": operation, "status": status, "duration_ms": round(seconds * 1_000, 3)}}
    )


def _etag(result: Any) -> list[Header]:
    """The number of the last message, which an append can name in `If-Match`."""
    seq = getattr(result, "seq", None) or getattr(result, "total_message_count", None)
    return [] if seq is None else [(b"etag", b'"%d"' % seq)]
