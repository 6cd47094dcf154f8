"""All printing: data to standard output, as a table or as JSON; notices and errors to standard error."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer

from holdfast import lazy
from holdfast.cli import options
from holdfast.model.base import WireStruct

MAX_CELL_WIDTH = 500
"""Longer texts are truncated in a table."""
UNLIMITED_WIDTH = 10_000
"""The width of a table that is not printed on a terminal."""

# Stored text must not control the terminal: control characters become spaces, bidirectional controls are removed.
_CONTROL_CHARACTERS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")
_BIDIRECTIONAL_CONTROLS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_REPLACEMENTS = {**_CONTROL_CHARACTERS, **_BIDIRECTIONAL_CONTROLS}
# Texts of several lines keep their tabs and line breaks.
_REPLACEMENTS_IN_LINES = {
    code_point: replacement for code_point, replacement in _REPLACEMENTS.items() if chr(code_point) not in "\t\n"
}


class OutputClosed(Exception):  # noqa: N818 - not an error: the reader of the output closed it
    pass


class Column(msgspec.Struct, frozen=True):
    title: str
    cell: Callable[[Any], Any]
    align_right: bool = False
    shrinks: bool = False
    """Whether this column is shortened if the terminal is too narrow."""
    max_share: float = 1.0
    """The greatest part of a terminal's width. A longer text loses its beginning."""
    hides_if_empty: bool = False
    """Whether a terminal does not show this column if all its cells are empty. A pipe always gets it."""


