"""Structured data as short text: `key=value` pairs, and lists of objects as tables with one heading."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.json_documents import json_decoder
from holdfast.text.sentences import to_single_line
from holdfast.text.shortening import shorten

MAX_DECODED_CHARS = 64_000
MAX_DEPTH = 6
MAX_ROWS = 60
MAX_FIELDS = 80
_MAX_TEXT_WIDTH = 120
_MAX_CELL_WIDTH = 60
_MAX_KEY_CHARS = 60
_MIN_ROWS_WITH_SHARED_VALUES = 4
"""Number of rows from which a value that all of them have is stated once."""
_IDENTIFYING_CELLS = 2
"""How many cells identify a row that was shown before."""
_MIN_NUMBER_CHARS = 3
_NAMING_KEY = re.compile(r"(?:^|[_\-])(?:id|no|number|code|key)$|[a-z](?:Id|ID|No|Number|Code|Key)$")
"""Keys whose values identify something, even if they are short."""
_FLAGS = frozenset({"true", "false", "yes", "no", "none", "null", "n/a"})
MAX_DETAIL = 2
"""The level of detail at which all fields are shown. At 0 only the most important ones are."""
_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d)?(?:\+\d)?(?: ?[AaPp][Mm])?")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:[\d.:+\-]{2,20}Z?")


class Field(NamedTuple):
    """A part of structured data: pairs, or a table with a heading and rows. Items may be put on several lines."""

    heading: str
    items: list[str]
    separator: str

    def __str__(self) -> str:
        return f"{self.heading}{self.separator.join(self.items)}"


class ShownValues:
    """The values shown so far, which need not be repeated: headings, rows, and pairs that are always the same."""

    def __init__(self, leaves: Sequence[tuple[str, str, str]] | None = None, detail: int = MAX_DETAIL) -> None:
        """Take all values that will be shown as `leaves` (tool, path, text). A lower `detail` leaves out minor fields.

        Without `leaves` all fields are shown, and no pair is assumed to be constant.
        """
        self.columns: dict[str, tuple[str, ...]] = {}
        self.rows: set[tuple[str, ...]] = set()
        self._stated_keys: set[str] = set()
        self._constants: dict[str, str | None] = {}
        self._kept: set[tuple[str, str]] | None = None if leaves is None or detail == MAX_DETAIL else set()
        for tool, path, text in leaves or ():
            key = path.rpartition(".")[2]
            self._constants[key] = text if self._constants.get(key, text) == text else None
            if self._kept is not None and (_detail_level(text) <= detail or _NAMING_KEY.search(key)):
                self._kept.add((tool, path))

    def is_constant(self, key: str, text: str) -> bool:
        """Return whether the key has this value wherever it occurs."""
        return self._constants.get(key) == text

    def mark_stated(self, key: str, text: str) -> bool:
        """Record that a pair is shown. Return whether it is constant and was shown before."""
        if not self.is_constant(key, text):
            return False
        was_stated = key in self._stated_keys
        self._stated_keys.add(key)
        return was_stated

    @property
    def keeps_all(self) -> bool:
        return self._kept is None

    def keeps(self, tool: str, path: str) -> bool:
        """Return whether the level of detail includes a field, because one of its values is important enough."""
        return self._kept is None or (tool, path) in self._kept


_decode = json_decoder().decode


def decode_json(text: Any) -> Any:
    """Decode a text that is a JSON object or list. Return any other value unchanged.

    >>> decode_json('{"a": 1}'), decode_json("plain"), decode_json('{"a": ')
    ({'a': 1}, 'plain', '{"a": ')
    """
    if not isinstance(text, str) or len(text) > MAX_DECODED_CHARS or text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def is_structured(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def format_pairs(value: Any) -> str:
    """Format an object or a list on one line.

    >>> format_pairs({"day": "Friday", "stops": [{"at": "A", "for": 2}, {"at": "B", "for": 3}]})
    'day=Friday, stops (at, for): A, 2; B, 3'
    """
    return ", ".join(str(field) for field in format_fields(value))


def scalars(value: Any) -> Iterator[tuple[str, str]]:
    """Return every key that has a scalar value, with the value, at any depth.

    >>> list(scalars({"a": 1, "b": [{"c": "x"}, {"c": "y"}], "d": ["z"]}))
    [('a', '1'), ('c', 'x'), ('c', 'y'), ('d', 'z')]
    """
    return ((path.rpartition(".")[2], text) for path, text in scalar_paths(value) if path)


def scalar_paths(value: Any) -> Iterator[tuple[str, str]]:
    """Return the path of every scalar, its keys joined by dots, with the scalar."""
    return _leaves("", value, MAX_DEPTH)


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        rows = _keyed_rows(value)
        for name, inner in value.items() if depth and rows is None else ():
            yield from _leaves(_join_path(path, name), inner, depth - 1)
        for row in rows[:MAX_ROWS] if depth and rows is not None else ():
            yield from _leaves(path, row, depth - 1)
    elif isinstance(value, list):
        for inner in value[:MAX_ROWS] if depth else ():
            yield from _leaves(path, inner, depth - 1)
    elif text := _format_scalar(value):
        yield path, text


def _join_path(path: str, name: Any) -> str:
    key = _format_key(name).replace(".", "_")
    return f"{path}.{key}" if path else key


def format_fields(
    value: Any, implied: Mapping[str, str] | None = None, shown: ShownValues | None = None, tool: str = ""
) -> list[Field]:
    """Format the pairs and tables of a value in order, without pairs in `implied` and constants in `shown`.

    The heading of columns is not repeated for values of the same `tool`.
    """
    formatter = _Formatter(implied or {}, shown or ShownValues(), tool)
    return list(formatter.fields("", value, MAX_DEPTH))[:MAX_FIELDS]


class _Formatter:
    """Formats one value."""

    def __init__(self, implied: Mapping[str, str], shown: ShownValues, tool: str) -> None:
        self._implied = implied
        self._shown = shown
        self._tool = tool

    def fields(self, path: str, value: Any, depth: int) -> Iterator[Field]:
        if isinstance(value, dict):
            yield from self._object(path, value, depth)
        elif isinstance(value, list):
            yield from self._list(path, value, depth)
        elif text := _format_scalar(value):
            yield Field("", [f"{path}={text}" if path else text], ", ")

    def _object(self, path: str, value: dict[Any, Any], depth: int) -> Iterator[Field]:
        """Format the scalars of an object first, then its objects and lists."""
        rows = _keyed_rows(value)
        if rows is not None:
            yield from self._table(path, rows, depth)
            return
        scalar_items = {name: inner for name, inner in value.items() if not isinstance(inner, dict | list)}
        if path and scalar_items:
            yield from self._table(path, [scalar_items], depth)
        elif scalar_items:
            yield from self._pairs(scalar_items)
        for name, inner in value.items():
            if name not in scalar_items and inner and depth:
                yield from self.fields(_join_path(path, name), inner, depth - 1)

    def _pairs(self, value: dict[Any, Any]) -> Iterator[Field]:
        """Format `key=value` pairs; only the values if the tool's last pairs had the same keys in the same order."""
        texts = {
            key: text
            for name, inner in value.items()
            if (text := _format_scalar(inner))
            and not self._is_known(key := _format_key(name), text)
            and self._keeps(name)
        }
        if not texts:
            return
        has_same_keys = self._shown.columns.get(self._tool) == tuple(texts)
        self._shown.columns[self._tool] = tuple(texts)
        items = list(texts.values()) if has_same_keys else [f"{key}={text}" for key, text in texts.items()]
        yield Field("", items, ", ")

    def _list(self, path: str, value: list[Any], depth: int) -> Iterator[Field]:
        if all(isinstance(item, dict) and item for item in value):
            yield from self._table(path, value, depth)
        elif all(isinstance(item, list) for item in value) and depth:
            yield from self._list(path, [item for group in value for item in group], depth - 1)
        else:
            texts = [text for item in value[:MAX_ROWS] if (text := _format_cell(item, depth))]
            if len(value) > MAX_ROWS:
                texts.append(f"+{len(value) - MAX_ROWS} more")
            if texts:
                yield Field(f"{path}=" if path else "", texts, ", ")

    def _table(self, path: str, rows: Sequence[dict[Any, Any]], depth: int) -> Iterator[Field]:
        """Format rows as values below one heading. Values that all of many rows have are in the heading."""
        first_rows = rows[:MAX_ROWS]
        names = list(dict.fromkeys(name for row in first_rows for name in row))[:MAX_FIELDS]
        columns = [_column(name, first_rows, depth) for name in names if self._keeps_column(path, name, first_rows)]
        shared = [column for column in columns if self._is_shared(column)]
        columns = _without_repeats([column for column in columns if column not in shared and any(column.cells)])
        shared_pairs = [
            f"{column.key}={column.cells[0]}"
            for column in shared
            if column.cells[0] and not self._is_known(column.key, column.cells[0])
        ]
        if not columns:
            if shared_pairs:
                text = ", ".join(shared_pairs)
                yield Field("", [f"{len(rows)} {path} ({text})" if path else text], "; ")
            return
        items = [self._row([column.cells[at] for column in columns]) for at in range(len(first_rows))]
        items = [item for item in dict.fromkeys(items) if item]
        if len(rows) > MAX_ROWS:
            items.append(f"+{len(rows) - MAX_ROWS} more")
        yield Field(self._heading(path, columns, shared_pairs), items, "; ")

    def _heading(self, path: str, columns: "Sequence[_Column]", shared_pairs: Sequence[str]) -> str:
        """Return the heading of a table; without its labels if the tool's last table at `path` had the same."""
        labels = tuple(column.label for column in columns)
        table = f"{self._tool} {path}"
        has_same_labels = self._shown.columns.get(table) == labels
        self._shown.columns[table] = labels
        shared = f"all {', '.join(shared_pairs)}" if shared_pairs else ""
        names = "" if has_same_labels else ", ".join(_abbreviate_labels(labels))
        inner = "; ".join(part for part in (names, shared) if part)
        if not inner:
            return f"{path}: " if path else ""
        return f"{path} ({inner}): " if path else f"({inner}): "

    def _keeps(self, name: Any) -> bool:
        return self._shown.keeps(self._tool, _join_path("", name))

    def _keeps_column(self, path: str, name: Any, rows: Sequence[dict[Any, Any]]) -> bool:
        if self._shown.keeps_all:
            return True
        paths = {leaf for row in rows for leaf, _ in _leaves(_join_path(path, name), row.get(name), 2)}
        return any(self._shown.keeps(self._tool, leaf) for leaf in paths)

    def _is_shared(self, column: "_Column") -> bool:
        """Return whether a column has the same value in all rows, and to state it once is shorter."""
        if len(set(column.cells)) > 1:
            return False
        text = column.cells[0]
        return (
            len(column.cells) >= _MIN_ROWS_WITH_SHARED_VALUES
            or self._implied.get(column.key) == text
            or (len(column.cells) > 1 and self._shown.is_constant(column.key, text))
        )

    def _row(self, cells: Sequence[str]) -> str:
        """Format a row. A row that was shown before is identified by its first cells."""
        row = tuple(cells)
        if row in self._shown.rows and len(row) > _IDENTIFYING_CELLS:
            return ", ".join(row[:_IDENTIFYING_CELLS])
        self._shown.rows.add(row)
        while row and not row[-1]:
            row = row[:-1]
        return ", ".join(cell or "-" for cell in row)

    def _is_known(self, key: str, text: str) -> bool:
        return self._implied.get(key) == text or self._shown.mark_stated(key, text)


