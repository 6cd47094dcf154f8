"""Where an archive may end: never between a tool call and its result."""

from collections.abc import Sequence
from typing import NamedTuple


class Call(NamedTuple):
    """A message that makes or answers a tool call."""

    seq: int
    tool_id: str
    is_open: bool
    """Whether the call is only made here, not answered."""


class Span(NamedTuple):
    """From a tool call to the last that is said of it."""

    first: int
    last: int
    is_answered: bool


def spans(calls: Sequence[Call]) -> list[Span]:
    """The calls, which come in order, from beginning to end. Some models use an id again once it was answered.

    >>> spans([Call(1, "a", True), Call(2, "a", False), Call(3, "a", True)])
    [Span(first=1, last=2, is_answered=True), Span(first=3, last=3, is_answered=False)]
    """
    found: list[Span] = []
    latest: dict[str, int] = {}
    for call in calls:
        place = latest.get(call.tool_id)
        if place is None or (call.is_open and found[place].is_answered):
            latest[call.tool_id] = len(found)
            found.append(Span(call.seq, call.seq, not call.is_open))
        else:
            found[place] = Span(found[place].first, call.seq, found[place].is_answered or not call.is_open)
    return found


def last_sealable_seq(last: int, calls: Sequence[Call], turn: int) -> int:
    """The last message up to `last` behind which no call is cut off from its result, nor one that still runs.

    One that nobody answered before message `turn`, when the user spoke again, will not be answered.

    >>> whole_through(2, [Call(2, "a", True), Call(3, "a", False)], turn=1)
    1
    """
    all_spans = spans(calls)
    while True:
        begun = [span for span in all_spans if span.first <= last]
        cut = [span.first for span in begun if span.last > last or (span.last > turn and not span.is_answered)]
        if not cut:
            return last
        last = min(cut) - 1
