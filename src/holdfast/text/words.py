"""Words of messages and of search queries, as the text index stores them."""

import re
import unicodedata
from collections.abc import Iterable

from holdfast.model.parts import ContextPart, ImagePart, Part, ProviderPart, TextPart, ToolPart, as_text
from holdfast.text.scripts import UNSPACED

MAX_INDEXED_CHARS = 100_000
"""Characters of a message that are indexed. A longer text is mostly pasted output of programs."""

# A word index finds nothing in scripts without spaces unless each character is a word.
_WORD = re.compile(rf"(?=\w)[{UNSPACED}]|[^\W{UNSPACED}]+")
_WORDS_AND_SPACES = bytes(code if chr(code).isalnum() or chr(code) == "_" else ord(" ") for code in range(128)).ljust(
    256
)
"""Translation table that replaces all ASCII characters outside of words by spaces; much faster than `_WORD`."""


def searchable_text(parts: Iterable[Part]) -> str:
    """Return what of a message is searched. A search finds it by its words."""
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
    return "\n".join(pieces)[:MAX_INDEXED_CHARS]


def indexed_words(text: str) -> list[str]:
    """Split a text or a query into words as the text index has them. An identifier is there in pieces.

    >>> indexed_words("web_search found 狐狸")
    ['web', 'search', 'found', '狐', '狸']
    """
    return split_words(text.replace("_", " "))


def split_words(text: str) -> list[str]:
    """Split a text or a query into words without accents, the same for every database.

    Each character of a script without spaces is a word. ASCII keeps its case: the indexes of both databases ignore it.

    >>> split_words('the "quick" Café 狐狸')
    ['the', 'quick', 'cafe', '狐', '狸']
    """
    if text.isascii():
        return text.encode().translate(_WORDS_AND_SPACES).decode().split()
    # Without the first removal, a long run of accents would be sorted, which takes quadratic time.
    decomposed = unicodedata.normalize("NFKD", _without_accents(text.lower()))
    return _WORD.findall(unicodedata.normalize("NFC", _without_accents(decomposed)))


def _without_accents(text: str) -> str:
    for accent in [character for character in set(text) if unicodedata.combining(character)]:
        text = text.replace(accent, "")
    return text
