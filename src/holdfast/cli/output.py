"""Everything that is printed: data to the output, as a table or as JSON; notes and errors to the error output."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer

from holdfast import lazy
from holdfast.cli import options
from holdfast.model.base import WireStruct

MAX_CELL_WIDTH = 500
"""More than this of one text is no use in a table."""
WIDE = 10_000
"""The width where there is no terminal to fit in."""

# What moves the cursor or turns the text around must not come from stored text into a terminal.
_BREAKING = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")
_TURNING = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_UNPRINTABLE = {**_BREAKING, **_TURNING}
_COMMANDING = {point: mark for point, mark in _UNPRINTABLE.items() if chr(point) not in "\t\n"}


class Unread(Exception):  # noqa: N818 - not an error: whoever read the output has gone
    pass


class Column(msgspec.Struct, frozen=True):
    title: str
    cell: Callable[[Any], Any]
    right: bool = False
    gives_way: bool = False
    """Whether this is the column that is shortened where the terminal is too narrow."""


def details(ctx: typer.Context, noun: WireStruct, *, apart: Sequence[str] = ()) -> None:
    """One thing with all its fields; a table leaves out the empty ones, and those that stand `apart`."""
    if _as_json(ctx, noun, [noun]):
        return
    table = _table(header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for field in type(noun).__struct_fields__:
        value = getattr(noun, field)
        if field not in apart and value not in (None, "", {}, []):
            table.add_row(field, shown(value))
    _print(table)


def rows(
    ctx: typer.Context, items: Sequence[Any], columns: Sequence[Column], document: WireStruct | None = None
) -> None:
    """A list of things. As one JSON document it is `document`, where the wire has more than the bare list."""
    if _as_json(ctx, items if document is None else document, items):
        return

    text = lazy.rich_text.Text
    table = _table(header=True)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.gives_way)
    for item in items:
        table.add_row(*(text(shown(column.cell(item)), no_wrap=True, overflow="ellipsis") for column in columns))
    if items:
        _print(table)


def lines(items: Iterable[Any]) -> None:
    """A line of JSON for each item, as they come."""
    for item in items:
        _write(msgspec.json.encode(item) + b"\n")


def gap() -> None:
    """An empty line between two tables."""
    _write("\n")


def said(ctx: typer.Context, noun: WireStruct, sentence: str) -> None:
    """What was done, where there is nothing more to see."""
    if not _as_json(ctx, noun, [noun]):
        _write(f"{one_line(sentence)}\n")


def text(ctx: typer.Context, content: str, *, exact: bool = False) -> None:
    """A text of several lines. An `exact` one is not changed, but on a terminal, which it must not command."""
    if _as_json(ctx, content, [content]):
        return
    if exact and not sys.stdout.isatty():
        _write(content.encode())
    elif content:
        _write("{}\n".format(content.translate(_COMMANDING).removesuffix("\n")))


def line(ctx: typer.Context, noun: WireStruct, *texts: tuple[str, int, str]) -> None:
    """One line of a list that is printed as it comes about: texts with their widths and styles, the last as it is."""
    if options.of(ctx).output == "jsonl":
        lines([noun])
        return

    grid = lazy.rich_table.Table.grid(padding=(0, 2, 0, 0))
    for _text, width, _style in texts[:-1]:
        grid.add_column(width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(*(lazy.rich_text.Text(one_line(text), style) for text, _width, style in texts))
    _print(grid)


def document(value: Any) -> None:
    _write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def note(sentence: str) -> None:
    """A word beside the data, for whoever watches."""
    sys.stderr.write(f"{one_line(sentence)}\n")


def error(sentence: str) -> None:

    lazy.rich_console.Console(stderr=True, soft_wrap=True, highlight=False).print(
        lazy.rich_text.Text.assemble(("error: ", "bold red"), one_line(sentence))
    )


def shown(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return "-"
    return one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def one_line(text: str) -> str:
    r"""A text without what would break a line or command a terminal, and not too long.

    >>> one_line("two\nlines, \x1b[31mred")
    'two lines, [31mred'
    """
    flat = " ".join(text[: MAX_CELL_WIDTH * 4].translate(_UNPRINTABLE).split())
    return flat if len(flat) <= MAX_CELL_WIDTH else f"{flat[: MAX_CELL_WIDTH - 1]}…"


def finish() -> None:
    """See that what was printed has left. What cannot leave is dropped, so that Python does not try again at exit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop()
        raise Unread from None
    except OSError:
        drop()
        raise


def drop() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _as_json(ctx: typer.Context, whole: Any, items: Iterable[Any]) -> bool:
    """Print JSON if that was asked for."""
    match options.of(ctx).output:
        case "json":
            document(whole)
        case "jsonl":
            lines(items)
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
        console.width = WIDE
    with console.capture() as captured:
        console.print(renderable)
    text = captured.get()
    _write(text if console.is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def _write(data: str | bytes) -> None:
    """JSON goes out as UTF-8 whatever the terminal speaks; of a table, what it cannot show is spelled out."""
    if sys.stdout is None:  # it was closed before the program began
        raise Unread
    encoding = sys.stdout.encoding or "utf-8"
    left = memoryview(data if isinstance(data, bytes) else data.encode(encoding, "backslashreplace"))
    try:
        sys.stdout.flush()
        while left:  # where output is unbuffered (PYTHONUNBUFFERED), a write may be done in part
            left = left[sys.stdout.buffer.write(left) or 0 :]
    except BrokenPipeError:
        drop()
        raise Unread from None
