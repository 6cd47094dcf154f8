"""What of a message goes into the text index, and how a query is put to it."""

import re
from collections.abc import Iterable

from holdfast.parts import ContextPart, ImagePart, Part, TextPart, ToolPart, as_text

INDEXED_CHARS = 100_000
"""The index holds this much of a message; beyond it lies machine output rather than something said."""

# Scripts that are written without spaces: a word index finds nothing in them unless each sign is its own word.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_WORD = re.compile(r"\w+")


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
    text = "\n".join(pieces) if len(pieces) > 1 else pieces[0]
    return spaced(text[:INDEXED_CHARS])


def query_words(query: str) -> list[str]:
    """The words of a query, cut as the index cuts them.

    >>> query_words('the "quick" 狐狸')
    ['the', 'quick', '狐', '狸']
    """
    return _WORD.findall(spaced(query))


def spaced(text: str) -> str:
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)
