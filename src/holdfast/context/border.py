"""Where an archive may end: never between a tool call and its result."""

from collections.abc import Sequence
from typing import NamedTuple


class Call(NamedTuple):
    """A message that makes or answers a tool call."""

    seq: int
    tool_id: str
    is_open: bool
    """Whether the call is only made here, not answered."""


def in_flight(calls: Sequence[Call]) -> set[str]:
    """The calls that were made and not answered.

    >>> in_flight([Call(1, "a", True), Call(1, "b", True), Call(2, "a", False)])
    {'b'}
    """
    answered = {call.tool_id for call in calls if not call.is_open}
    return {call.tool_id for call in calls} - answered


def whole_through(last: int, calls: Sequence[Call], held: set[str]) -> int:
    """The last message up to `last` behind which no call is cut off from its result, nor one that is `held`.

    >>> whole_through(2, [Call(2, "a", True), Call(3, "a", False)], set())
    1
    """
    while True:
        kept = held | {call.tool_id for call in calls if call.seq > last}
        cut = [call.seq for call in calls if call.seq <= last and call.tool_id in kept]
        if not cut:
            return last
        last = min(cut) - 1
