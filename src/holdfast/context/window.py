"""The context of a session: the messages that a model is shown, within a token budget and with a receipt.

The budget is spent on the messages first, with marked previews of large tool outputs; then on one overview, which is
small and has the rules; then on complete tool outputs.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from holdfast.context import tool_outputs
from holdfast.context.tool_outputs import OutputBudget, OutputReader, PartPosition
from holdfast.model.archives import ContextStats, MessageRange, Receipt, ReceiptLine, SessionContext, archive_id
from holdfast.model.messages import Message
from holdfast.text import tokens
from holdfast.text.citations import format_citation


class Overview(msgspec.Struct, frozen=True):
    """The overview of the latest finished archive, and its rolling form, which includes all earlier archives."""

    archive_number: int
    first_done_seq: int
    """The first message of the earliest finished archive."""
    first_seq: int
    last_seq: int
    text: str
    tokens: int
    rolling_text: str
    rolling_tokens: int
    left_out_rule_seqs: list[int] = []
    """The messages with standing rules that did not fit into `rolling_text`."""


class ContextInput(msgspec.Struct, frozen=True, kw_only=True):
    """The stored parts of a session that a context is assembled from."""

    ranges: list[MessageRange]
    """The unfinished archives and the live messages."""
    messages: list[Message]
    """The messages of `ranges`."""
    has_all_messages: bool = True
    """If not, `messages` has only those with large tool outputs, and the context is assembled without the others."""
    system_message: Message | None
    """The latest system message, also if it is in a finished archive."""
    overview: Overview | None
    total_archives: int
    failed_archives: int
    counted_by: str


class ChosenOverview(msgspec.Struct, frozen=True):
    """The form of the overview that fits, its receipt line, and lines for the longer forms that do not fit."""

    text: str
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]


MAX_COUNTED_TWICE = 500_000
"""Tokens of messages up to which their upper bound is counted. No model shows more, so a higher bound does no harm."""
MAX_CITED_RANGES = 30
"""Ranges of messages in one line of a receipt."""
REASONS = {
    "pending": "its summary is not done yet",
    "failed": "its summary failed; retry it",
    "cancelled": "its summary was cancelled; retry it",
    "live": "live messages are always shown",
    "damaged": "the archive of these messages is damaged, so they are shown themselves",
}


class Assembled(msgspec.Struct, frozen=True):
    context: SessionContext
    complete_outputs: frozenset[PartPosition]
    """Where the messages have complete outputs instead of previews."""


def assemble(stored: ContextInput, budget: int, read: OutputReader) -> Assembled:
    """Spend the budget on the messages, then on the overview, then on complete outputs. No item is truncated."""
    count = tokens.counter(stored.counted_by)
    count_upper_bound = tokens.upper_bound_counter(stored.counted_by)
    messages = _include_system_message(stored)
    with_outputs = tool_outputs.find_messages_with_outputs(messages)
    marked = tool_outputs.mark_previews(messages, with_outputs, count)
    mark_tokens = [(messages[at].seq, marked[at].tokens - messages[at].tokens) for at in with_outputs]
    active_lines = _active_lines(stored, marked, mark_tokens)
    active = sum(line.tokens for line in active_lines)
    output_chars = tool_outputs.count_stored_chars(marked, with_outputs)
    reserved = _reserve(stored, marked, active, budget, output_chars)
    left = budget - active - reserved
    overview = _choose_overview(stored.overview, left, count_upper_bound)
    left -= sum(line.tokens + line.reserved for line in overview.included)
    restored = tool_outputs.restore_within_tokens(
        marked, with_outputs, OutputBudget(left, count, count_upper_bound), read
    )
    system_message, other_messages = _separate_system_message(stored, restored.messages)
    included = [*active_lines, *overview.included, *restored.included]
    spent = sum(line.tokens for line in included)
    overview_tokens = sum(line.tokens for line in overview.included)
    context = SessionContext(
        latest_archive_overview=overview.text,
        pre_archive_abstracts=[],
        system_message=system_message,
        messages=other_messages,
        estimated_tokens=spent,
        stats=ContextStats(
            stored.total_archives,
            len(overview.included),
            int(bool(overview.left_out) and not overview.included),
            stored.failed_archives,
            spent - overview_tokens,
            overview_tokens,
        ),
        receipt=Receipt(
            token_budget=budget,
            spent=spent,
            reserved=reserved + sum(line.reserved for line in included),
            counted_by=stored.counted_by,
            included=included,
            left_out=[*overview.left_out, *restored.left_out, *_damaged_lines(messages)],
        ),
    )
    return Assembled(context, restored.complete)


def _damaged_lines(messages: Sequence[Message]) -> list[ReceiptLine]:
    """Return a line for each damaged message, of which a placeholder is shown."""
    return [
        ReceiptLine(what="damaged", first_seq=message.seq, last_seq=message.seq, tokens=0, why=message.text)
        for message in messages
        if message.damaged
    ]


def _include_system_message(stored: ContextInput) -> list[Message]:
    """Return all messages of the context in order, with the latest system message."""
    system = stored.system_message
    if system is None or any(message.seq == system.seq for message in stored.messages):
        return stored.messages
    return sorted([system, *stored.messages], key=lambda message: message.seq)


def _separate_system_message(stored: ContextInput, messages: list[Message]) -> tuple[Message | None, list[Message]]:
    """Return the latest system message, and the other messages."""
    if stored.system_message is None:
        return None, messages
    seq = stored.system_message.seq
    system = next(message for message in messages if message.seq == seq)
    return system, [message for message in messages if message.seq != seq]


def _active_lines(
    stored: ContextInput, marked: Sequence[Message], mark_tokens: list[tuple[int, int]]
) -> list[ReceiptLine]:
    """Return a line for the system message and one for each range.

    `mark_tokens` has the tokens that the marks of previews add, by message.
    """
    lines: list[ReceiptLine] = []
    changes = mark_tokens
    seq = None if stored.system_message is None else stored.system_message.seq
    if seq is not None:
        system = next(message for message in marked if message.seq == seq)
        changes = [*changes, (seq, -system.tokens)]
        why = "the latest system message is always shown"
        lines.append(ReceiptLine(what="system", first_seq=seq, last_seq=seq, tokens=system.tokens, why=why))
    for stored_range in stored.ranges:
        first, last = stored_range.first_seq, stored_range.last_seq
        shown_tokens = stored_range.tokens + sum(change for at, change in changes if first <= at <= last)
        shown_range = msgspec.structs.replace(stored_range, tokens=max(0, shown_tokens))
        what = "live" if stored_range.state == "live" else "archive"
        lines.append(_receipt_line(what, shown_range, REASONS[stored_range.state]))
    return lines


def _reserve(stored: ContextInput, marked: Sequence[Message], active: int, budget: int, output_chars: int) -> int:
    """Return by how much the messages may cost more than estimated, or 0 if the difference cannot matter.

    A second count of all messages is slow. It cannot matter if there is nothing else to show, if the messages leave no
    budget, or if everything fits even if they cost half as much again. If the messages are too large to be read at
    once, half as much again is reserved; if they are too large to be counted twice, as much again.
    """
    wanted = output_chars + (2 * stored.overview.rolling_tokens if stored.overview is not None else 0)
    if stored.counted_by != "estimate" or not wanted or active >= budget or active * 3 // 2 + wanted <= budget:
        return 0
    if not stored.has_all_messages:
        return active // 2
    if active > MAX_COUNTED_TWICE:
        return active
    texts = [text for message in marked for text in tokens.countable_texts(message.parts)]
    return max(0, tokens.upper_bound("\n".join(texts)) - active)


def _choose_overview(
    overview: Overview | None, left: int, count_upper_bound: tool_outputs.TokenCounter
) -> ChosenOverview:
    """Choose the longest form of the overview whose upper bound fits into `left` tokens."""
    if overview is None:
        return ChosenOverview("", [], [])
    number, last = overview.archive_number, overview.last_seq
    own_range = MessageRange(number, "done", overview.first_seq, last, overview.tokens)
    forms = [("overview", overview.text, own_range)]
    if overview.rolling_text != overview.text:
        rolling_range = MessageRange(number, "done", overview.first_done_seq, last, overview.rolling_tokens)
        forms.insert(0, ("rolling_overview", overview.rolling_text, rolling_range))
    left_out: list[ReceiptLine] = []
    for what, text, message_range in forms:
        reserved = max(0, _overview_upper_bound(text, count_upper_bound) - message_range.tokens)
        needed = message_range.tokens + reserved
        if needed <= left:
            included = [_receipt_line(what, message_range, "it fits the remaining budget", reserved)]
            return ChosenOverview(text, included, [*left_out, *_left_out_rules(overview)])
        why = f"it needs {needed} tokens and {max(left, 0)} are left"
        left_out.append(_receipt_line(what, message_range, why, reserved))
    return ChosenOverview("", [], left_out)


@lru_cache(maxsize=64)
def _overview_upper_bound(text: str, count_upper_bound: tool_outputs.TokenCounter) -> int:
    """Return the upper bound of an overview's tokens. It is cached, because an overview changes only with a commit."""
    return count_upper_bound(text)


def _left_out_rules(overview: Overview) -> list[ReceiptLine]:
    """Return a line for the rules that the overview leaves out, with the reference for `expand` that shows them."""
    seqs = overview.left_out_rule_seqs
    if not seqs:
        return []
    ref = format_citation(seqs, max_ranges=MAX_CITED_RANGES)
    why = f"rules of {len(seqs)} messages do not fit rules_tokens, or a small archive; expand {ref!r} shows them"
    return [ReceiptLine(what="rules", first_seq=seqs[0], last_seq=seqs[-1], tokens=0, why=why)]


def _receipt_line(what: str, message_range: MessageRange, why: str, reserved: int = 0) -> ReceiptLine:
    return ReceiptLine(
        what=what,  # type: ignore[arg-type]  # one of its literals
        archive_id=None if message_range.number is None else archive_id(message_range.number),
        first_seq=message_range.first_seq,
        last_seq=message_range.last_seq,
        tokens=message_range.tokens,
        reserved=reserved,
        why=why,
    )
