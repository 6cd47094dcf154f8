"""The end of an archive: never between a tool call and its result.

The calls come from a table with one row per message and call, so this module does not need the messages.
`summary.tools.pairing` pairs the calls of messages, also by name and order, for which the table has no columns.
"""

from collections.abc import Sequence
from typing import NamedTuple


class CallEvent(NamedTuple):
    """A message that makes, updates or answers a tool call."""

    seq: int
    tool_id: str
    is_open: bool
    """Whether the message has no result of the call."""


class CallSpan(NamedTuple):
    """The messages from a tool call to its last event."""

    first: int
    last: int
    is_answered: bool


def find_call_spans(events: Sequence[CallEvent]) -> list[CallSpan]:
    """Return the span of each call. `events` must be in order. An answered id may be used again by another call.

    >>> find_call_spans([CallEvent(1, "a", True), CallEvent(2, "a", False), CallEvent(3, "a", True)])
    [CallSpan(first=1, last=2, is_answered=True), CallSpan(first=3, last=3, is_answered=False)]
    """
    spans: list[CallSpan] = []
    latest: dict[str, int] = {}
    for event in events:
        index = latest.get(event.tool_id)
        if index is None or (event.is_open and spans[index].is_answered):
            latest[event.tool_id] = len(spans)
            spans.append(CallSpan(event.seq, event.seq, not event.is_open))
        else:
            span = spans[index]
            spans[index] = CallSpan(span.first, event.seq, span.is_answered or not event.is_open)
    return spans


def last_sealable_seq(last: int, events: Sequence[CallEvent], last_user_seq: int) -> int:
    """Return the last message up to `last` that can end an archive.

    It separates no call from its result, and includes no call that is still open. A call that was not answered before
    the last user message will not be answered, so it does not count as open.

    >>> last_sealable_seq(2, [CallEvent(2, "a", True), CallEvent(3, "a", False)], last_user_seq=1)
    1
    """
    spans = find_call_spans(events)
    while True:
        begun = [span for span in spans if span.first <= last]
        incomplete = [span for span in begun if span.last > last or _is_open(span, last_user_seq)]
        if not incomplete:
            return last
        last = min(span.first for span in incomplete) - 1


def _is_open(span: CallSpan, last_user_seq: int) -> bool:
    return not span.is_answered and span.last > last_user_seq
