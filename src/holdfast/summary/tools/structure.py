"""Structured data as short text: `key=value` pairs, and lists of objects as tables that name their columns once."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.text.sentences import flat
from holdfast.text.shortening import shorten

MAX_DECODED_CHARS = 64_000
MAX_DEPTH = 6
MAX_ROWS = 60
MAX_FIELDS = 80
_TEXT_WIDTH = 120
_CELL_WIDTH = 60
_KEY_CHARS = 60
_MANY = 4
"""The rows from which on a value that all share is stated once."""
_IDENTIFYING = 2
"""The cells that say which row it is."""
_SHORT = 3
_NAMING = re.compile(r"(?:^|[_\-])(?:id|no|number|code|key)$|[a-z](?:Id|ID|No|Number|Code|Key)$")
"""How the key of a value ends that names something, however short it is."""
_FLAGS = frozenset({"true", "false", "yes", "no", "none", "null", "n/a"})
MAX_DETAIL = 2
_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d)?(?:\+\d)?(?: ?[AaPp][Mm])?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:[\d.:+\-]{2,20}Z?")


class Field(NamedTuple):
    """A piece of structured data: pairs, or a table as its heading and rows. Items may be shown apart."""

    heading: str
    items: list[str]
    joint: str

    def __str__(self) -> str:
        return f"{self.heading}{self.joint.join(self.items)}"


class Known:
    """What a reader of values knows from those before: names of columns, rows, and what holds throughout."""

    def __init__(self, leaves: Sequence[tuple[str, str, str]] | None = None, detail: int = MAX_DETAIL) -> None:
        """`leaves` are all values that will be shown: owner, path, text. With less detail, minor fields are left out.

        Without `leaves` everything is shown, and nothing is known to be the same throughout.
        """
        self.columns: dict[str, tuple[str, ...]] = {}
        self.rows: set[tuple[str, ...]] = set()
        self._stated: set[str] = set()
        self._texts: dict[str, str | None] = {}
        self._kept: set[tuple[str, str]] | None = None if leaves is None or detail == MAX_DETAIL else set()
        for owner, path, text in leaves or ():
            key = path.rpartition(".")[2]
            self._texts[key] = text if self._texts.get(key, text) == text else None
            if self._kept is not None and (_detail(text) <= detail or _NAMING.search(key)):
                self._kept.add((owner, path))

    def is_constant(self, key: str, text: str) -> bool:
        """Whether the pair is the same wherever the key occurs."""
        return self._texts.get(key) == text

    def is_stated(self, key: str, text: str) -> bool:
        """Whether a constant pair was shown before. Counts as shown from now on."""
        if not self.is_constant(key, text):
            return False
        known = key in self._stated
        self._stated.add(key)
        return known

    @property
    def keeps_all(self) -> bool:
        return self._kept is None

    def keeps(self, owner: str, path: str) -> bool:
        """Whether a field has a value that matters enough somewhere."""
        return self._kept is None or (owner, path) in self._kept


def decode(text: Any) -> Any:
    """The object or list that a JSON text stands for; anything else as it is.

    >>> decode('{"a": 1}'), decode("plain"), decode('{"a": ')
    ({'a': 1}, 'plain', '{"a": ')
    """
    if not isinstance(text, str) or len(text) > MAX_DECODED_CHARS or text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def is_structured(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def pairs(value: Any) -> str:
    """An object on one line.

    >>> pairs({"day": "Friday", "stops": [{"at": "A", "for": 2}, {"at": "B", "for": 3}]})
    'day=Friday, stops (at, for): A, 2; B, 3'
    """
    return ", ".join(str(each) for each in fields(value))


def scalars(value: Any) -> Iterator[tuple[str, str]]:
    """Every key with its scalar value, at any depth.

    >>> list(scalars({"a": 1, "b": [{"c": "x"}, {"c": "y"}], "d": ["z"]}))
    [('a', '1'), ('c', 'x'), ('c', 'y'), ('d', 'z')]
    """
    return ((path.rpartition(".")[2], text) for path, text in leaves_of(value) if path)


def leaves_of(value: Any) -> Iterator[tuple[str, str]]:
    """Every scalar with the keys that lead to it, joined by dots."""
    return _leaves("", value, MAX_DEPTH)


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        rows = _keyed_rows(value)
        for name, inner in value.items() if depth and rows is None else ():
            yield from _leaves(_below(path, name), inner, depth - 1)
        for row in rows[:MAX_ROWS] if depth and rows is not None else ():
            yield from _leaves(path, row, depth - 1)
    elif isinstance(value, list):
        for inner in value[:MAX_ROWS] if depth else ():
            yield from _leaves(path, inner, depth - 1)
    elif text := _scalar(value):
        yield path, text


def _below(path: str, name: Any) -> str:
    key = _key(name).replace(".", "_")
    return f"{path}.{key}" if path else key


def fields(
    value: Any, implied: Mapping[str, str] | None = None, known: Known | None = None, owner: str = ""
) -> list[Field]:
    """The pairs and tables of a value, in its order, without the pairs that are `implied` or `known`.

    Values of the same `owner` share their columns, which are named once.
    """
    walk = _Walk(implied or {}, known or Known(), owner)
    return list(walk.fields("", value, MAX_DEPTH))[:MAX_FIELDS]


class _Walk:
    """One walk through a value."""

    def __init__(self, implied: Mapping[str, str], known: Known, owner: str) -> None:
        self._implied = implied
        self._known = known
        self._owner = owner

    def fields(self, path: str, value: Any, depth: int) -> Iterator[Field]:
        if isinstance(value, dict):
            yield from self._object(path, value, depth)
        elif isinstance(value, list):
            yield from self._list(path, value, depth)
        elif text := _scalar(value):
            yield Field("", [f"{path}={text}" if path else text], ", ")

    def _object(self, path: str, value: dict[Any, Any], depth: int) -> Iterator[Field]:
        """The scalars of an object come first, then what is inside it."""
        rows = _keyed_rows(value)
        if rows is not None:
            yield from self._table(path, rows, depth)
            return
        plain = {name: inner for name, inner in value.items() if not isinstance(inner, dict | list)}
        if path and plain:
            yield from self._table(path, [plain], depth)
        elif plain:
            yield from self._pairs(plain)
        for name, inner in value.items():
            if name not in plain and inner and depth:
                yield from self.fields(_below(path, name), inner, depth - 1)

    def _pairs(self, value: dict[Any, Any]) -> Iterator[Field]:
        """`key=value`; where the same keys were shown before, in the same order, the values alone."""
        shown = {
            key: text
            for name, inner in value.items()
            if (text := _scalar(inner)) and not self._is_known(key := _key(name), text) and self._keeps(name)
        }
        if not shown:
            return
        again = self._known.columns.get(self._owner) == tuple(shown)
        self._known.columns[self._owner] = tuple(shown)
        yield Field("", list(shown.values()) if again else [f"{key}={text}" for key, text in shown.items()], ", ")

    def _list(self, path: str, value: list[Any], depth: int) -> Iterator[Field]:
        if all(isinstance(each, dict) and each for each in value):
            yield from self._table(path, value, depth)
        elif all(isinstance(each, list) for each in value) and depth:
            yield from self._list(path, [each for group in value for each in group], depth - 1)
        else:
            texts = [text for each in value[:MAX_ROWS] if (text := _cell(each, depth))]
            if len(value) > MAX_ROWS:
                texts.append(f"+{len(value) - MAX_ROWS} more")
            if texts:
                yield Field(f"{path}=" if path else "", texts, ", ")

    def _table(self, path: str, rows: Sequence[dict[Any, Any]], depth: int) -> Iterator[Field]:
        """Rows as values in the order of their columns, which are named once. Of many rows, what all share is too."""
        first = rows[:MAX_ROWS]
        names = list(dict.fromkeys(name for row in first for name in row))[:MAX_FIELDS]
        columns = [_column(name, first, depth) for name in names if self._keeps_column(path, name, first)]
        shared = [column for column in columns if self._is_shared(column)]
        columns = _without_repeats([column for column in columns if column not in shared and any(column.cells)])
        stated = [f"{it.key}={it.cells[0]}" for it in shared if it.cells[0] and not self._is_known(it.key, it.cells[0])]
        if not columns:
            if stated:
                yield Field("", [f"{len(rows)} {path} ({', '.join(stated)})" if path else ", ".join(stated)], "; ")
            return
        labels = tuple(column.label for column in columns)
        place = f"{self._owner} {path}"
        again = self._known.columns.get(place) == labels
        self._known.columns[place] = labels
        every = f"all {', '.join(stated)}" if stated else ""
        named = "; ".join(part for part in ("" if again else ", ".join(_short(labels)), every) if part)
        heading = f"{path} ({named}): " if named and path else f"{path}: " if path else f"({named}): " if named else ""
        items = [self._row([column.cells[at] for column in columns]) for at in range(len(first))]
        items = [item for item in dict.fromkeys(items) if item]
        if len(rows) > MAX_ROWS:
            items.append(f"+{len(rows) - MAX_ROWS} more")
        yield Field(heading, items, "; ")

    def _keeps(self, name: Any) -> bool:
        return self._known.keeps(self._owner, _below("", name))

    def _keeps_column(self, path: str, name: Any, rows: Sequence[dict[Any, Any]]) -> bool:
        if self._known.keeps_all:
            return True
        paths = {below for row in rows for below, _ in _leaves(_below(path, name), row.get(name), 2)}
        return any(self._known.keeps(self._owner, below) for below in paths)

    def _is_shared(self, column: "_Column") -> bool:
        """Whether a column says the same in all rows, and one statement of it is shorter."""
        if len(set(column.cells)) > 1:
            return False
        text = column.cells[0]
        return (
            len(column.cells) >= _MANY
            or self._implied.get(column.key) == text
            or (len(column.cells) > 1 and self._known.is_constant(column.key, text))
        )

    def _row(self, cells: Sequence[str]) -> str:
        """A row, whole the first time; again, its first cells say which one it is."""
        row = tuple(cells)
        if row in self._known.rows and len(row) > _IDENTIFYING:
            return ", ".join(row[:_IDENTIFYING])
        self._known.rows.add(row)
        while row and not row[-1]:
            row = row[:-1]
        return ", ".join(cell or "-" for cell in row)

    def _is_known(self, key: str, text: str) -> bool:
        return self._implied.get(key) == text or self._known.is_stated(key, text)


class _Column(NamedTuple):
    key: str
    label: str
    cells: list[str]


def _column(name: Any, rows: Sequence[dict[Any, Any]], depth: int) -> _Column:
    """Where each cell is an object with the same keys, the label names them."""
    values: list[Any] = [row.get(name) for row in rows]
    first = values[0]
    if (
        isinstance(first, dict)
        and first
        and all(isinstance(value, dict) and list(value) == list(first) for value in values)
        and not any(isinstance(inner, dict | list) for value in values for inner in value.values())
    ):
        cells = ["/".join(_scalar(inner, _CELL_WIDTH) or "-" for inner in value.values()) for value in values]
        return _Column(_key(name), f"{_key(name)}({'/'.join(map(_key, first))})", cells)
    return _Column(_key(name), _key(name), [_cell(value, depth) for value in values])


def _short(labels: Sequence[str]) -> list[str]:
    """Labels, where the names inside one are not repeated by the next."""
    found: list[str] = []
    inside = ""
    for label in labels:
        name, bracket, names = label.partition("(")
        found.append(f"{name}(same)" if bracket and names == inside else label)
        inside = names or inside
    return found


def _without_repeats(columns: list[_Column]) -> list[_Column]:
    """The columns without those that only repeat a part of another: `visa` beside `visa_7447`."""
    return [
        column
        for column in columns
        if not any(
            other is not column and all(_is_part(one, two) for one, two in zip(column.cells, other.cells, strict=True))
            for other in columns
        )
    ]


def _is_part(one: str, other: str) -> bool:
    """Whether a cell adds nothing to the other. A number inside a longer one is another number."""
    return one != other and one in other and (not one or not one.isdigit())


def _keyed_rows(value: dict[Any, Any]) -> list[dict[Any, Any]] | None:
    """The rows of an object that is really a list of objects under their ids; None if it is not."""
    rows = list(value.values())
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):  # noqa: PLR2004 - one is no list
        return None
    if any(rows[0].keys().isdisjoint(row) for row in rows):
        return None
    return [
        row if any(str(inner) == str(key) for inner in row.values()) else {"key": key, **row}
        for key, row in value.items()
    ]


def _cell(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        return _flat_object(value) if depth else ""
    if isinstance(value, list):
        return shorten(" ".join(_cell(each, depth - 1) for each in value[:MAX_ROWS]), 2 * _CELL_WIDTH) if depth else ""
    return _scalar(value, _CELL_WIDTH)


def _flat_object(value: dict[Any, Any]) -> str:
    return ", ".join(
        f"{_key(name)}={text}" for name, inner in list(value.items())[:MAX_FIELDS] if (text := _cell(inner, 1))
    )


def _detail(text: str) -> int:
    """How much of a detail a value is: 0 for what is asked for by itself, 2 for what rarely is.

    >>> [_detail(text) for text in ("gold", "2024-05-05", "120", "06:00:00", "12", "no", "2024-05-05T23:00:15")]
    [0, 0, 0, 1, 2, 2, 2]
    """
    if (len(text) < _SHORT and text.isdigit()) or text.lower() in _FLAGS or _MOMENT.fullmatch(text):
        return 2
    return 1 if _TIME.fullmatch(text) else 0


def _key(name: Any) -> str:
    return flat(str(name))[:_KEY_CHARS]


def _scalar(value: Any, width: int = _TEXT_WIDTH) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return shorten(flat(value[: 8 * width]), width)
    return msgspec.json.encode(value).decode()
