"""The data types of documents: what parsers return, and what callers get."""

from typing import Any

import msgspec

from holdfast.model.tree.files import FilePart

MAX_FILE_BYTES = 64 << 20
"""The largest file that is read."""
MAX_TEXT_CHARS = 20_000_000
"""The longest text of a file. What comes after it in a PDF or an Office file is left out, with a note."""


class ParsedDocument(msgspec.Struct, frozen=True):
    media_type: str
    title: str
    text: str
    parts: list[FilePart]
    metadata: dict[str, Any] = {}
    notes: list[str] = []
    """What a reader should know, for example that the encoding was guessed."""
    is_content: bool = False
    """Whether the text is the file itself: its bytes are the text in UTF-8."""


class Section(msgspec.Struct, frozen=True):
    """A range of the text that belongs together, before long ones are split and short ones are merged."""

    path: tuple[str, ...]
    """The headings above the section, and its own."""
    start: int
    end: int
    page: int | None = None
    body: int = -1
    """Where the text after the heading begins."""
    abstract: str = ""
    """One line about the section, if the parser knows it. Otherwise it is made from the text."""


class Extracted(msgspec.Struct, frozen=True):
    """What a parser returns. The sections follow each other without gaps."""

    text: str
    sections: list[Section]
    title: str = ""
    metadata: dict[str, Any] = {}
    notes: list[str] = []
    merges: bool = True
    """Whether short neighbouring sections may be merged. Pages and slides are kept apart."""


class UnreadableError(Exception):
    """A parser cannot read a file. The message continues a sentence that begins with the name of the file."""
