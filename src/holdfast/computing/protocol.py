"""What a process and its child send each other: JSON documents, each after its length in four bytes."""

import struct
from collections.abc import Callable
from typing import Any, get_args, get_origin

import msgspec

from holdfast.json_documents import json_decoder

MAX_FRAME_BYTES = 1 << 30
PAGE_ITEMS = 256
"""How many items of a list are encoded at once."""
_LENGTH = struct.Struct(">I")
_encode = msgspec.json.encode


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


def encode_in_pages(value: Any) -> bytes:
    """Encode a job's input. Other threads can run between two pages of a long list.

    >>> encode_in_pages(Vectors(b"", 3)) == msgspec.json.encode(Vectors(b"", 3))
    True
    """
    if isinstance(value, list) and len(value) > PAGE_ITEMS:
        pages = [_encode(value[at : at + PAGE_ITEMS])[1:-1] for at in range(0, len(value), PAGE_ITEMS)]
        return b"[%b]" % b",".join(pages)
    if isinstance(value, msgspec.Struct) and _is_plain(type(value)):
        fields = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        encoded = [b'"%b":%b' % (name.encode(), encode_in_pages(getattr(value, field))) for name, field in fields]
        return b"{%b}" % b",".join(encoded)
    return _encode(value)


def _is_plain(cls: type[msgspec.Struct]) -> bool:
    """Whether a struct is encoded as an object of all its fields."""
    config = cls.__struct_config__
    return not (config.array_like or config.omit_defaults or config.tag)


def decode_in_pages(document: msgspec.Raw, cls: Any) -> Any:
    """Decode a job's output. Other threads can run between two items of a list."""
    if get_origin(cls) is not list:
        return json_decoder(cls).decode(document)
    decode = json_decoder(get_args(cls)[0]).decode
    return [decode(item) for item in msgspec.json.decode(document, type=list[msgspec.Raw])]


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
