"""What tools were asked and what they answered: lines of values that name their field, tool and source."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.model.messages import Message, Role
from holdfast.model.summaries import Line
from holdfast.summary.tools.pairing import ToolCall, tool_name
from holdfast.summary.tools.structure import MAX_DETAIL, Known, fields, is_structured, leaves_of, pairs, scalars
from holdfast.text.sentences import bounded, flat
from holdfast.text.shortening import shorten
from holdfast.text.tokens import estimate

MAX_LINE_CHARS = 280
_ARGUMENTS_WIDTH, _OWNER_WIDTH = 150, 40
_OUTCOME_WIDTH = 160
_MENTIONED = 4
"""The characters from which on a value that somebody mentions makes its line matter."""
_FAR_OVER = 1.5
"""From so many times the room on, the least detail is tried at once."""
_ROUTINE = 4
"""The calls of a tool from which on each matters less, and those of one shape are a table."""
_MAX_ROUTINE, _LAST_ROWS, _USUAL = 12, 3, 0.8
"""The rows of such a table, how many of the last calls are among them, and what part of all has a usual value."""
_WORD = re.compile(r"\w[\w@./:\-]*")
_DIGIT = re.compile(r"\d")


def value_lines(
    calls: Sequence[ToolCall], messages: Sequence[Message], room: int, yield_cpu: Callable[[], None]
) -> list[Line]:
    """Finished calls with a structured answer, in order, in as much detail as `room` tokens allow.

    Many calls of a tool with plain arguments and answers are the rows of one table.
    """
    answered = [call for call in calls if has_values(call)]
    leaves = [
        (call.name, path, text)
        for call in calls
        for value in (call.arguments, call.answer)
        for path, text in leaves_of(value)
    ]
    groups = _groups(answered)
    weigh = _Weights(answered, messages)
    lines: list[Line] = []
    detail = MAX_DETAIL
    while detail >= 0:
        known = Known(leaves, detail)
        seen: set[str] = set()
        lines = []
        for group in groups:
            yield_cpu()
            sources = [seq for call in group for seq in sources_of(call, messages)]
            texts = _table_of(group, weigh) if len(group) > 1 else _texts(group[0], known, seen)
            lines += [Line(text, sources, weigh(group[-1], text)) for text in texts]
        size = sum(estimate(line.text) for line in lines)
        if size <= room:
            break
        detail = detail - 1 if size < _FAR_OVER * room else min(0, detail - 1)
    return lines


def _groups(calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """The calls one by one, but those together, at the place of their first, that differ in plain values only."""
    shapes: dict[tuple[object, ...], list[ToolCall]] = {}
    for call in calls:
        given, answer = call.arguments, call.answer
        if _is_flat(given) and _is_flat(answer):
            shapes.setdefault((call.name, *given, "→", *answer), []).append(call)
    routine = [group for group in shapes.values() if len(group) >= _ROUTINE]
    first = {id(group[0]): group for group in routine}
    rest = {id(call) for group in routine for call in group[1:]}
    return [first.get(id(call), [call]) for call in calls if id(call) not in rest]


def _is_flat(value: object) -> bool:
    return isinstance(value, dict) and not any(isinstance(inner, dict | list) for inner in value.values())


def _table_of(group: Sequence[ToolCall], weigh: "_Weights") -> Iterator[str]:
    """Calls of one shape as rows: the first, the last, those that somebody speaks of and those that stand out."""
    rows = [_row_of(call) for call in group]
    usual = {key: Counter(str(row.get(key)) for row in rows).most_common(1)[0] for key in rows[0]}
    expected = {key: text for key, (text, times) in usual.items() if times >= _USUAL * len(rows)}
    kept = [
        row
        for number, row in enumerate(rows)
        if number == 0
        or number >= len(rows) - _LAST_ROWS
        or any(str(row.get(key)) != text for key, text in expected.items())
        or weigh.is_mentioned(pairs(row))
    ]
    kept = rows if len(rows) <= _MAX_ROUTINE else [*kept[:1], *kept[1:][1 - _MAX_ROUTINE :]]
    name = tool_name(group[0].name)
    shown = "" if len(kept) == len(rows) else f", {len(kept)} shown"
    pieces = [
        _Piece(field.joint, field.heading if number == 0 else "", "", item)
        for field in fields(kept, owner=name)
        for number, item in enumerate(field.items)
    ]
    joint = " " if pieces and pieces[0].heading else ": "
    yield from _packed(f"{len(rows)} calls of {name}{shown}{joint}", f"more calls of {name}: ", pieces)


def _row_of(call: ToolCall) -> dict[str, Any]:
    """Arguments and answer as one object. A key of both with two values is two columns."""
    given, answer = call.arguments, call.answer
    both = {key for key in given if key in answer and given[key] != answer[key]}
    return {**given, **{f"answered {key}" if key in both else key: value for key, value in answer.items()}}


class _Weights:
    """A line matters more if its call is recent and its tool rarely called, and if somebody speaks of its values."""

    def __init__(self, calls: Sequence[ToolCall], messages: Sequence[Message]) -> None:
        self._times = Counter(call.name for call in calls)
        self._last = max(1, len(messages))
        self._asked = _distinct(_prose(messages, "user"))
        self._spoken = _distinct(_prose(messages, "assistant"))

    def __call__(self, call: ToolCall, text: str) -> float:
        weight = 0.3 + 0.2 * (call.place + 1) / self._last
        weight *= min(1.0, (_ROUTINE / self._times[call.name]) ** 0.5)
        held = _distinct(text)
        weight += 0.3 * (not held.isdisjoint(self._asked)) + 0.2 * (not held.isdisjoint(self._spoken))
        return float(round(weight, 3))

    def is_mentioned(self, text: str) -> bool:
        held = _distinct(text)
        return not held.isdisjoint(self._asked) or not held.isdisjoint(self._spoken)


def _prose(messages: Sequence[Message], role: Role) -> str:
    return "\n".join(bounded(message.text) for message in messages if message.role == role)


def _distinct(text: str) -> set[str]:
    """The words of a text by which a value is recognised: those with a digit, in any spelling of numbers."""
    words = (word.rstrip("./:-") for word in _WORD.findall(text.replace(",", "")))
    return {word for word in words if len(word) >= _MENTIONED and _DIGIT.search(word)}


def has_values(call: ToolCall) -> bool:
    """Whether a call is shown by its values: its answer is structured, or its arguments are more than plain pairs."""
    if call.is_open or call.status == "error":
        return False
    given = call.arguments
    return is_structured(call.answer) or (
        isinstance(given, dict) and any(is_structured(inner) for inner in given.values())
    )


def sources_of(call: ToolCall, messages: Sequence[Message]) -> list[int]:
    """The numbers of the messages that make and answer a call."""
    return [*(call.earlier.sources if call.earlier else ()), *(messages[place].seq for place in call.places)]


def signature(call: ToolCall, width: int = _ARGUMENTS_WIDTH) -> str:
    """A call in short: `book_car(day=Friday, class=compact)`."""
    if call.earlier is not None:
        return shorten(call.earlier.text.rpartition(" → ")[0], width + _OWNER_WIDTH)
    return f"{tool_name(call.name)}({arguments(call, width)})"


def arguments(call: ToolCall, width: int) -> str:
    given = call.arguments
    text = pairs(given) if is_structured(given) else "" if given in (None, {}, []) else flat(str(given)[: 8 * width])
    return shorten(text, width)


def _texts(call: ToolCall, known: Known, seen: set[str]) -> Iterator[str]:
    """The answer of a call in lines, each of which names the call. Of a tool seen before, one argument needs no key."""
    implied = dict(scalars(call.arguments))
    owner = f"{tool_name(call.name)}({shorten(', '.join(implied.values()), _OWNER_WIDTH)}): "
    first = owner if call.name in seen and len(implied) == 1 else f"{signature(call)}: "
    seen.add(call.name)
    return _packed(first, owner, _pieces(call, implied, known))


def _packed(first: str, again: str, pieces: "Iterable[_Piece]") -> Iterator[str]:
    """Pieces on lines of a readable length, the first of which begins with `first` and the others with `again`."""
    line = first
    begun = False
    for piece in pieces:
        text = f"{piece.joint if begun else ''}{piece.heading}{piece.item}"
        if len(line) + len(text) <= MAX_LINE_CHARS:
            line += text
        else:
            if begun:
                yield line
                line = again
            start = piece.heading or piece.heading_again
            if piece.heading and len(line) + len(start) + len(piece.item) > MAX_LINE_CHARS:
                yield shorten(f"{line}{start}".rstrip(), MAX_LINE_CHARS)
                line, start = again, piece.heading_again
            line += f"{start}{shorten(piece.item, MAX_LINE_CHARS - len(line) - len(start))}"
        begun = True
    yield line if begun else line.rstrip(": ")


class _Piece(NamedTuple):
    """A row or a pair: what joins it to the one before, and how it is headed at its place or on a line of its own."""

    joint: str
    heading: str
    heading_again: str
    item: str


def _pieces(call: ToolCall, implied: Mapping[str, str], known: Known) -> Iterator[_Piece]:
    answer = call.answer
    if not is_structured(answer):
        text = shorten(flat(str(answer or "")[: 8 * _OUTCOME_WIDTH]), _OUTCOME_WIDTH)
        if text:
            yield _Piece("", "", "", text)
        return
    for field in fields(answer, implied, known, call.name):
        table = field.heading.partition("(")[0].strip(":= ")
        again = f"more {table}: " if table else ""
        for number, item in enumerate(field.items):
            yield _Piece(field.joint, "", again, item) if number else _Piece(" | ", field.heading, again, item)
