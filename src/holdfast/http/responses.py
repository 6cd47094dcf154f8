"""Encode results and errors in the envelope that every response has."""

from typing import Any

import msgspec
from starlette.types import Send

from holdfast.engine.gate.call import PreparedCall
from holdfast.engine.gate.streams import StreamedResult
from holdfast.errors import HoldfastError, InvalidArgumentError, TooSlowError
from holdfast.http.encoded_stream import EncodedStream
from holdfast.http.memory.budget import UNRESERVED_BYTES
from holdfast.http.routes import Route

Header = tuple[bytes, bytes]
JSON: Header = (b"content-type", b"application/json")
ENVELOPE_START = b'{"status":"ok","result":'

_encode = msgspec.json.Encoder().encode


class EncodedResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: list[Header]


class EncodedResult(msgspec.Struct, frozen=True):
    """A result as JSON, or a stream of its JSON."""

    json: bytes
    extra_fields: bytes
    """Fields of the envelope after the usual ones, each after a comma."""
    headers: list[Header]
    stream: EncodedStream | None = None

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        return len(self.json) if self.stream is None else self.stream.size


def encode_result(route: Route, call: PreparedCall[Any], result: Any) -> EncodedResult:
    """Encode the result of an operation, without the envelope. A large one is encoded in a thread."""
    result_field, extra_fields = route.entry.result_field, b""
    if isinstance(result, StreamedResult):
        etag = _etag(result.result)
        if result_field is not None:
            extra_fields = _encode_extra_fields(result.result, result_field)
            result = StreamedResult([], None, result.first)
        return EncodedResult(b"", extra_fields, etag, EncodedStream(call, result))
    if result_field is not None:
        extra_fields = _encode_extra_fields(result, result_field)
        result = getattr(result, result_field)
    return EncodedResult(_encode(result), extra_fields, _etag(result))


def _encode_extra_fields(result: Any, result_field: str) -> bytes:
    """Encode the fields that the envelope has beside the result, each after a comma."""
    fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != result_field}
    return b"," + _encode(fields)[1:-1]


def envelope_end(route: Route, extra_fields: bytes, seconds: float, telemetry_id: str | None) -> bytes:
    """Encode what follows the result. With `telemetry_id`, the request's id, the envelope includes telemetry."""
    return b',"error":null,"telemetry":%b%b,"time":%.6f}' % (
        b"null" if telemetry_id is None else _telemetry(telemetry_id, route.name, "ok", seconds),
        extra_fields,
        seconds,
    )


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


async def send_success(encoded: EncodedResult, end: bytes, send: Send) -> None:
    """Send a result that is complete. The end is sent last, after all but a small rest of the result was received."""
    length = len(ENVELOPE_START) + len(encoded.json) + len(end)
    headers = [JSON, (b"content-length", str(length).encode()), *encoded.headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if len(encoded.json) <= UNRESERVED_BYTES:
        await send({"type": "http.response.body", "body": b"%b%b%b" % (ENVELOPE_START, encoded.json, end)})
        return
    await send({"type": "http.response.body", "body": ENVELOPE_START, "more_body": True})
    await send({"type": "http.response.body", "body": encoded.json, "more_body": True})
    await send({"type": "http.response.body", "body": end})


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
