"""Tool calls with their results, whether both are in one part or in messages far apart."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.messages import Message
from holdfast.model.parts import TextPart, ToolPart, ToolStatus
from holdfast.model.summaries import Line
from holdfast.summary.tools.structure import decode
from holdfast.text.sentences import flat

_UNFINISHED = frozenset({"pending", "running"})
_NOTHING: tuple[Any, ...] = (None, "", {}, [])


@dataclass(slots=True, eq=False)
class ToolCall:
    """One call. A result whose call is not among the messages is a call without input."""

    tool_id: str
    name: str
    input: Any
    place: int
    """The index of the message that makes the call."""
    output: Any = ""
    status: ToolStatus = "pending"
    places: list[int] = field(default_factory=list)
    """The indices of all messages that mention the call, in order."""
    is_made_here: bool = True
    """Whether the call itself is among the messages."""
    earlier: Line | None = None
    """The item of an earlier stretch that says that the call is open."""
    _decoded: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> Any:
        """The input, of a JSON text what it stands for."""
        return self._read("input", self.input)

    @property
    def answer(self) -> Any:
        """The output, of a JSON text what it stands for."""
        return self._read("output", self.output)

    def _read(self, name: str, value: Any) -> Any:
        if name not in self._decoded:
            self._decoded[name] = decode(value)
        return self._decoded[name]

    @property
    def is_open(self) -> bool:
        return self.status in _UNFINISHED

    @property
    def key(self) -> str:
        """What a result that comes later refers to: the id, or the name where there is none."""
        return self.tool_id or f"{self.name}()"

    @property
    def answers(self) -> str:
        """The key of the call that this is the result of."""
        return self.earlier.call if self.earlier is not None else self.key


def pair(messages: Sequence[Message], yield_cpu: Callable[[], None], earlier: Sequence[Line] = ()) -> list[ToolCall]:
    """All calls in the order in which they were made, each with its result if it has one.

    Paired by `tool_id`; an id that was answered may be used again. Without ids, by name and order.
    `earlier` are the open calls of the stretches before.
    """
    found: list[ToolCall] = []
    waiting = _Waiting()
    before_here = list(earlier)
    for place, message in enumerate(messages):
        yield_cpu()
        for part in _tool_parts(message):
            before = waiting.mentioned_by(part) if _is_call(part) else waiting.answered_by(part)
            if before is not None:
                _finish(before, part, place)
                continue
            call = ToolCall(
                part.tool_id,
                part.tool_name,
                part.tool_input,
                place,
                part.tool_output,
                _status(part),
                [place],
                is_made_here=_is_call(part) or part.tool_input not in _NOTHING,
            )
            found.append(call)
            if not call.is_made_here:
                call.earlier = _of_earlier(call, before_here)
            if call.is_open:
                waiting.add(call)
    return found


def _of_earlier(result: ToolCall, waiting: list[Line]) -> Line | None:
    """The open call of an earlier stretch that a result belongs to, by id, name or order; taken out of `waiting`."""
    named = [line for line in waiting if not result.name or line.text.startswith(f"{tool_name(result.name)}(")]
    if result.tool_id:
        exact = [line for line in waiting if line.call == result.tool_id]
        candidates = exact or [line for line in named if result.name and line.call.endswith("()")]
    else:
        candidates = named
    if not candidates:
        return None
    waiting.remove(candidates[0])
    return candidates[0]


def tool_name(name: str) -> str:
    """The name of a tool as it is shown."""
    return flat(name)[:80] or "tool"


class _Waiting:
    """Calls without a result, by id, by name and in order. One that was answered is dropped when it is met again."""

    def __init__(self) -> None:
        self._by_id: dict[str, deque[ToolCall]] = {}
        self._by_name: dict[str, deque[ToolCall]] = {}
        self._all: deque[ToolCall] = deque()

    def add(self, call: ToolCall) -> None:
        if call.tool_id:
            self._by_id.setdefault(call.tool_id, deque()).append(call)
        self._by_name.setdefault(call.name, deque()).append(call)
        self._all.append(call)

    def mentioned_by(self, part: ToolPart) -> ToolCall | None:
        """The call whose status a part without input and output reports."""
        return _first(self._by_id.get(part.tool_id)) if part.tool_id and part.tool_input in _NOTHING else None

    def answered_by(self, result: ToolPart) -> ToolCall | None:
        """The earliest call that waits under the result's id; of a result without one, under its name, or at all."""
        if result.tool_id:
            found = _first(self._by_id.get(result.tool_id))
            unnamed = None if found else _first(self._by_name.get(result.tool_name))
            return found or (unnamed if unnamed and not unnamed.tool_id else None)
        return _first(self._by_name.get(result.tool_name) if result.tool_name else self._all)


def _first(queue: deque[ToolCall] | None) -> ToolCall | None:
    while queue and not queue[0].is_open:
        queue.popleft()
    return queue[0] if queue else None


def _tool_parts(message: Message) -> list[ToolPart]:
    """The calls and results of a message. A tool's message without any is the text of a result."""
    parts = [part for part in message.parts if isinstance(part, ToolPart)]
    if parts or message.role != "tool":
        return parts
    text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
    return [ToolPart(tool_output=text, tool_status="completed")] if text else []


def _is_call(part: ToolPart) -> bool:
    return part.tool_status in _UNFINISHED and part.tool_output in _NOTHING


def _status(part: ToolPart) -> ToolStatus:
    """A call with an output is finished, unless it says that it still runs."""
    return "completed" if part.tool_status == "pending" and part.tool_output not in _NOTHING else part.tool_status


def _finish(call: ToolCall, part: ToolPart, place: int) -> None:
    if part.tool_output not in _NOTHING or not _is_call(part):
        call.output = part.tool_output
    call.status = _status(part)
    call.name = call.name or part.tool_name
    if call.input in _NOTHING:
        call.input = part.tool_input
    if place not in call.places:
        call.places.append(place)
