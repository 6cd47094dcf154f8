"""The file of a multipart body. It is parsed as it arrives, and nothing but the part that is read is held."""

from urllib.parse import unquote

from starlette.types import Receive

from holdfast.errors import InvalidArgumentError, TooLargeError
from holdfast.http.auth import Headers
from holdfast.http.limits import Disconnected
from holdfast.http.memory.bodies import BodyBuffer
from holdfast.http.memory.budget import UNRESERVED_BYTES

MAX_HEADER_BYTES = 8 * 1024
"""The limit for the headers of one part of the body."""
MAX_OTHER_BYTES = 1024 * 1024
"""The limit for all of the body but the file: headers, boundaries and other fields."""
FIELD = "file"
FORM = "multipart/form-data"
MAX_BOUNDARY_CHARS = 70


class MultipartFile:
    """Reads the field `file` of a body. Other fields are skipped."""

    def __init__(self, receive: Receive, headers: Headers, max_bytes: int) -> None:
        self._receive = receive
        self._delimiter = b"\r\n--" + _boundary(headers)
        self._max_bytes = max_bytes + MAX_OTHER_BYTES
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._max_bytes:
            raise _too_large(max_bytes)
        self._buffer = bytearray(b"\r\n")  # the first delimiter has no line before it
        self._received = 0
        self._has_ended = False
        """Whether the whole body was received."""
        self._in_file = False

    async def read_name(self) -> str:
        """Receive the body up to the file. Return its name."""
        await self._skip_data()
        while not await self._is_last():
            field, name = _disposition(await self._read_headers())
            if field == FIELD and name is not None:
                self._in_file = True
                return name
            await self._skip_data()
        raise InvalidArgumentError(FIELD, "is missing in the body; send it as a part with a file name")

    async def read_part(self, size: int, memory: BodyBuffer) -> bytes:
        """Receive the next `size` bytes of the file, or its rest. After the file, receive the end of the body."""
        part = bytearray()
        while self._in_file and len(part) < size:
            data, self._in_file = self._take_data(size - len(part))
            part += data
            if len(part) > UNRESERVED_BYTES:
                await memory.hold(len(part))
            if self._in_file and len(part) < size:
                await self._receive_more()
        if not self._in_file and not part:
            while not self._has_ended:
                self._buffer.clear()
                await self._receive_more()
        return bytes(part)

    async def _skip_data(self) -> None:
        """Receive and drop the data up to the next delimiter, which is dropped, too."""
        while self._take_data(len(self._buffer))[1]:
            await self._receive_more()

    def _take_data(self, size: int) -> tuple[bytes, bool]:
        """Return up to `size` bytes before the next delimiter, and whether others may follow before it."""
        end = self._buffer.find(self._delimiter)
        if 0 <= end <= size:
            data = bytes(self._buffer[:end])
            del self._buffer[: end + len(self._delimiter)]
            return data, False
        available = end if end >= 0 else max(0, len(self._buffer) - len(self._delimiter) + 1)
        data = bytes(self._buffer[: min(size, available)])
        del self._buffer[: len(data)]
        return data, True

    async def _is_last(self) -> bool:
        """Whether the delimiter before was the last one. Otherwise drop the line that it is in."""
        while len(self._buffer) < 2:  # noqa: PLR2004 - `--` after the last delimiter, else a line break
            await self._receive_more()
        if self._buffer.startswith(b"--"):
            return True
        await self._take_until(b"\r\n")
        return False

    async def _read_headers(self) -> bytes:
        headers = b""
        while line := await self._take_until(b"\r\n"):
            headers += line + b"\r\n"
            if len(headers) > MAX_HEADER_BYTES:
                raise _headers_too_large()
        return headers

    async def _take_until(self, end: bytes) -> bytes:
        while (position := self._buffer.find(end)) < 0:
            if len(self._buffer) > MAX_HEADER_BYTES:
                raise _headers_too_large()
            await self._receive_more()
        line = bytes(self._buffer[:position])
        del self._buffer[: position + len(end)]
        return line

    async def _receive_more(self) -> None:
        if self._has_ended:
            raise InvalidArgumentError("body", "ends before its last boundary; send the whole file")
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        self._received += len(chunk)
        if self._received > self._max_bytes:
            raise _too_large(self._max_bytes - MAX_OTHER_BYTES)
        self._buffer += chunk
        self._has_ended = not message.get("more_body", False)


def _boundary(headers: Headers) -> bytes:
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    kind, parameters = parse_parameters(content_type[:MAX_HEADER_BYTES])
    boundary = parameters.get("boundary", "")
    if kind != FORM or not 1 <= len(boundary) <= MAX_BOUNDARY_CHARS:
        raise InvalidArgumentError(
            "Content-Type", f"is {content_type[:80]!r}; send {FORM} with a boundary, and the field {FIELD}"
        )
    return boundary.encode("latin-1")


def _disposition(headers: bytes) -> tuple[str | None, str | None]:
    """Return the name of the field and of the file that the headers of a part have."""
    for line in headers.decode("utf-8", "replace").split("\r\n"):
        header, _, value = line.partition(":")
        if header.strip().lower() == "content-disposition":
            _, found = parse_parameters(value)
            encoded = found.get("filename*", "").rpartition("'")[2]
            return found.get("name"), unquote(encoded, errors="replace") or found.get("filename")
    return None, None


def parse_parameters(header: str) -> tuple[str, dict[str, str]]:
    r"""Return the value of a header, and its parameters.

    >>> parse_parameters('form-data; name="file"; filename="a;\\"b.md"')
    ('form-data', {'name': 'file', 'filename': 'a;"b.md'})
    """
    texts, is_quoted, is_escaped = [""], False, False
    for character in header:
        if is_escaped:
            is_escaped = False
        elif is_quoted and character == "\\":
            is_escaped = True
            continue
        elif character == '"':
            is_quoted = not is_quoted
            continue
        elif character == ";" and not is_quoted:
            texts.append("")
            continue
        texts[-1] += character
    pairs = [text.partition("=") for text in texts[1:]]
    return texts[0].strip().lower(), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"the file is larger than {max_bytes:,} bytes; upload a smaller one", limit=max_bytes)


def _headers_too_large() -> TooLargeError:
    return TooLargeError(
        f"the headers of a part of the body have more than {MAX_HEADER_BYTES} bytes; send less", limit=MAX_HEADER_BYTES
    )
