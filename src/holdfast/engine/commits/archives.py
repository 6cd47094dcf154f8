"""Reading archives, the session's context, and the messages that a reference names."""

from typing import Any

import msgspec

from holdfast.context import tool_outputs
from holdfast.context.tool_outputs import OutputBudget
from holdfast.context.window import ContextInput, Overview, assemble
from holdfast.engine.commits.message_pages import ALL_MESSAGES, message_page, output_converter, output_previews
from holdfast.engine.commits.tool_outputs import output_reader
from holdfast.engine.gate import session_access
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.streams import as_result
from holdfast.errors import NotFoundError
from holdfast.model.archives import (
    Archive,
    ArchiveInfo,
    Expanded,
    MessageRange,
    archive_id,
    archive_number,
)
from holdfast.model.identity import Principal
from holdfast.model.messages import Message
from holdfast.ops.commits import ExpandContext, GetSessionArchive, GetSessionContext, ListArchives
from holdfast.store.checked.archive_rows import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.tables import archives as store
from holdfast.store.tables import lineage, messages
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import StoredSession
from holdfast.text import citations, tokens

MAX_EXPANDED_MESSAGES = 1_000


def require_archive(tx: Tx, session: StoredSession, name: str) -> StoredArchive:
    number = archive_number(name)
    archive = None if number is None else store.find(tx, session.log_id, number)
    if archive is None:
        raise NotFoundError("archive", name)
    return archive


def read_messages(
    tx: Tx, session: StoredSession, first: int, last: int | None, limit: int = ALL_MESSAGES
) -> list[Message]:
    return messages.read(tx, lineage.log_ranges(tx, session, first, last), limit)


def _list(tx: Tx, principal: Principal, op: ListArchives, _prepared: None, _context: CallContext) -> list[ArchiveInfo]:
    session = session_access.require_session(tx, principal, op)
    page = store.page(tx, session.log_id, after=op.after, limit=op.limit, with_overviews=False)
    return [store.info(session, archive) for archive in page]


def _get(tx: Tx, principal: Principal, op: GetSessionArchive, _prepared: None, _context: CallContext) -> Any:
    session = session_access.require_session(tx, principal, op)
    archive = require_archive(tx, session, op.archive_id)
    if archive.state != "done":
        raise NotFoundError("archive", op.archive_id)
    page = message_page(tx, principal, session, lineage.log_ranges(tx, session, archive.first_seq, archive.last_seq))
    return as_result(
        Archive(archive_id=op.archive_id, abstract=archive.abstract, overview=archive.overview, messages=[]),
        "messages",
        page,
    )


def _get_context(tx: Tx, principal: Principal, op: GetSessionContext, _prepared: None, context: CallContext) -> Any:
    session = session_access.require_session(tx, principal, op)
    stored, log_ranges = _context_input(tx, session, context)
    assembled = assemble(stored, op.token_budget, output_reader(tx))
    if stored.has_all_messages:
        return assembled.context
    count = tokens.counter(stored.counted_by)
    system_seq = None if stored.system_message is None else stored.system_message.seq
    convert = output_converter(assembled.complete_outputs, count, system_seq)
    page = message_page(tx, principal, session, log_ranges, convert)
    return as_result(msgspec.structs.replace(assembled.context, messages=[]), "messages", page)


def _context_input(tx: Tx, session: StoredSession, context: CallContext) -> tuple[ContextInput, list[LogRange]]:
    """Read what a context is assembled from. Also return the log ranges of its messages."""
    overview = _overview(tx, session)
    ranges = store.unfinished_ranges(tx, session.log_id)
    ranges = _with_uncovered_ranges(ranges, overview, session.live_from - 1)
    if session.live_count > 0:
        live_tokens = session.tokens_total - session.tokens_archived
        ranges.append(MessageRange(None, "live", session.live_from, session.last_seq, live_tokens))
    log_ranges = [
        log_range
        for first, last in _merge_adjacent(ranges)
        for log_range in lineage.log_ranges(tx, session, first, last)
    ]
    rows = messages.read_page(tx, log_ranges, ALL_MESSAGES)
    system_message = messages.latest_system_message(tx, lineage.log_ranges(tx, session))
    shown = rows.messages
    if rows.has_more:
        system_seq = None if system_message is None else system_message.seq
        shown = [message for message in output_previews(tx, log_ranges) if message.seq != system_seq]
    ranges = [_with_tokens(message_range, shown) for message_range in ranges]
    unfinished_numbers = [message_range.number for message_range in ranges if message_range.number is not None]
    stored = ContextInput(
        ranges=ranges,
        messages=shown,
        has_all_messages=not rows.has_more,
        system_message=system_message,
        overview=overview,
        # Archives are numbered without gaps. Each one is done or in `ranges`.
        total_archives=max([overview.archive_number if overview else 0, *unfinished_numbers]),
        failed_archives=sum(message_range.state == "failed" for message_range in ranges),
        counted_by=context.settings.token_counter,
    )
    return stored, log_ranges


def _with_uncovered_ranges(ranges: list[MessageRange], overview: Overview | None, last: int) -> list[MessageRange]:
    """Add ranges for the archived messages up to `last` that neither an unfinished archive nor the overview has.

    Their archives are damaged, so the messages are shown instead.
    """
    covered_through = 0 if overview is None else overview.last_seq
    complete: list[MessageRange] = []
    for message_range in [*ranges, MessageRange(None, "live", last + 1, last + 1, 0)]:
        if covered_through + 1 < message_range.first_seq <= last + 1:
            complete.append(MessageRange(None, "damaged", covered_through + 1, message_range.first_seq - 1, 0))
        if message_range.first_seq <= last:
            complete.append(message_range)
        covered_through = max(covered_through, message_range.last_seq)
    return complete


