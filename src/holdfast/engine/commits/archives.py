"""Reading what was sealed: archives, the context that is made of them, and any stretch of messages again."""

from holdfast.context import tool_outputs
from holdfast.context.tool_outputs import Room
from holdfast.context.window import Overview, View, assemble
from holdfast.engine.commits.tool_outputs import reader
from holdfast.engine.gate import session_access
from holdfast.engine.gate.rule import CallContext, Rule
from holdfast.errors import NotFoundError
from holdfast.model.archives import Archive, ArchiveInfo, Expanded, Run, SessionContext, archive_id, archive_number
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.ops.commits import ExpandContext, GetSessionArchive, GetSessionContext, ListArchives
from holdfast.store.database import Tx
from holdfast.store.tables import archives as store
from holdfast.store.tables import lineage, messages
from holdfast.store.tables.archives import StoredArchive
from holdfast.store.tables.sessions import StoredSession
from holdfast.text import citations, tokens

ALL = 2**31
EXPAND_AT_ONCE = 1_000


def require(tx: Tx, session: StoredSession, name: str) -> StoredArchive:
    number = archive_number(name)
    archive = None if number is None else store.find(tx, session.log_id, number)
    if archive is None:
        raise NotFoundError("archive", name)
    return archive


def messages_of(tx: Tx, session: StoredSession, first: int, last: int | None, limit: int = ALL) -> list[Message]:
    return messages.read(tx, lineage.log_ranges(tx, session, first, last), limit)


def _list(tx: Tx, principal: Principal, op: ListArchives, _ready: None, _context: CallContext) -> list[ArchiveInfo]:
    session = session_access.require(tx, principal, op.session_id)
    return [store.info(session, it) for it in store.page(tx, session.log_id, after=op.after, limit=op.limit)]


def _get(tx: Tx, principal: Principal, op: GetSessionArchive, _ready: None, _context: CallContext) -> Archive:
    session = session_access.require(tx, principal, op.session_id)
    archive = require(tx, session, op.archive_id)
    if archive.state != "done":
        raise NotFoundError("archive", op.archive_id)
    return Archive(
        archive_id=op.archive_id,
        abstract=archive.abstract,
        overview=archive.overview,
        messages=messages_of(tx, session, archive.first_seq, archive.last_seq),
    )


def _get_context(
    tx: Tx, principal: Principal, op: GetSessionContext, _ready: None, context: CallContext
) -> SessionContext:
    session = session_access.require(tx, principal, op.session_id)
    return assemble(_view(tx, session, context), op.token_budget, reader(tx))


def _view(tx: Tx, session: StoredSession, context: CallContext) -> View:
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
        system=messages.latest_system(tx, lineage.log_ranges(tx, session)),
        overview=_overview(tx, session),
        total_archives=total,
        failed_archives=failed,
        counted_by=context.settings.token_counter,
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
        latest.left_out,
    )


def _expand(tx: Tx, principal: Principal, op: ExpandContext, _ready: None, context: CallContext) -> Expanded:
    session = session_access.require(tx, principal, op.session_id)
    ranges = _ranges_of(tx, session, op.ref)
    counted_by = context.settings.token_counter
    count = tokens.counter(counted_by)
    stored = _messages_in(tx, session, ranges)
    found = tool_outputs.mark_previews(stored, tool_outputs.find(stored), count)
    spent, shown = 0, 0
    while shown < len(found) and (shown == 0 or spent + found[shown].tokens <= op.token_budget):
        spent += found[shown].tokens
        shown += 1
    if not shown:
        raise NotFoundError("messages", op.ref)
    room = Room(op.token_budget - spent, count, tokens.bound(counted_by))
    filled = tool_outputs.fill(found[:shown], tool_outputs.find(found[:shown]), room, reader(tx))
    brought = filled.messages
    end = brought[-1].seq
    return Expanded(
        session_id=session.session_id,
        ref=op.ref,
        archive_ids=_archives_of(tx, session, ranges, end),
        first_seq=brought[0].seq,
        last_seq=end,
        messages=brought,
        estimated_tokens=sum(message.tokens for message in brought),
        next_ref=citations.after(ranges, end),
        left_out=filled.left_out,
    )


def _ranges_of(tx: Tx, session: StoredSession, ref: str) -> list[tuple[int, int]]:
    """Which messages a reference means: first and last number of each range, in order."""
    if archive_number(ref) is not None:
        archive = require(tx, session, ref)
        return [(archive.first_seq, archive.last_seq)]
    seq = messages.seq_of(tx, lineage.log_ranges(tx, session), ref)
    if seq is not None:
        return [(seq, seq)]
    ranges = citations.parse_ranges(ref)
    if ranges is None:
        raise NotFoundError("messages", ref)
    return [(first, min(last, session.last_seq)) for first, last in ranges if first <= session.last_seq]


def _messages_in(tx: Tx, session: StoredSession, ranges: list[tuple[int, int]]) -> list[Message]:
    found: list[Message] = []
    for first, last in ranges:
        if len(found) < EXPAND_AT_ONCE:
            found += messages_of(tx, session, first, last, EXPAND_AT_ONCE - len(found))
    return found


def _archives_of(tx: Tx, session: StoredSession, ranges: list[tuple[int, int]], end: int) -> list[str]:
    """The archives that hold the messages of `ranges` up to `end`."""
    numbers = {
        number
        for first, last in ranges
        if first <= end
        for number in store.holding(tx, session.log_id, first, min(last, end))
    }
    return [archive_id(number) for number in sorted(numbers)]


RULES: dict[type, Rule] = {
    ListArchives: Rule(_list),
    GetSessionArchive: Rule(_get),
    GetSessionContext: Rule(_get_context),
    ExpandContext: Rule(_expand),
}
