"""CSV and TSV: sections by blocks of rows, with the columns in each title."""

import csv

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
    rows = _row_starts(text)
    columns = _cells(text[: rows[1] if len(rows) > 1 else len(text)], delimiter)
    header = shorten(to_single_line(", ".join(columns)), _COLUMNS_CHARS)
    sections: list[Section] = []
    first = 0
    for row in range(1, len(rows) + 1):
        end = rows[row] if row < len(rows) else len(text)
        if row < len(rows) and end - rows[first] < BLOCK_CHARS:
            continue
        begin = max(first, 1)
        name = f"{header}, rows {begin} to {row - 1}" if row > begin else header
        sample = _sample(text[rows[begin] : rows[begin] + MAX_ROW_CHARS], delimiter) if begin < len(rows) else ""
        sections.append(Section((name,), rows[first], end, None, -1, f"{header}: {sample}" if sample else header))
        first = row
    count = max(0, len(rows) - 1)
    about = f"Table with {count} rows and the columns {header}." if columns else ""
    return Extracted(text, sections, "", {"columns": columns[:100], "rows": count, "description": about}, merges=False)


def _row_starts(text: str) -> list[int]:
    """Return where rows begin. A line break in quotes does not end a row."""
    starts: list[int] = []
    at, is_quoted = 0, False
    for line in text.split("\n"):
        if not is_quoted and line.strip():
            starts.append(at)
        is_quoted ^= line.count('"') % 2 == 1
        at += len(line) + 1
    return starts


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
    line = row.partition("\n")[0]
    return shorten(to_single_line(", ".join(cell for cell in _cells(line, delimiter) if cell)), _SAMPLE_CHARS)