class _Column(NamedTuple):
    key: str
    label: str
    cells: list[str]


def _column(name: Any, rows: Sequence[dict[Any, Any]], depth: int) -> _Column:
    """Return a column. If all its cells are flat objects with the same keys, the label has these keys."""
    values: list[Any] = [row.get(name) for row in rows]
    first = values[0]
    if (
        isinstance(first, dict)
        and first
        and all(isinstance(value, dict) and list(value) == list(first) for value in values)
        and not any(isinstance(inner, dict | list) for value in values for inner in value.values())
    ):
        cells = [
            "/".join(_format_scalar(inner, _MAX_CELL_WIDTH) or "-" for inner in value.values()) for value in values
        ]
        return _Column(_format_key(name), f"{_format_key(name)}({'/'.join(map(_format_key, first))})", cells)
    return _Column(_format_key(name), _format_key(name), [_format_cell(value, depth) for value in values])


def _abbreviate_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels, with `(same)` for keys in brackets that the label before has too."""
    abbreviated: list[str] = []
    last_keys = ""
    for label in labels:
        name, bracket, keys = label.partition("(")
        abbreviated.append(f"{name}(same)" if bracket and keys == last_keys else label)
        last_keys = keys or last_keys
    return abbreviated


def _without_repeats(columns: list[_Column]) -> list[_Column]:
    """Return the columns without those whose cells are parts of another column's: `visa` beside `visa_7447`."""
    return [
        column
        for column in columns
        if not any(
            other is not column
            and all(_is_part(cell, other_cell) for cell, other_cell in zip(column.cells, other.cells, strict=True))
            for other in columns
        )
    ]


