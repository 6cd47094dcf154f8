"""Text from bytes: encodings with a byte order mark, UTF-8, and Latin-1 as the fallback."""

import codecs
import re
from typing import NamedTuple

from holdfast.documents.parsed import MAX_TEXT_CHARS, UnreadableError

_SAMPLE_BYTES = 1 << 16
_MAX_CONTROL_SHARE = 0.05
_MARKS = (  # the mark of UTF-32 begins with the mark of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\f\b\x1b"))
_NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")


class Decoded(NamedTuple):
    text: str
    notes: list[str]
    is_content: bool
    """Whether the bytes are the text in UTF-8, without a mark."""


def decode(data: bytes) -> Decoded:
    """Decode the content of a text file. Raises `UnreadableError` if it is binary or too long.

    >>> decode("Zürich".encode("utf-16")).text, decode("Zürich".encode("latin-1")).text
    ('Zürich', 'Zürich')
    """
    if len(data) > MAX_TEXT_CHARS:
        raise UnreadableError(f"has {len(data)} bytes of text, more than {MAX_TEXT_CHARS}; split it into smaller files")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data[len(mark) :], encoding)
    if b"\0" in data:
        raise UnreadableError("contains NUL bytes, so it is binary data and not a text; leave it out")
    sample = data[:_SAMPLE_BYTES]
    if len(sample) - len(sample.translate(None, _CONTROLS)) > _MAX_CONTROL_SHARE * len(sample):
        raise UnreadableError("contains many control characters, so it is binary data and not a text; leave it out")
    try:
        return Decoded(data.decode("utf-8"), [], is_content=True)
    except UnicodeDecodeError as error:
        note = f"The file is not valid UTF-8 (byte {error.start}). It was read as Latin-1."
    try:
        return Decoded(data.decode("cp1252"), [note], is_content=False)
    except UnicodeDecodeError:
        return Decoded(data.decode("latin-1"), [note], is_content=False)


def _decode_marked(data: bytes, encoding: str) -> Decoded:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"begins with the mark of {encoding.upper()}, but byte {error.start} is not valid in it; save it as UTF-8"
        ) from None
    if "\0" in text:
        raise UnreadableError("contains NUL characters, so it is not a text; leave it out")
    return Decoded(text, [], is_content=False)


def storable(text: str) -> str:
    """Return an extracted text without characters that a database cannot store, and with plain line breaks."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
