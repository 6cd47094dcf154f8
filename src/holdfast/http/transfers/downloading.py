"""A download: the bytes of a file, read and sent in parts as fast as the client receives them."""

import asyncio
import re
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.types import Receive, Send

from holdfast.errors import ConflictError, DeadlineExceededError, TooLargeError
from holdfast.http import responses
from holdfast.http.memory.budget import MemoryReservation
from holdfast.http.server_state import ServerState
from holdfast.http.streaming.response_stream import wait_for_disconnect
from holdfast.http.transfers.ranges import ByteRange, parse_range
from holdfast.http.transfers.request import TransferRequest
from holdfast.model.tree.files import position_after
from holdfast.model.tree.uploads import FileBytes
from holdfast.model.uris import parse_uri
from holdfast.ops.table import Operation
from holdfast.ops.tree.files import ReadFile
from holdfast.ops.tree.uploads import PART_BYTES, ReadBytes

R = TypeVar("R")
TEXT_CHARS = 100_000
"""The characters of a view that are read at once."""
OK, PARTIAL, NOT_SATISFIABLE = 200, 206, 416
ANY_BYTES = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
SAFE_HEADERS: list[responses.Header] = [
    # A file may be a page with scripts. No browser shows it as a page of this server.
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cache-control", b"private, no-cache"),
]


class ReadPart(msgspec.Struct, frozen=True):
    """What was read, with its size for the memory that it holds."""

    value: Any
    size: int


class Downloading:
    """Sends one file. Its reservation holds one part at a time."""

    def __init__(self, state: ServerState, request: TransferRequest, reservation: MemoryReservation) -> None:
        self._state = state
        self._request = request
        self._reservation = reservation

    async def run(self, receive: Receive, send: Send) -> None:
        query = self._request.query
        fields: dict[str, Any] = {name: query[name] for name in ("uri", "version") if name in query}
        try:
            first = await self._read_bytes(fields, 0)
        except TooLargeError:  # a view of any length
            await self._send_text(fields, receive, send)
            return
        if first.version == 0 and len(first.data) < first.size:
            await self._send_text(fields, receive, send)
            return
        await self._send_bytes(fields, first, receive, send)

    async def _send_bytes(self, fields: dict[str, Any], first: FileBytes, receive: Receive, send: Send) -> None:
        wanted = self._wanted_range(first)
        headers = _headers(fields["uri"], first.content_type)
        if first.version:
            headers += [(b"etag", b'"%d"' % first.version), (b"accept-ranges", b"bytes")]
            fields = {**fields, "version": first.version}
        start, end = (0, first.size) if wanted is None else wanted.within(first.size) or (0, 0)
        if wanted is not None and end == 0:
            headers += [(b"content-range", b"bytes */%d" % first.size), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": NOT_SATISFIABLE, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers.append((b"content-length", b"%d" % (end - start)))
        if wanted is not None:
            headers.append((b"content-range", b"bytes %d-%d/%d" % (start, end - 1, first.size)))
        data = first.data[start:end] if start < len(first.data) else b""
        expected = first.size, first.sha256
        del first
        await send({"type": "http.response.start", "status": OK if wanted is None else PARTIAL, "headers": headers})
        disconnected = asyncio.create_task(wait_for_disconnect(receive))
        try:
            position = start + len(data)
            await _write(send, data)
            del data
            while position < end:
                await _write(send, b"")  # returns when the client has received the part before, except for a small rest
                if disconnected.done():
                    return
                part = await self._read_bytes(fields, position)
                if (part.size, part.sha256) != expected:
                    raise ConflictError(f"{fields['uri']} is another file now; download it again")
                await _write(send, part.data[: end - position])
                position += len(part.data)
                del part
            await send({"type": "http.response.body", "body": b""})
        finally:
            disconnected.cancel()

    def _wanted_range(self, first: FileBytes) -> ByteRange | None:
        """The range that the client asks for. None for the whole file."""
        headers = self._request.headers
        condition = headers.get(b"if-range")
        if not first.version or (condition is not None and condition != b'"%d"' % first.version):
            return None
        return parse_range(headers.get(b"range", b"").decode("latin-1"))

    async def _send_text(self, fields: dict[str, Any], receive: Receive, send: Send) -> None:
        """Send the text of a view. Its length is not known before."""
        text = await self._read_text(fields, 0, 0)
        headers = _headers(fields["uri"], "text/plain; charset=utf-8")
        await send({"type": "http.response.start", "status": OK, "headers": headers})
        disconnected = asyncio.create_task(wait_for_disconnect(receive))
        try:
            line = char = 0
            while True:
                await _write(send, text.encode())
                await _write(send, b"")
                if len(text) < TEXT_CHARS or disconnected.done():
                    break
                line, char = position_after(text, line, char)
                text = await self._read_text(fields, line, char)
            await send({"type": "http.response.body", "body": b""})
        finally:
            disconnected.cancel()

    async def _read_bytes(self, fields: dict[str, Any], offset: int) -> FileBytes:
        limit = PART_BYTES - offset % PART_BYTES  # up to the end of a stored chunk
        part: FileBytes = await self._read(ReadBytes, {**fields, "offset": offset, "limit": limit})
        return part

    async def _read_text(self, fields: dict[str, Any], line: int, char: int) -> str:
        selection = {"offset": line, "char_offset": char, "char_limit": TEXT_CHARS}
        text: str = await self._read(ReadFile, {**fields, **selection})
        return text

    async def _read(self, cls: type[Operation[Any]], fields: dict[str, Any]) -> Any:
        request, seconds = self._request, self._state.settings.request_timeout_seconds
        self._reservation.release()
        try:
            async with asyncio.timeout(seconds):
                found = await self._state.executor.call_encoded(
                    request.principal,
                    cls,
                    fields,
                    strict=False,
                    body_size=0,
                    encode=lambda _call, result: ReadPart(result, len(getattr(result, "data", result))),
                    reservation=self._reservation,
                    cancellation=request.record.cancellation,
                    origin=request.origin,
                )
        except TimeoutError:
            raise DeadlineExceededError(f"a part of the file was not read within {seconds:g} s; try again") from None
        return found.value


def _headers(uri: str, media_type: str) -> list[responses.Header]:
    name = quote(parse_uri(uri)[-1], safe="").encode()
    is_valid = _MEDIA_TYPE.fullmatch(media_type.partition(";")[0])
    return [
        (b"content-type", media_type.encode("latin-1") if is_valid else ANY_BYTES.encode()),
        (b"content-disposition", b"attachment; filename*=UTF-8''" + name),
        *SAFE_HEADERS,
    ]


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