def print_details(
    ctx: typer.Context, struct: WireStruct, *, exclude: Sequence[str] = (), texts: Mapping[str, str] | None = None
) -> None:
    """Print all fields of a struct. A table leaves out empty fields and those in `exclude`.

    `texts` has what a table shows for a field instead of its value.
    """
    if _print_as_json(ctx, struct, [struct]):
        return
    table = _table(header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for field in type(struct).__struct_fields__:
        value = (texts or {}).get(field, getattr(struct, field))
        if field not in exclude and value not in (None, "", {}, []):
            table.add_row(field, format_value(value))
    _print(table)


def print_rows(
    ctx: typer.Context,
    items: Sequence[Any],
    columns: Sequence[Column],
    document: WireStruct | None = None,
    *,
    empty: str = "",
) -> None:
    """Print a list as a table, as JSON lines, or as one JSON document.

    The JSON document is the list itself, or `document`, the result that contains the list and other fields.
    `empty` is the notice instead of a table without rows.
    """
    if _print_as_json(ctx, items if document is None else document, items):
        return
    if not items:
        if empty:
            print_notice(empty)
        return

    width = terminal_width()
    table = _table(header=True)
    shown = []
    for column in columns:
        cells = [format_value(column.cell(item)) for item in items]
        if width is not None and column.hides_if_empty and all(cell in {"", "-"} for cell in cells):
            continue
        if width is not None and column.max_share < 1:
            cells = [_shorten_start(cell, int(width * column.max_share)) for cell in cells]
        table.add_column(column.title, justify="right" if column.align_right else "left", no_wrap=not column.shrinks)
        shown.append(cells)
    for row in zip(*shown, strict=True):
        table.add_row(*(lazy.rich_text.Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    _print(table)


def terminal_width() -> int | None:
    """Return the width of the terminal, or None if the output is not printed on one."""
    console = lazy.rich_console.Console()
    return console.width if console.is_terminal else None


def _shorten_start(text: str, width: int) -> str:
    """Shorten a text from its beginning.

    >>> _shorten_start("resources/manual/manual.pdf#12", 16)
    '…l/manual.pdf#12'
    """
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"


def print_json_lines(items: Iterable[Any]) -> None:
    """Print each item as a line of JSON, as soon as it is available."""
    for item in items:
        _write(msgspec.json.encode(item) + b"\n")


def print_blank_line() -> None:
    _write("\n")


def print_result(ctx: typer.Context, result: WireStruct, sentence: str) -> None:
    """Print the result of a change: as a sentence, or as JSON."""
    if not _print_as_json(ctx, result, [result]):
        _write(f"{one_line(sentence)}\n")


def print_text(ctx: typer.Context, content: str, *, exact: bool = False) -> None:
    """Print a text of several lines, without terminal controls and with a line break at its end.

    With `exact`, a file or a pipe gets the text unchanged.
    """
    if _print_as_json(ctx, content, [content]):
        return
    if exact and not sys.stdout.isatty():
        _write(content.encode())
    elif content:
        _write("{}\n".format(content.translate(_REPLACEMENTS_IN_LINES).removesuffix("\n")))


def print_line(ctx: typer.Context, struct: WireStruct, *cells: tuple[str, int, str]) -> None:
    """Print one item of a list before the next ones are known. A cell is a string, its width and its style."""
    if options.get(ctx).output == "jsonl":
        print_json_lines([struct])
        return

    grid = lazy.rich_table.Table.grid(padding=(0, 2, 0, 0))
    for _text, width, _style in cells[:-1]:
        grid.add_column(width=width, no_wrap=True)
    grid.add_column(overflow="fold")  # the last cell has no fixed width
    grid.add_row(*(lazy.rich_text.Text(one_line(text), style) for text, _width, style in cells))
    _print(grid)


def print_json(value: Any) -> None:
    _write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def print_notice(sentence: str) -> None:
    """Print a sentence to standard error."""
    sys.stderr.write(f"{one_line(sentence)}\n")


def print_error(sentence: str) -> None:
    lazy.rich_console.Console(stderr=True, soft_wrap=True, highlight=False).print(
        lazy.rich_text.Text.assemble(("error: ", "bold red"), one_line(sentence))
    )


def format_value(value: Any) -> str:
    """Format a value for a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return "-"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return one_line(", ".join(value))
    return one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "file"), count(1_200, "file")
    ('1 file', '1,200 files')
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def one_line(text: str) -> str:
    r"""Replace line breaks and terminal controls by spaces, and truncate a long text.

    >>> one_line("two\nlines, \x1b[31mred")
    'two lines, [31mred'
    """
    flat = " ".join(text[: MAX_CELL_WIDTH * 4].translate(_REPLACEMENTS).split())
    return flat if len(flat) <= MAX_CELL_WIDTH else f"{flat[: MAX_CELL_WIDTH - 1]}…"


def flush() -> None:
    """Flush the output. If that fails, discard it, so that Python does not try again at exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        raise OutputClosed from None
    except OSError:
        _discard_output()
        raise


def _discard_output() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _print_as_json(ctx: typer.Context, document: Any, items: Iterable[Any]) -> bool:
    """Print JSON if the output format is `json` or `jsonl`, and return whether it is."""
    match options.get(ctx).output:
        case "json":
            print_json(document)
        case "jsonl":
            print_json_lines(items)
        case _:
            return False
    return True


def _table(*, header: bool) -> Any:
    return lazy.rich_table.Table(
        box=None, show_header=header, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"
    )


def _print(renderable: Any) -> None:
    console = lazy.rich_console.Console(highlight=False)
    if not console.is_terminal:
        console.width = UNLIMITED_WIDTH
    with console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    _write(text if console.is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def _write(data: str | bytes) -> None:
    """Write bytes unchanged (JSON is always UTF-8), and text in the terminal's encoding, escaped where needed."""
    if sys.stdout is None:  # it was closed before the program started
        raise OutputClosed
    encoding = sys.stdout.encoding or "utf-8"
    remaining = memoryview(data if isinstance(data, bytes) else data.encode(encoding, "backslashreplace"))
    try:
        sys.stdout.flush()
        while remaining:  # an unbuffered write (PYTHONUNBUFFERED) may write only a part
            remaining = remaining[sys.stdout.buffer.write(remaining) or 0 :]
    except BrokenPipeError:
        _discard_output()
        raise OutputClosed from None
