"""Excel workbooks: sections by sheets and blocks of rows."""

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from holdfast import lazy
from holdfast.documents.binary_formats.line_writer import LineWriter
from holdfast.documents.packages import open_package
from holdfast.documents.parsed import Extracted
from holdfast.text.sentences import to_single_line
from holdfast.text.shortening import shorten

MAX_ROWS = 1_100_000
"""How many rows of all sheets are read, empty ones included."""
MAX_CELLS = 1_000_000
MAX_COLUMNS = 256
MAX_SHEETS = 500
MAX_EMPTY_ROWS = 10_000
"""A sheet ends before so many empty rows."""
BLOCK_CHARS = 2_500
_HEADER_CHARS = 80


class _Budget:
    """What may still be read of a workbook."""

    def __init__(self) -> None:
        self.rows = MAX_ROWS
        self.cells = MAX_CELLS

    def is_spent(self) -> bool:
        return self.rows <= 0 or self.cells <= 0


def parse_xlsx(data: bytes) -> Extracted:
    """Return the cells of a workbook, row by row, separated by `|`. A formula is shown by its last value."""
    open_package(data).close()
    workbook = lazy.openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    writer, budget = LineWriter(), _Budget()
    names: list[str] = []
    try:
        for sheet in workbook.worksheets[:MAX_SHEETS]:
            names.append(sheet.title)
            _write_sheet(sheet, writer, budget)
            if budget.is_spent() or writer.is_full:
                writer.notes.append(f"The workbook is too large; it was read up to the sheet {sheet.title[:100]!r}.")
                break
    finally:
        workbook.close()
    core = workbook.properties
    about = f"Workbook with {'the sheets' if len(names) > 1 else 'the sheet'} {', '.join(names[:20])}."
    metadata = {"author": core.creator, "subject": core.subject, "sheets": names[:100], "description": about}
    text, sections = writer.finish()
    return Extracted(text, sections, core.title or "", metadata, writer.notes, merges=False)


def _write_sheet(sheet: Any, writer: LineWriter, budget: _Budget) -> None:
    """Write the rows of a sheet. Its first row is its header, which the title of each block repeats."""
    header = ""
    begun_at = 0
    for number, line in _rows(sheet, budget, writer.notes):
        if writer.is_full:
            return
        sample = to_single_line(line.replace(" | ", ", ")[:500])
        if not begun_at:
            header = shorten(sample, _HEADER_CHARS)
            writer.begin((sheet.title, header), None, header)
            writer.add(f"# {sheet.title}\n")
            begun_at = writer.length
        elif writer.length - begun_at > BLOCK_CHARS:
            writer.begin((sheet.title, f"{header}, rows from {number}"), None, f"{header}: {sample}")
            begun_at = writer.length
        writer.add(line)
    writer.add("")


def _rows(sheet: Any, budget: _Budget, notes: list[str]) -> Iterator[tuple[int, str]]:
    """Return the number and the cells of each row that is not empty."""
    sheet.reset_dimensions()  # what a file says about its size may be wrong
    empty = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS), 1):
        budget.rows -= 1
        size = len(row) - row.count(None)
        budget.cells -= size
        empty = 0 if size else empty + 1
        if empty > MAX_EMPTY_ROWS:
            notes.append(
                f"Rows of the sheet {sheet.title[:100]!r} after {number - empty} were left out: many are empty."
            )
            return
        if budget.is_spent():
            return
        if not size:
            continue
        values = list(row)
        while values[-1] is None:
            values.pop()
        yield number, " | ".join(map(_cell, values))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes") if value.time() != time() else value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value).replace("\n", " ")
