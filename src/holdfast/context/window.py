"""What a model is shown of a session: its live messages whole, then what fits of the rest, with a receipt."""

import msgspec

from holdfast.model import ContextStats, Message, Receipt, ReceiptLine, SessionContext, archive_id


class Piece(msgspec.Struct, frozen=True):
    """Messages that speak for themselves: the live ones, or those of an archive that is not done."""

    number: int | None
    """The archive's, or None for the live ones."""
    state: str
    first_seq: int
    last_seq: int
    tokens: int


class Overview(msgspec.Struct, frozen=True):
    """What stands for the archives that are done: the latest one's overview, alone or with what came before it."""

    number: int
    last_seq: int
    text: str
    tokens: int
    rolling: str
    rolling_tokens: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to choose from."""

    pieces: list[Piece]
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
    active = sum(piece.tokens for piece in view.pieces)
    included = [_line("live" if it.number is None else "archive", it.number, it, WHY[it.state]) for it in view.pieces]
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
    forms = [("overview", overview.text, overview.tokens)]
    if overview.rolling != overview.text:
        forms.insert(0, ("rolling_overview", overview.rolling, overview.rolling_tokens))
    left_out: list[ReceiptLine] = []
    for what, text, tokens in forms:
        piece = Piece(overview.number, "done", 1, overview.last_seq, tokens)
        if tokens <= room:
            return text, [_line(what, overview.number, piece, "it fits what the messages left")], left_out
        left_out.append(_line(what, overview.number, piece, f"it needs {tokens} tokens and {max(room, 0)} are left"))
    return "", [], left_out


def _line(what: str, number: int | None, piece: Piece, why: str) -> ReceiptLine:
    return ReceiptLine(
        what=what,  # type: ignore[arg-type]  # one of its words
        archive_id=None if number is None else archive_id(number),
        first_seq=piece.first_seq,
        last_seq=piece.last_seq,
        tokens=piece.tokens,
        why=why,
    )
