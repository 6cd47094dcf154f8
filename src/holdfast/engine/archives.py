"""Reading what was sealed: archives, the context that is made of them, and any stretch of messages again."""

import re

from holdfast.context.window import Overview, View, assemble
from holdfast.engine import sessions
from holdfast.engine.rule import Moment, Rule
from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.model import (
    Archive,
    ArchiveInfo,
    Expanded,
    Message,
    Principal,
    Run,
    SessionContext,
    archive_id,
    archive_number,
)
from holdfast.ops import ExpandContext, GetSessionArchive, GetSessionContext, ListArchives
from holdfast.store import archives as store
from holdfast.store import lineage, messages
from holdfast.store.archives import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.sessions import StoredSession

ALL = 2**31
EXPAND_AT_ONCE = 1_000
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")


def require(tx: Tx, session: StoredSession, name: str) -> StoredArchive:
    number = archive_number(name)
    archive = None if number is None else store.find(tx, session.log_id, number)
    if archive is None:
        raise NotFoundError("archive", name)
    return archive


def messages_of(tx: Tx, session: StoredSession, first: int, last: int | None, limit: int = ALL) -> list[Message]:
    return messages.read(tx, lineage.stretches(tx, session, first, last), limit)


def _list(tx: Tx, who: Principal, op: ListArchives, _ready: None, _moment: Moment) -> list[ArchiveInfo]:
    session = sessions.require(tx, who, op.session_id)
    return [store.info(session, it) for it in store.page(tx, session.log_id, after=op.after, limit=op.limit)]


def _get(tx: Tx, who: Principal, op: GetSessionArchive, _ready: None, _moment: Moment) -> Archive:
    session = sessions.require(tx, who, op.session_id)
    archive = require(tx, session, op.archive_id)
    if archive.state != "done":
        raise NotFoundError("archive", op.archive_id)
    return Archive(
        archive_id=op.archive_id,
        abstract=archive.abstract,
        overview=archive.overview,
        messages=messages_of(tx, session, archive.first_seq, archive.last_seq),
    )


def _context(tx: Tx, who: Principal, op: GetSessionContext, _ready: None, moment: Moment) -> SessionContext:
    session = sessions.require(tx, who, op.session_id)
    return assemble(_view(tx, session, moment), op.token_budget)


def _view(tx: Tx, session: StoredSession, moment: Moment) -> View:
    runs = store.unfinished(tx, session.log_id)
    if session.live_count > 0:
        tokens = session.tokens_total - session.tokens_archived
        runs.append(Run(None, "live", session.live_from, session.last_seq, tokens))
    said: list[Message] = []
    for first, last in _joined(runs):
        said += messages_of(tx, session, first, last)
    total, failed = store.counts(tx, session.log_id)
    return View(
        runs=runs,
        messages=said,
        overview=_overview(tx, session),
        total_archives=total,
        failed_archives=failed,
        counted_by=moment.settings.token_counter,
    )


def _joined(runs: list[Run]) -> list[tuple[int, int]]:
    """Runs that follow one another are read as one."""
    joined: list[tuple[int, int]] = []
    for run in runs:
        if joined and joined[-1][1] + 1 == run.first_seq:
            joined[-1] = (joined[-1][0], run.last_seq)
        else:
            joined.append((run.first_seq, run.last_seq))
    return joined


def _overview(tx: Tx, session: StoredSession) -> Overview | None:
    latest = store.latest_done(tx, session.log_id)
    if latest is None:
        return None
    return Overview(
        latest.number,
        store.first_done(tx, session.log_id),
        latest.first_seq,
        latest.last_seq,
        latest.overview,
        latest.overview_tokens,
        latest.rolling,
        latest.rolling_tokens,
    )


def _expand(tx: Tx, who: Principal, op: ExpandContext, _ready: None, _moment: Moment) -> Expanded:
    session = sessions.require(tx, who, op.session_id)
    first, last = _range_of(tx, session, op.ref)
    found = messages_of(tx, session, first, last, EXPAND_AT_ONCE)
    spent, shown = 0, 0
    while shown < len(found) and (shown == 0 or spent + found[shown].tokens <= op.token_budget):
        spent += found[shown].tokens
        shown += 1
    brought = found[:shown]
    if not brought:
        raise NotFoundError("messages", op.ref)
    end = brought[-1].seq
    return Expanded(
        session_id=session.session_id,
        ref=op.ref,
        archive_ids=[archive_id(number) for number in store.holding(tx, session.log_id, brought[0].seq, end)],
        first_seq=brought[0].seq,
        last_seq=end,
        messages=brought,
        estimated_tokens=spent,
        next_ref=f"{end + 1}-{last}" if end < last else None,
    )


def _range_of(tx: Tx, session: StoredSession, ref: str) -> tuple[int, int]:
    """Which messages a reference means."""
    number = archive_number(ref)
    if number is not None:
        archive = require(tx, session, ref)
        return archive.first_seq, archive.last_seq
    seq = messages.seq_of(tx, lineage.stretches(tx, session), ref)
    if seq is not None:
        return seq, seq
    told = _RANGE.fullmatch(ref)
    if told is None:
        raise NotFoundError("messages", ref)
    first = int(told[1])
    last = first if told[2] is None else min(int(told[2]), session.last_seq)
    if told[2] is not None and int(told[2]) < first:
        raise InvalidArgumentError("ref", f"{ref!r} ends before it begins; turn it round")
    return first, last


RULES: dict[type, Rule] = {
    ListArchives: Rule(_list),
    GetSessionArchive: Rule(_get),
    GetSessionContext: Rule(_context),
    ExpandContext: Rule(_expand),
}
