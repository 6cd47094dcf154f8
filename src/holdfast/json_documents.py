"""Decoding of JSON that callers send: a number takes little time, and the number of values has a limit.

The decoder builds all values at once and lets no other thread run meanwhile.
"""

import gc
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

MAX_VALUES = 100_000
"""How many values, nested ones included, a request or a message may have. Decoding them takes about 20 ms."""
_CHUNK_BYTES = 1 << 20


@overload
def json_decoder() -> "msgspec.json.Decoder[Any]": ...
@overload
def json_decoder(cls: type[T]) -> "msgspec.json.Decoder[T]": ...


def json_decoder(cls: Any = Any) -> "msgspec.json.Decoder[Any]":
    """Return a decoder of a type. Its floats are parsed by `float`: msgspec takes 40 times as long for `1e308`."""
    return msgspec.json.Decoder(cls, float_hook=float)


decode_json = json_decoder().decode


def decode_at_once(decode: Callable[[str], T], document: str) -> T:
    """Decode a document without the garbage collector.

    It would search the values of a large document for cycles again and again, in more time than the decoding takes.
    """
    if not gc.isenabled():
        return decode(document)
    gc.disable()
    try:
        return decode(document)
    finally:
        gc.enable()


def has_too_many_values(document: bytes | bytearray) -> bool:
    """Return whether a JSON document has more values than `MAX_VALUES`. Commas and brackets in strings do not count.

    >>> has_too_many_values(b"[" + b"[]," * 200_000 + b"[]]"), has_too_many_values(b'["' + b"," * 400_000 + b'"]')
    (True, False)
    """
    if len(document) <= MAX_VALUES or _count_marks(document) <= MAX_VALUES:
        return False
    without_escapes = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    count, is_in_string = 0, False
    for at in range(0, len(without_escapes), _CHUNK_BYTES):
        pieces = without_escapes[at : at + _CHUNK_BYTES].split(b'"')
        count += _count_marks(b"".join(pieces[is_in_string::2]))
        is_in_string ^= len(pieces) % 2 == 0
    return count > MAX_VALUES


def _count_marks(text: bytes | bytearray) -> int:
    """Count commas and opening brackets, which is at least the number of values minus one."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
