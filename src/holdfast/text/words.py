"""What of a message goes into the text index, and how a query is put to it."""

import re
import unicodedata
from collections.abc import Iterable

from holdfast.model.parts import ContextPart, ImagePart, Part, ProviderPart, TextPart, ToolPart, as_text

INDEXED_CHARS = 100_000
"""The index holds this much of a message; beyond it lies machine output rather than something said."""

# Scripts that are written without spaces: a word index finds nothing in them unless each sign is its own word.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD = re.compile(r"\w+")
_WORDS_AND_SPACES = bytes(code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(128)).ljust(
    256
)
"""Each ASCII character as it is if it belongs to a word, else a space: several times faster than the pattern."""


def indexed(parts: Iterable[Part]) -> str:
    """The searchable text of a message."""
    pieces: list[str] = []
    for part in parts:
        match part:
            case TextPart():
                pieces.append(part.text)
            case ContextPart():
                pieces.append(part.abstract)
            case ImagePart():
                pieces.append(part.description)
            case ToolPart():
                pieces += (part.tool_name, as_text(part.tool_input), as_text(part.tool_output))
            case ProviderPart():
                pieces.append(part.readable)
    return " ".join(cut("\n".join(pieces)[:INDEXED_CHARS]))


def cut(text: str) -> list[str]:
    """The words of a text or a query, alike for every database: plain letters, each unspaced sign by itself.

    >>> cut('the "quick" Café 狐狸')
    ['the', 'quick', 'cafe', '狐', '狸']
    """
    if text.isascii():
        return text.encode().translate(_WORDS_AND_SPACES).decode().split()
    letters = unicodedata.normalize("NFKD", text.lower())
    plain = unicodedata.normalize("NFC", "".join([sign for sign in letters if not unicodedata.combining(sign)]))
    return _WORD.findall(_UNSPACED.sub(r" \1 ", plain))