def _is_part(one: str, other: str) -> bool:
    """Return whether a cell repeats a part of the other. A number inside a longer one is a different number."""
    return one != other and one in other and (not one or not one.isdigit())


def _keyed_rows(value: dict[Any, Any]) -> list[dict[Any, Any]] | None:
    """Return the rows of an object that maps ids to objects of one kind, or None if it does not."""
    rows = list(value.values())
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):  # noqa: PLR2004 - one is no list
        return None
    if any(rows[0].keys().isdisjoint(row) for row in rows):
        return None
    return [
        row if any(str(inner) == str(key) for inner in row.values()) else {"key": key, **row}
        for key, row in value.items()
    ]


def _format_cell(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        return _format_object(value) if depth else ""
    if isinstance(value, list):
        if not depth:
            return ""
        text = " ".join(_format_cell(item, depth - 1) for item in value[:MAX_ROWS])
        return shorten(text, 2 * _MAX_CELL_WIDTH)
    return _format_scalar(value, _MAX_CELL_WIDTH)


def _format_object(value: dict[Any, Any]) -> str:
    return ", ".join(
        f"{_format_key(name)}={text}"
        for name, inner in list(value.items())[:MAX_FIELDS]
        if (text := _format_cell(inner, 1))
    )


def _detail_level(text: str) -> int:
    """Return the lowest level of detail that includes a value: 0 for an important one, 2 for a minor one.

    >>> values = ("gold", "2024-05-05", "120", "06:00:00", "12", "no", "2024-05-05T23:00:15")
    >>> [_detail_level(text) for text in values]
    [0, 0, 0, 1, 2, 2, 2]
    """
    is_small_number = len(text) < _MIN_NUMBER_CHARS and text.isdigit()
    if is_small_number or text.lower() in _FLAGS or _TIMESTAMP.fullmatch(text):
        return 2
    return 1 if _TIME.fullmatch(text) else 0


def _format_key(name: Any) -> str:
    return to_single_line(str(name))[:_MAX_KEY_CHARS]


def _format_scalar(value: Any, width: int = _MAX_TEXT_WIDTH) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return shorten(to_single_line(value[: 8 * width]), width)
    return msgspec.json.encode(value).decode()
