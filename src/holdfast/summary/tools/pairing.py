"""Pairing of tool calls with their results, which may be in one part or in different messages.

`context.archive_boundary` pairs calls too, from the few columns that a table has of them and without names and order.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.messages import Message
from holdfast.model.parts import OPEN_TOOL_STATUSES, TextPart, ToolPart, ToolStatus
from holdfast.model.summaries import Line
from holdfast.summary.tools.structure import decode_json
from holdfast.text.sentences import to_single_line

_EMPTY: tuple[Any, ...] = (None, "", {}, [])


@dataclass(slots=True, eq=False)
class ToolCall:
    """A tool call. A result whose call is not among the messages is a call without input."""

    tool_id: str
    name: str
    input: Any
    message_index: int
    """The index of the message that makes the call."""
    output: Any = ""
    status: ToolStatus = "pending"
    message_indexes: list[int] = field(default_factory=list)
    """The indexes of all messages that make, update or answer the call, in order."""
    is_made_here: bool = True
    """Whether the call itself is among the messages."""
    earlier_line: Line | None = None
    """The line of an earlier summary that reports the call as open."""
    _decoded: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> Any:
        """The input, decoded if it is a JSON text."""
        return self._decode("input", self.input)

    @property
    def answer(self) -> Any:
        """The output, decoded if it is a JSON text."""
        return self._decode("output", self.output)

    def _decode(self, name: str, value: Any) -> Any:
        if name not in self._decoded:
            self._decoded[name] = decode_json(value)
        return self._decoded[name]

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_TOOL_STATUSES

    @property
    def key(self) -> str:
        """The key that a later result refers to: the id, or the name if there is no id."""
        return self.tool_id or f"{self.name}()"

    @property
    def answered_key(self) -> str:
        """The key of the call that this result answers."""
        return self.earlier_line.call if self.earlier_line is not None else self.key


def pair_calls(
    messages: Sequence[Message], yield_cpu: Callable[[], None], earlier_open_calls: Sequence[Line] = ()
) -> list[ToolCall]:
    """Return all calls in the order in which they were made, each with its result if it has one.

    Calls are paired by `tool_id`; an id may be used again after its result. Without ids they are paired by name and
    order. `earlier_open_calls` are the open calls of the messages before.
    """
    calls: list[ToolCall] = []
    open_calls = _OpenCalls()
    earlier_lines = list(earlier_open_calls)
    for message_index, message in enumerate(messages):
        yield_cpu()
        for part in _tool_parts(message):
            known = open_calls.find_updated(part) if _is_call(part) else open_calls.find_answered(part)
            if known is not None:
                _update(known, part, message_index)
                continue
            call = ToolCall(
                part.tool_id,
                part.tool_name,
                part.tool_input,
                message_index,
                part.tool_output,
                _status(part),
                [message_index],
                is_made_here=_is_call(part) or part.tool_input not in _EMPTY,
            )
            calls.append(call)
            if not call.is_made_here:
                call.earlier_line = _take_earlier_line(call, earlier_lines)
            if call.is_open:
                open_calls.add(call)
    return calls


def _take_earlier_line(result: ToolCall, earlier_lines: list[Line]) -> Line | None:
    """Remove and return the line of the earlier open call that a result answers, by id, name or order."""
    same_name = [
        line for line in earlier_lines if not result.name or line.text.startswith(f"{tool_label(result.name)}(")
    ]
    if result.tool_id:
        same_id = [line for line in earlier_lines if line.call == result.tool_id]
        candidates = same_id or [line for line in same_name if result.name and line.call.endswith("()")]
    else:
        candidates = same_name
    if not candidates:
        return None
    earlier_lines.remove(candidates[0])
    return candidates[0]


def tool_label(name: str) -> str:
    """Return the name of a tool as a summary shows it."""
    return to_single_line(name)[:80] or "tool"


class _OpenCalls:
    """Open calls by id, by name and in order. Answered calls are removed lazily, at the next lookup."""

    def __init__(self) -> None:
        self._by_id: dict[str, deque[ToolCall]] = {}
        self._by_name: dict[str, deque[ToolCall]] = {}
        self._all: deque[ToolCall] = deque()

    def add(self, call: ToolCall) -> None:
        if call.tool_id:
            self._by_id.setdefault(call.tool_id, deque()).append(call)
        self._by_name.setdefault(call.name, deque()).append(call)
        self._all.append(call)

    def find_updated(self, part: ToolPart) -> ToolCall | None:
        """Return the open call whose status a part without input and output updates."""
        return _first_open(self._by_id.get(part.tool_id)) if part.tool_id and part.tool_input in _EMPTY else None

    def find_answered(self, result: ToolPart) -> ToolCall | None:
        """Return the earliest open call that a result answers.

        It has the id of the result, or the same name and no id. A result without an id is matched by name, a result
        without both by order.
        """
        if result.tool_id:
            same_id = _first_open(self._by_id.get(result.tool_id))
            same_name = None if same_id else _first_open(self._by_name.get(result.tool_name))
            return same_id or (same_name if same_name and not same_name.tool_id else None)
        return _first_open(self._by_name.get(result.tool_name) if result.tool_name else self._all)


def _first_open(queue: deque[ToolCall] | None) -> ToolCall | None:
    while queue and not queue[0].is_open:
        queue.popleft()
    return queue[0] if queue else None


def _tool_parts(message: Message) -> list[ToolPart]:
    """Return the calls and results of a message. The text of a tool message without any is a result."""
    parts = [part for part in message.parts if isinstance(part, ToolPart)]
    if parts or message.role != "tool":
        return parts
    text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
    return [ToolPart(tool_output=text, tool_status="completed")] if text else []


def _is_call(part: ToolPart) -> bool:
    return part.tool_status in OPEN_TOOL_STATUSES and part.tool_output in _EMPTY


def _status(part: ToolPart) -> ToolStatus:
    """Return the status of a part. A pending call with an output is completed; a running one is not."""
    return "completed" if part.tool_status == "pending" and part.tool_output not in _EMPTY else part.tool_status


def _update(call: ToolCall, part: ToolPart, message_index: int) -> None:
    if part.tool_output not in _EMPTY or not _is_call(part):
        call.output = part.tool_output
    call.status = _status(part)
    call.name = call.name or part.tool_name
    if call.input in _EMPTY:
        call.input = part.tool_input
    if message_index not in call.message_indexes:
        call.message_indexes.append(message_index)
