"""What a process and its child send each other: JSON documents, each after its length in four bytes."""

import struct
from collections.abc import Callable
from typing import Any

import msgspec

MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct(">I")


class ChildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The argument of the child. It has no settings, keys or texts."""

    parent: int
    """The process id of the parent."""
    seconds: float
    """CPU time that one job may take."""
    memory_mb: int
    job_modules: list[str]
    """Modules with a list `JOBS`. A job replaces an earlier one of the same name."""


class Vectors(msgspec.Struct, frozen=True):
    """The vectors of texts: the rows of a matrix of 32-bit floats."""

    data: bytes
    dimensions: int


class Request(msgspec.Struct, frozen=True):
    job: str
    input: msgspec.Raw
    embeds_locally: bool
    """Whether the child computes vectors itself."""
    vectors: Vectors | None = None
    """The vectors that the job asked for when it ran before."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child has started."""


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    output: msgspec.Raw


class VectorsNeeded(msgspec.Struct, frozen=True, tag="vectors needed"):
    """The job cannot go on without the vectors of these texts. It is to be run again with them."""

    texts: list[str]


class OutOfMemory(msgspec.Struct, frozen=True, tag="out of memory"):
    """The job exceeded the limit of memory. The child ends."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The job raised an error."""

    code: str
    message: str
    details: dict[str, Any]


Reply = Ready | Finished | VectorsNeeded | OutOfMemory | Failed


def pack(length: int) -> bytes:
    """Return the bytes that precede a document of `length` bytes."""
    return _LENGTH.pack(length)


def read_frame(read: Callable[[int], bytes]) -> bytearray:
    """Read one document. `read` returns between one byte and the given number, or none at the end of the stream.

    Raises `EOFError` if the stream ends, and `ValueError` if the document is longer than allowed.
    """
    (length,) = _LENGTH.unpack(_read_exactly(read, _LENGTH.size))
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {length} bytes is longer than {MAX_FRAME_BYTES}")
    return _read_exactly(read, length)


def _read_exactly(read: Callable[[int], bytes], length: int) -> bytearray:
    data = bytearray()
    while len(data) < length:
        received = read(min(length - len(data), 1 << 20))
        if not received:
            raise EOFError
        data += received
    return data  # not copied: it may take half of the memory that a child has
