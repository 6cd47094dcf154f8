"""The file of a multipart body, whatever the pieces in which it arrives."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from holdfast.errors import HoldfastError, InvalidArgumentError, TooLargeError
from holdfast.http.limits import Disconnected
from holdfast.http.memory.bodies import BodyMemory
from holdfast.http.transfers.multipart import MAX_HEADER_BYTES, MAX_OTHER_BYTES, MultipartFile

BOUNDARY = b"----a.Boundary'(42)"
HEADERS = {b"content-type": b'multipart/form-data; charset=utf-8; boundary="%b"' % BOUNDARY}
CONTENT = b"one\r\ntwo\r\n--\r\n----a.Bound\r\n------a.Boundary'(4\r\n" * 3
"""Text that almost has the boundary in it."""


def part(name: str, data: bytes, filename: str | None = None, *headers: bytes) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    disposition = f'Content-Disposition: form-data; name="{name}"{file}'.encode()
    return b"--%b\r\n%b\r\n\r\n%b\r\n" % (BOUNDARY, b"\r\n".join([*headers, disposition]), data)


END = b"--%b--\r\n" % BOUNDARY
BODY = part("reason", b"x\r\ny") + part("file", CONTENT, "plan ü.md", b"X-Other: 1") + part("late", b"z") + END


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def read(
    body: Iterable[bytes], headers: dict[bytes, bytes] | None = None, max_bytes: int = 10_000, size: int = 50
) -> tuple[str, list[bytes]]:
    """Read a body that arrives in pieces. Return the name of the file, and its parts."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": each, "more_body": True} for each in body]
    if messages:
        messages[-1]["more_body"] = False
    arriving = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        return next(arriving)

    async def run() -> tuple[str, list[bytes]]:
        file = MultipartFile(receive, HEADERS if headers is None else headers, max_bytes)
        name, parts = await file.read_name(), []
        with BodyMemory(1_000).buffer() as memory:
            while found := await file.read_part(size, memory):
                parts.append(found)
        return name, parts

    return asyncio.run(run())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 64, 100_000])
@pytest.mark.parametrize("piece", [1, 2, 3, 17, 64, 100_000])
def test_the_file_is_the_same_in_whatever_pieces_it_arrives(piece: int, size: int) -> None:
    name, parts = read(pieces(BODY, piece), size=size)
    assert (name, b"".join(parts)) == ("plan ü.md", CONTENT)
    assert all(len(each) == size for each in parts[:-1])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('a\\"b;c=d.md', 'a"b;c=d.md'),
        ("漢字.txt", "漢字.txt"),
        ("plain.md\"; filename*=UTF-8''%C3%BCber.md; x=\"", "über.md"),
    ],
)
def test_the_name_of_the_file_is_decoded(given: str, expected: str) -> None:
    assert read([part("file", b"x", given) + END]) == (expected, [b"x"])


def test_an_empty_file_has_no_parts() -> None:
    assert read([part("file", b"", "empty") + END]) == ("empty", [])
    assert read([b"preamble\r\n" + part("file", b"x", "a") + END + b"epilogue"]) == ("a", [b"x"])


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (part("other", b"x", "a.md") + END, InvalidArgumentError, "file: is missing"),
        (part("file", b"x") + END, InvalidArgumentError, "file: is missing"),
        (END, InvalidArgumentError, "file: is missing"),
        (BODY[:-250], InvalidArgumentError, "ends before its last boundary"),
        (b"no boundary at all", InvalidArgumentError, "ends before its last boundary"),
        (part("file", b"x" * (MAX_OTHER_BYTES + 10_001), "a") + END, TooLargeError, "larger than 10,000 bytes"),
        (part("file", b"x", "a", b"X: " + b"y" * MAX_HEADER_BYTES) + END, TooLargeError, "headers"),
        (part("file", b"x", "a", *[b"X: y"] * 3_000) + END, TooLargeError, "headers"),
    ],
    ids=["other field", "no file name", "no part", "cut off", "no boundary", "too large", "long header", "headers"],
)
def test_an_invalid_body_is_an_error(body: bytes, error: type[HoldfastError], words: str) -> None:
    with pytest.raises(error, match=words):
        read(pieces(body, 65_536))


@pytest.mark.parametrize("content_type", [b"", b"application/json", b"multipart/form-data", b"multipart/form-data;x=y"])
def test_another_content_type_is_an_error(content_type: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="Content-Type"):
        read([BODY], {b"content-type": content_type})


def test_a_body_that_is_announced_as_too_large_is_refused_before_it_is_received() -> None:
    with pytest.raises(TooLargeError, match="larger than 10,000 bytes"):
        read([], {**HEADERS, b"content-length": b"%d" % (10_001 + MAX_OTHER_BYTES)})


def test_a_client_that_disconnects_ends_the_upload() -> None:
    with pytest.raises(Disconnected):
        read([])


@pytest.mark.parametrize("unit", [b"\r\n--" + BOUNDARY[:-1], b"\r\n", b"-", b"\r\n--"], ids=str)
def test_a_hostile_body_takes_little_time(unit: bytes) -> None:
    body = part("file", unit * (4_000_000 // len(unit)), "a") + END
    began = time.process_time()
    read(pieces(body, 65_536), max_bytes=len(body), size=1024 * 1024)
    assert time.process_time() - began < 1
