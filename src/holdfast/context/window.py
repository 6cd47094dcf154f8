"""What a model is shown of a session: its messages, then what fits of the rest, with a receipt.

The budget goes to the messages first, with marked previews of large tool outputs; then to one overview, which is small
and carries the rules; then to whole outputs.
"""

from collections.abc import Sequence

import msgspec

from holdfast.context import tool_outputs
from holdfast.context.tool_outputs import Read, Room
from holdfast.model.archives import ContextStats, Receipt, ReceiptLine, Run, SessionContext, archive_id
from holdfast.model.messages import Message
from holdfast.text import tokens
from holdfast.text.citations import cited


class Overview(msgspec.Struct, frozen=True):
    """What stands for the archives that are done: the latest one's overview, alone or with what came before it."""

    number: int
    since: int
    """The first message of the earliest archive that is done."""
    first_seq: int
    last_seq: int
    text: str
    tokens: int
    rolling: str
    rolling_tokens: int
    rules_left_out: list[int] = []
    """The messages with standing rules that `rolling` has no room for."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to choose from."""

    runs: list[Run]
    messages: list[Message]
    system: Message | None
    """The latest system message, wherever it is."""
    overview: Overview | None
    total_archives: int
    failed_archives: int
    counted_by: str


class Chosen(msgspec.Struct, frozen=True):
    """A form of the overview, its line, and lines for the richer forms that did not fit."""

    text: str
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]


MAX_CITED = 30
"""Ranges of messages that one line of a receipt names."""
WHY = {
    "pending": "its summary is not done yet",
    "failed": "its summary failed; retry it",
    "cancelled": "its summary was cancelled; retry it",
    "live": "live messages are always shown",
}


def assemble(view: View, budget: int, read: Read) -> SessionContext:
    """Spend the budget on the messages, then on the overview, then on whole outputs: each whole or not at all."""
    count = tokens.counter(view.counted_by)
    stored = _with_system(view)
    places = tool_outputs.find(stored)
    marked = tool_outputs.mark_previews(stored, places, count)
    more = [(stored[at].seq, marked[at].tokens - stored[at].tokens) for at in places]
    active_lines = _active_lines(view, marked, more)
    active = sum(line.tokens for line in active_lines)
    reserved = _reserve(view, marked, active, budget, tool_outputs.chars_apart(marked, places))
    room = budget - active - reserved
    chosen = _choose(view.overview, room, tokens.bound(view.counted_by))
    left = room - sum(line.tokens + line.reserved for line in chosen.included)
    filled = tool_outputs.fill(marked, places, Room(left, count, tokens.bound(view.counted_by)), read)
    system, messages = _apart(view, filled.messages)
    included = [*active_lines, *chosen.included, *filled.included]
    spent = sum(line.tokens for line in included)
    of_overview = sum(line.tokens for line in chosen.included)
    return SessionContext(
        latest_archive_overview=chosen.text,
        pre_archive_abstracts=[],
        system_message=system,
        messages=messages,
        estimated_tokens=spent,
        stats=ContextStats(
            view.total_archives,
            len(chosen.included),
            int(bool(chosen.left_out) and not chosen.included),
            view.failed_archives,
            spent - of_overview,
            of_overview,
        ),
        receipt=Receipt(
            token_budget=budget,
            spent=spent,
            reserved=reserved + sum(line.reserved for line in included),
            counted_by=view.counted_by,
            included=included,
            left_out=[*chosen.left_out, *filled.left_out],
        ),
    )


def _with_system(view: View) -> list[Message]:
    """All messages of the context in order, the latest system message among them."""
    system = view.system
    if system is None or any(message.seq == system.seq for message in view.messages):
        return view.messages
    return sorted([system, *view.messages], key=lambda message: message.seq)


def _apart(view: View, messages: list[Message]) -> tuple[Message | None, list[Message]]:
    """The system message, and the others."""
    if view.system is None:
        return None, messages
    seq = view.system.seq
    system = next(message for message in messages if message.seq == seq)
    return system, [message for message in messages if message.seq != seq]


def _active_lines(view: View, marked: Sequence[Message], more: list[tuple[int, int]]) -> list[ReceiptLine]:
    """A line for the system message and for each run. `more` has the tokens that marks add to messages."""
    lines: list[ReceiptLine] = []
    seq = None if view.system is None else view.system.seq
    if seq is not None:
        shown = next(message for message in marked if message.seq == seq)
        more = [*more, (seq, -shown.tokens)]
        why = "the latest system message is always shown"
        lines.append(ReceiptLine(what="system", first_seq=seq, last_seq=seq, tokens=shown.tokens, why=why))
    for run in view.runs:
        here = run.tokens + sum(tokens_ for at, tokens_ in more if run.first_seq <= at <= run.last_seq)
        run = msgspec.structs.replace(run, tokens=max(0, here))  # noqa: PLW2901 - the same run as it is shown
        lines.append(_line("live" if run.number is None else "archive", run, WHY[run.state]))
    return lines


def _reserve(view: View, marked: Sequence[Message], active: int, budget: int, apart: int) -> int:
    """By how much the messages may cost more than estimated, if that can matter.

    To find out costs a second look at all of them. It cannot matter if there is nothing else to show, if they leave no
    room, or if all of it fits even where they cost half as much again.
    """
    wanted = apart + (2 * view.overview.rolling_tokens if view.overview is not None else 0)
    if view.counted_by != "estimate" or not wanted or active >= budget or active * 3 // 2 + wanted <= budget:
        return 0
    texts = [text for message in marked for text in tokens.texts_of(message.parts)]
    return max(0, tokens.upper_bound("\n".join(texts)) - active)


def _choose(overview: Overview | None, room: int, bound: tool_outputs.TokenCounter) -> Chosen:
    """The richest form of the overview that fits even if its estimate is too low."""
    if overview is None:
        return Chosen("", [], [])
    number, last = overview.number, overview.last_seq
    forms = [("overview", overview.text, Run(number, "done", overview.first_seq, last, overview.tokens))]
    if overview.rolling != overview.text:
        run = Run(number, "done", overview.since, last, overview.rolling_tokens)
        forms.insert(0, ("rolling_overview", overview.rolling, run))
    left_out: list[ReceiptLine] = []
    for what, text, run in forms:
        reserved = max(0, bound(text) - run.tokens)
        needed = run.tokens + reserved
        if needed <= room:
            included = [_line(what, run, "it fits what the messages left", reserved)]
            return Chosen(text, included, [*left_out, *_rules_left_out(overview)])
        left_out.append(_line(what, run, f"it needs {needed} tokens and {max(room, 0)} are left", reserved))
    return Chosen("", [], left_out)


def _rules_left_out(overview: Overview) -> list[ReceiptLine]:
    """A line for the rules that the overview has no room for, with what `expand` takes to bring them back."""
    seqs = overview.rules_left_out
    if not seqs:
        return []
    ref = cited(seqs, max_ranges=MAX_CITED)
    why = f"rules of {len(seqs)} messages do not fit rules_tokens, or a small archive; expand {ref!r} shows them"
    return [ReceiptLine(what="rules", first_seq=seqs[0], last_seq=seqs[-1], tokens=0, why=why)]


def _line(what: str, run: Run, why: str, reserved: int = 0) -> ReceiptLine:
    return ReceiptLine(
        what=what,  # type: ignore[arg-type]  # one of its words
        archive_id=None if run.number is None else archive_id(run.number),
        first_seq=run.first_seq,
        last_seq=run.last_seq,
        tokens=run.tokens,
        reserved=reserved,
        why=why,
    )
