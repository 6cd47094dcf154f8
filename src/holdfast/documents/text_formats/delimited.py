"""CSV and TSV: sections by blocks of rows, with the columns in each title."""

import csv
from collections.abc import Iterator

from holdfast.documents.lines import MAX_SECTIONS, iter_lines
from holdfast.documents.parsed import Extracted, Section
from holdfast.text.sentences import to_single_line
from holdfast.text.shortening import shorten

BLOCK_CHARS = 2_500
MAX_ROW_CHARS = 4_000
"""How many characters of one row are read for an abstract or for the names of columns."""
_COLUMNS_CHARS = 80
_SAMPLE_CHARS = 100


def parse_delimited(text: str, extension: str) -> Extracted:
    """Split a table by blocks of rows. A row in quotes may span lines."""
    delimiter = "\t" if extension == "tsv" else _delimiter(text[:MAX_ROW_CHARS])
    sections: list[Section] = []
    columns: list[str] = []
    header = sample = ""
    start = count = first = 0  # the position of the block, the rows before the current one, the first row of the block
    for at, row in _rows(text):
        if count == 0:
            columns = _cells(row, delimiter)
            header = shorten(to_single_line(", ".join(columns)), _COLUMNS_CHARS)
        elif not first:
            first, sample = count, _sample(row, delimiter)
        elif at - start >= BLOCK_CHARS and len(sections) < MAX_SECTIONS:
            sections.append(_block(header, sample, start, at, first, count - 1))
            start, first, sample = at, count, _sample(row, delimiter)
        count += 1
    rows = max(0, count - 1)
    sections.append(_block(header, sample, start, len(text), first, rows))
    about = f"Table with {rows} rows and the columns {header}." if columns else ""
    return Extracted(text, sections, "", {"columns": columns[:100], "rows": rows, "description": about}, merges=False)


def _block(header: str, sample: str, start: int, end: int, first: int, last: int) -> Section:
    name = f"{header}, rows {first} to {last}" if first else header
    return Section((name,), start, end, None, -1, f"{header}: {sample}" if sample else header)


def _rows(text: str) -> Iterator[tuple[int, str]]:
    """Return where each row begins, and its first line. A line break in quotes does not end a row."""
    is_quoted = False
    for at, line in iter_lines(text):
        if not is_quoted and line.strip():
            yield at, line
        is_quoted ^= line.count('"') % 2 == 1


def _delimiter(sample: str) -> str:
    line = sample.partition("\n")[0]
    return max(",;\t|", key=line.count)


def _cells(row: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader([row[:MAX_ROW_CHARS]], delimiter=delimiter), [])
    except csv.Error:
        cells = row[:MAX_ROW_CHARS].split(delimiter)
    return [cell.strip().removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}") for cell in cells]


def _sample(row: str, delimiter: str) -> str:
    return shorten(to_single_line(", ".join(cell for cell in _cells(row, delimiter) if cell)), _SAMPLE_CHARS)
