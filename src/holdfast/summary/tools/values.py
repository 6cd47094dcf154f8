"""Values of tool calls: lines with their arguments and results, each with its field, tool and sources."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from holdfast.model.messages import Message, Role
from holdfast.model.summaries import Line
from holdfast.summary.tools.pairing import ToolCall, tool_label
from holdfast.summary.tools.structure import (
    MAX_DETAIL,
    ShownValues,
    format_fields,
    format_pairs,
    is_structured,
    scalar_paths,
    scalars,
)
from holdfast.text.sentences import head_and_tail, to_single_line
from holdfast.text.shortening import shorten
from holdfast.text.tokens import estimate

MAX_LINE_CHARS = 280
_MAX_ARGUMENTS_WIDTH, _MAX_SHORT_ARGUMENTS_WIDTH = 150, 40
"""Characters of the arguments with their keys, and of their values alone, with which further lines of a call begin."""
_MAX_OUTCOME_WIDTH = 160
_MIN_MENTIONED_CHARS = 4
"""Length from which a value that a user or the assistant mentions raises the weight of its line."""
_FAR_OVER_LIMIT = 1.5
"""Above this multiple of the token limit the lowest level of detail is tried next."""
_MIN_ROUTINE = 4
"""Number of calls of a tool from which each one has a lower weight, and calls of one shape form a table."""
_MAX_TABLE_ROWS, _LAST_ROWS, _USUAL_SHARE = 12, 3, 0.8
"""Rows of a table, how many of the last calls it includes, and the share of rows with a value that makes it usual."""
_WORD = re.compile(r"\w[\w@./:\-]*")
_DIGIT = re.compile(r"\d")


def value_lines(
    calls: Sequence[ToolCall], messages: Sequence[Message], max_tokens: int, yield_cpu: Callable[[], None]
) -> list[Line]:
    """Return lines for the finished calls with structured values, in order, as detailed as `max_tokens` allows.

    The lines exceed `max_tokens` if even the lowest level of detail does. Many calls of one shape form one table.
    """
    with_values = [call for call in calls if has_values(call)]
    leaves = [
        (call.name, path, text)
        for call in calls
        for value in (call.arguments, call.answer)
        for path, text in scalar_paths(value)
    ]
    groups = _group_by_shape(with_values)
    weights = _LineWeights(with_values, messages)
    tables: dict[int, list[str]] = {}
    for group in groups:
        yield_cpu()
        if len(group) > 1:
            tables[id(group)] = list(_table_lines(group, weights))
    lines: list[Line] = []
    detail = MAX_DETAIL
    while detail >= 0:
        shown = ShownValues(leaves, detail)
        seen_tools: set[str] = set()
        lines = []
        for group in groups:
            yield_cpu()
            sources = [seq for call in group for seq in source_seqs(call, messages)]
            texts = tables[id(group)] if len(group) > 1 else _call_lines(group[0], shown, seen_tools)
            lines += [Line(text, sources, weights.weigh(group[-1], text)) for text in texts]
        tokens = sum(estimate(line.text) for line in lines)
        if tokens <= max_tokens:
            break
        detail = detail - 1 if tokens < _FAR_OVER_LIMIT * max_tokens else min(0, detail - 1)
    return lines


def _group_by_shape(calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """Return the calls in order, each alone, but many calls with the same flat keys as one group at the first call."""
    by_shape: dict[tuple[object, ...], list[ToolCall]] = {}
    for call in calls:
        arguments, answer = call.arguments, call.answer
        if _is_flat(arguments) and _is_flat(answer):
            by_shape.setdefault((call.name, *arguments, "→", *answer), []).append(call)
    routine = [group for group in by_shape.values() if len(group) >= _MIN_ROUTINE]
    first = {id(group[0]): group for group in routine}
    rest = {id(call) for group in routine for call in group[1:]}
    return [first.get(id(call), [call]) for call in calls if id(call) not in rest]


def _is_flat(value: object) -> bool:
    return isinstance(value, dict) and not any(isinstance(inner, dict | list) for inner in value.values())


def _table_lines(group: Sequence[ToolCall], weights: "_LineWeights") -> Iterator[str]:
    """Format calls of one shape as rows of a table. A long table has only the most informative rows."""
    rows = [_row(call) for call in group]
    kept = rows if len(rows) <= _MAX_TABLE_ROWS else _select_rows(rows, weights)
    label = tool_label(group[0].name)
    note = "" if len(kept) == len(rows) else f", {len(kept)} shown"
    items = [
        _Item(field.separator, field.heading if number == 0 else "", "", text)
        for field in format_fields(kept, tool=label)
        for number, text in enumerate(field.items)
    ]
    separator = " " if items and items[0].heading else ": "
    yield from _pack_lines(f"{len(rows)} calls of {label}{note}{separator}", f"more calls of {label}: ", items)


def _select_rows(rows: Sequence[dict[str, Any]], weights: "_LineWeights") -> list[dict[str, Any]]:
    """Return the first and the last rows, those with an unusual value, and those that are mentioned in prose."""
    most_common = {key: Counter(str(row.get(key)) for row in rows).most_common(1)[0] for key in rows[0]}
    usual = {key: text for key, (text, count) in most_common.items() if count >= _USUAL_SHARE * len(rows)}
    kept_from_end = (
        row
        for number, row in enumerate(reversed(rows[1:]))
        if number < _LAST_ROWS
        or any(str(row.get(key)) != text for key, text in usual.items())
        or weights.is_mentioned(format_pairs(row))
    )
    return [rows[0], *reversed(list(islice(kept_from_end, _MAX_TABLE_ROWS - 1)))]


def _row(call: ToolCall) -> dict[str, Any]:
    """Return arguments and answer as one object. A key with different values in both becomes two columns."""
    arguments, answer = call.arguments, call.answer
    different = {key for key in arguments if key in answer and arguments[key] != answer[key]}
    return {**arguments, **{f"answered {key}" if key in different else key: value for key, value in answer.items()}}


class _LineWeights:
    """Weights of lines: higher for recent calls, rarely called tools, and values that are mentioned in prose."""

    def __init__(self, calls: Sequence[ToolCall], messages: Sequence[Message]) -> None:
        self._calls_per_tool = Counter(call.name for call in calls)
        self._message_count = max(1, len(messages))
        self._user_values = _find_values(_prose(messages, "user"))
        self._assistant_values = _find_values(_prose(messages, "assistant"))

    def weigh(self, call: ToolCall, text: str) -> float:
        weight = 0.3 + 0.2 * (call.message_index + 1) / self._message_count
        weight *= min(1.0, (_MIN_ROUTINE / self._calls_per_tool[call.name]) ** 0.5)
        values = _find_values(text)
        by_user, by_assistant = self._user_values, self._assistant_values
        weight += 0.3 * (not values.isdisjoint(by_user)) + 0.2 * (not values.isdisjoint(by_assistant))
        return float(round(weight, 3))

    def is_mentioned(self, text: str) -> bool:
        values = _find_values(text)
        return not values.isdisjoint(self._user_values) or not values.isdisjoint(self._assistant_values)


def _prose(messages: Sequence[Message], role: Role) -> str:
    return "\n".join(head_and_tail(message.text) for message in messages if message.role == role and message.parts)


def _find_values(text: str) -> set[str]:
    """Return the words with a digit, by which a mentioned value is recognised. Commas in numbers are ignored."""
    lines = [line for line in text.replace(",", "").splitlines() if _DIGIT.search(line)]
    words = [word for line in lines for word in _WORD.findall(line) if len(word) >= _MIN_MENTIONED_CHARS]
    stripped = (word.rstrip("./:-") for word in words if _DIGIT.search(word))
    return {word for word in stripped if len(word) >= _MIN_MENTIONED_CHARS}


def has_values(call: ToolCall) -> bool:
    """Return whether a call is shown by its values: its answer is structured, or one of its arguments is."""
    if call.is_open or call.status == "error":
        return False
    arguments = call.arguments
    return is_structured(call.answer) or (
        isinstance(arguments, dict) and any(is_structured(value) for value in arguments.values())
    )


def source_seqs(call: ToolCall, messages: Sequence[Message]) -> list[int]:
    """Return the sequence numbers of the messages that make and answer a call."""
    earlier = call.earlier_line.sources if call.earlier_line else ()
    return [*earlier, *(messages[index].seq for index in call.message_indexes)]


def format_call(call: ToolCall, width: int = _MAX_ARGUMENTS_WIDTH) -> str:
    """Format a call with its arguments: `book_car(day=Friday, class=compact)`."""
    if call.earlier_line is not None:
        return shorten(call.earlier_line.text.rpartition(" → ")[0], width + _MAX_SHORT_ARGUMENTS_WIDTH)
    return f"{tool_label(call.name)}({_format_arguments(call.arguments, width)})"


def _format_arguments(arguments: Any, width: int) -> str:
    if is_structured(arguments):
        return shorten(format_pairs(arguments), width)
    return "" if arguments in (None, {}, []) else shorten(to_single_line(str(arguments)[: 8 * width]), width)


def _call_lines(call: ToolCall, shown: ShownValues, seen_tools: set[str]) -> Iterator[str]:
    """Format the answer of a call as lines that name the call. A single argument of a tool seen before has no key."""
    implied = dict(scalars(call.arguments))
    short_call = f"{tool_label(call.name)}({shorten(', '.join(implied.values()), _MAX_SHORT_ARGUMENTS_WIDTH)}): "
    start = short_call if call.name in seen_tools and len(implied) == 1 else f"{format_call(call)}: "
    seen_tools.add(call.name)
    return _pack_lines(start, short_call, _items(call, implied, shown))


def _pack_lines(first_start: str, next_start: str, items: "Iterable[_Item]") -> Iterator[str]:
    """Pack items into lines of a readable length. The first begins with `first_start`, others with `next_start`."""
    line = first_start
    has_items = False
    for item in items:
        text = f"{item.separator if has_items else ''}{item.heading}{item.text}"
        if len(line) + len(text) <= MAX_LINE_CHARS:
            line += text
        else:
            if has_items:
                yield line
                line = next_start
            heading = item.heading or item.next_heading
            if item.heading and len(line) + len(heading) + len(item.text) > MAX_LINE_CHARS:
                yield shorten(f"{line}{heading}".rstrip(), MAX_LINE_CHARS)
                line, heading = next_start, item.next_heading
            line += f"{heading}{shorten(item.text, MAX_LINE_CHARS - len(line) - len(heading))}"
        has_items = True
    yield line if has_items else line.rstrip(": ")


class _Item(NamedTuple):
    """A row or a pair of a line."""

    separator: str
    """Text between the item and the one before on the same line."""
    heading: str
    next_heading: str
    """Replaces the heading on a line that does not have it."""
    text: str


def _items(call: ToolCall, implied: Mapping[str, str], shown: ShownValues) -> Iterator[_Item]:
    answer = call.answer
    if not is_structured(answer):
        text = shorten(to_single_line(str(answer or "")[: 8 * _MAX_OUTCOME_WIDTH]), _MAX_OUTCOME_WIDTH)
        if text:
            yield _Item("", "", "", text)
        return
    for field in format_fields(answer, implied, shown, call.name):
        table = field.heading.partition("(")[0].strip(":= ")
        next_heading = f"more {table}: " if table else ""
        for number, text in enumerate(field.items):
            if number:
                yield _Item(field.separator, "", next_heading, text)
            else:
                yield _Item(" | ", field.heading, next_heading, text)
