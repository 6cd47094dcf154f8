"""Reading a file of any length as pages of text, each in a transaction of its own."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from holdfast.engine.gate.streams import Page
from holdfast.engine.tree.nodes import File
from holdfast.engine.tree.reading import Selection, check_size
from holdfast.store import read_memory
from holdfast.store.database import Tx

PAGE_CHARS = 1024 * 1024
"""The characters of a page after the first one. Some files are generated from their beginning for each page."""

FileFinder = Callable[[Tx], File]


def text_page(tx: Tx, find: FileFinder, selection: Selection) -> Page[str]:
    """Return the first page of the selected part of a file. Raises an error if the part is too large to be read."""
    file = find(tx)
    text, following = _read_part(file, selection)
    if following is None:
        return Page([text])
    read_memory.require(PAGE_CHARS)
    if selection.char_limit is None:
        _require_readable(file, text, following)
    return Page([text], lambda tx: _next_page(tx, find, following))


def read_pieces(file: File) -> Iterator[str]:
    """Read a file of any length, piece by piece. A piece may end inside of a line."""
    selection: Selection | None = Selection()
    while selection is not None:
        limited = replace(selection, char_limit=PAGE_CHARS)
        text, following = _read_part(file, limited)
        yield text
        if following is None and len(text) == PAGE_CHARS:
            following = _after(limited, text)
        selection = following


def _next_page(tx: Tx, find: FileFinder, selection: Selection) -> Page[str]:
    read_memory.require(PAGE_CHARS)
    text, following = _read_part(find(tx), selection)
    return Page([text], None if following is None else lambda tx: _next_page(tx, find, following))


def _read_part(file: File, selection: Selection) -> tuple[str, Selection | None]:
    """Read as many characters as a read may hold at once. Also return the selection of the rest."""
    max_chars = read_memory.largest_row()
    chars = max_chars if selection.char_limit is None else min(max_chars, selection.char_limit)
    text = file.read(replace(selection, char_limit=chars))
    if len(text) < chars or chars == selection.char_limit:
        return text, None
    return text, _after(selection, text)


def _after(selection: Selection, text: str) -> Selection:
    """Return the selection of what follows a text that was read."""
    following = replace(
        selection,
        char_offset=selection.char_offset + len(text),
        char_limit=None if selection.char_limit is None else selection.char_limit - len(text),
    )
    lines = text.count("\n")
    if lines and not selection.char_offset:  # continue at a line, so that the lines before it need not be read again
        following = replace(
            following,
            offset=selection.offset + lines,
            limit=None if selection.limit is None else selection.limit - lines,
            char_offset=len(text) - text.rindex("\n") - 1,
        )
    return following


def _require_readable(file: File, text: str, following: Selection | None) -> None:
    lines, chars = text.count("\n"), len(text)
    while following is not None:
        text, following = _read_part(file, following)
        lines, chars = lines + text.count("\n"), chars + len(text)
        check_size(file.uri, lines, chars)
