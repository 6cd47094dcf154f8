"""What a model is shown of a session: its live messages whole, then what fits of the rest, with a receipt."""

import msgspec

from holdfast.model import ContextStats, Message, Receipt, ReceiptLine, Run, SessionContext, archive_id


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


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to choose from."""

    runs: list[Run]
    messages: list[Message]
    overview: Overview | None
    total_archives: int
    failed_archives: int
    counted_by: str


WHY = {
    "pending": "its summary is not done yet",
    "failed": "its summary failed; retry it",
    "cancelled": "its summary was cancelled; retry it",
    "live": "live messages are always whole",
}


def assemble(view: View, budget: int) -> SessionContext:
    """Spend the budget on the messages first; what is left of it on one overview, never on half of it."""
    active = sum(run.tokens for run in view.runs)
    included = [_line("live" if it.number is None else "archive", it, WHY[it.state]) for it in view.runs]
    text, shown, left_out = _choose(view.overview, budget - active)
    included += shown
    spent = sum(line.tokens for line in shown)
    return SessionContext(
        latest_archive_overview=text,
        pre_archive_abstracts=[],
        messages=view.messages,
        estimated_tokens=active + spent,
        stats=ContextStats(
            view.total_archives, len(shown), int(bool(left_out) and not shown), view.failed_archives, active, spent
        ),
        receipt=Receipt(
            token_budget=budget,
            spent=active + spent,
            counted_by=view.counted_by,
            included=included,
            left_out=left_out,
        ),
    )


def _choose(overview: Overview | None, room: int) -> tuple[str, list[ReceiptLine], list[ReceiptLine]]:
    """The richest form of the overview that fits, its line, and lines for the richer ones that did not."""
    if overview is None:
        return "", [], []
    number, last = overview.number, overview.last_seq
    forms = [("overview", overview.text, Run(number, "done", overview.first_seq, last, overview.tokens))]
    if overview.rolling != overview.text:
        run = Run(number, "done", overview.since, last, overview.rolling_tokens)
        forms.insert(0, ("rolling_overview", overview.rolling, run))
    left_out: list[ReceiptLine] = []
    for what, text, run in forms:
        if run.tokens <= room:
            return text, [_line(what, run, "it fits what the messages left")], left_out
        left_out.append(_line(what, run, f"it needs {run.tokens} tokens and {max(room, 0)} are left"))
    return "", [], left_out


def _line(what: str, run: Run, why: str) -> ReceiptLine:
    return ReceiptLine(
        what=what,  # type: ignore[arg-type]  # one of its words
        archive_id=None if run.number is None else archive_id(run.number),
        first_seq=run.first_seq,
        last_seq=run.last_seq,
        tokens=run.tokens,
        why=why,
    )