def _with_tokens(message_range: MessageRange, shown: list[Message]) -> MessageRange:
    """Count the tokens of a range whose archive, which has them, is damaged."""
    if message_range.state != "damaged":
        return message_range
    first, last = message_range.first_seq, message_range.last_seq
    tokens_shown = sum(message.tokens for message in shown if first <= message.seq <= last)
    return msgspec.structs.replace(message_range, tokens=tokens_shown)


def _merge_adjacent(ranges: list[MessageRange]) -> list[tuple[int, int]]:
    """Merge adjacent ranges, so that they are read with one query."""
    merged: list[tuple[int, int]] = []
    for message_range in ranges:
        if merged and merged[-1][1] + 1 == message_range.first_seq:
            merged[-1] = (merged[-1][0], message_range.last_seq)
        else:
            merged.append((message_range.first_seq, message_range.last_seq))
    return merged


def _overview(tx: Tx, session: StoredSession) -> Overview | None:
    latest = store.latest_done(tx, session.log_id)
    if latest is None:
        return None
    return Overview(
        latest.number,
        store.first_done_seq(tx, session.log_id),
        latest.first_seq,
        latest.last_seq,
        latest.overview,
        latest.overview_tokens,
        latest.rolling,
        latest.rolling_tokens,
        latest.left_out_rule_seqs,
    )


def _expand(tx: Tx, principal: Principal, op: ExpandContext, _prepared: None, context: CallContext) -> Any:
    session = session_access.require_session(tx, principal, op)
    ranges = _resolve_ref(tx, session, op.ref)
    counted_by = context.settings.token_counter
    count = tokens.counter(counted_by)
    log_ranges = [each for first, last in ranges for each in lineage.log_ranges(tx, session, first, last)]
    counts = messages.token_counts(tx, log_ranges, MAX_EXPANDED_MESSAGES)
    # The messages themselves are read last, page by page. Only large tool outputs change their tokens.
    stored = output_previews(tx, lineage.ranges_until(log_ranges, counts[-1][0])) if counts else []
    with_previews = tool_outputs.mark_previews(stored, range(len(stored)), count)
    marked_tokens = {message.seq: message.tokens for message in with_previews}
    fitting, spent = _fit_budget([(seq, marked_tokens.get(seq, own)) for seq, own in counts], op.token_budget)
    if not fitting:
        raise NotFoundError("messages", op.ref)
    first_seq, last_seq = fitting[0], fitting[-1]
    previews = [message for message in with_previews if message.seq <= last_seq]
    output_budget = OutputBudget(op.token_budget - spent, count, tokens.upper_bound_counter(counted_by))
    restored = tool_outputs.restore_within_tokens(previews, range(len(previews)), output_budget, output_reader(tx))
    restored_tokens = sum(line.tokens for line in restored.included)
    convert = output_converter(restored.complete, count, hidden_seq=None)
    page = message_page(tx, principal, session, lineage.ranges_until(log_ranges, last_seq), convert)
    expanded = Expanded(
        session_id=session.session_id,
        ref=op.ref,
        archive_ids=_archive_ids(tx, session, ranges, last_seq),
        first_seq=first_seq,
        last_seq=last_seq,
        messages=[],
        estimated_tokens=spent + restored_tokens,
        next_ref=citations.ranges_after(ranges, last_seq),
        left_out=restored.left_out,
    )
    return as_result(expanded, "messages", page)


def _fit_budget(counts: list[tuple[int, int]], token_budget: int) -> tuple[list[int], int]:
    """Return the sequence numbers of the first messages that fit in the budget, at least one, and their tokens."""
    fitting: list[int] = []
    spent = 0
    for seq, count in counts:
        if fitting and spent + count > token_budget:
            break
        fitting.append(seq)
        spent += count
    return fitting, spent


def _resolve_ref(tx: Tx, session: StoredSession, ref: str) -> list[tuple[int, int]]:
    """Return the first and last sequence number of each range of messages that a reference names, in order."""
    if archive_number(ref) is not None:
        archive = require_archive(tx, session, ref)
        return [(archive.first_seq, archive.last_seq)]
    seq = messages.find_seq(tx, lineage.log_ranges(tx, session), ref)
    if seq is not None:
        return [(seq, seq)]
    ranges = citations.parse_ranges(ref)
    if ranges is None:
        raise NotFoundError("messages", ref)
    return [(first, min(last, session.last_seq)) for first, last in ranges if first <= session.last_seq]


def _archive_ids(tx: Tx, session: StoredSession, ranges: list[tuple[int, int]], last_seq: int) -> list[str]:
    """Return the ids of the archives that contain the messages of `ranges` up to `last_seq`."""
    numbers = {
        number
        for first, last in ranges
        if first <= last_seq
        for number in store.numbers_in_range(tx, session.log_id, first, min(last, last_seq))
    }
    return [archive_id(number) for number in sorted(numbers)]


HANDLERS: dict[type, OperationHandler] = {
    ListArchives: OperationHandler(_list),
    GetSessionArchive: OperationHandler(_get),
    GetSessionContext: OperationHandler(_get_context),
    ExpandContext: OperationHandler(_expand),
}
