"""Statistics of sessions and memories, and whether everything is indexed."""

from typing import get_args

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.session_access import require_session
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.sessions import session_uri
from holdfast.model.system import Consistency, MemoryStats, SessionStats, Staleness
from holdfast.ops.sessions import GetSessionStats
from holdfast.ops.system import CheckConsistency, GetMemoryStats, MemoryCategory
from holdfast.search.requests.addresses import canonical_address, is_below
from holdfast.store.database import Tx
from holdfast.store.tables import lineage, messages, sessions, tool_results, usages
from holdfast.store.timestamps import from_micros

MAX_MISSING = 100
"""How many sessions with messages that are not indexed are named."""


def _memory_stats(
    tx: Tx, principal: Principal, op: GetMemoryStats, _prepared: None, _context: CallContext
) -> MemoryStats:
    session_count, message_count, tokens = sessions.totals(tx, principal.internal_id)
    categories = get_args(MemoryCategory) if op.category is None else (op.category,)
    return MemoryStats(
        sessions=session_count,
        messages=message_count,
        tokens=tokens,
        total_memories=0,
        by_category=dict.fromkeys(categories, 0),
        hotness_distribution=dict.fromkeys(("cold", "warm", "hot"), 0),
        staleness=Staleness(),
    )


def _session_stats(
    tx: Tx, principal: Principal, op: GetSessionStats, _prepared: None, _context: CallContext
) -> SessionStats:
    session = require_session(tx, principal, op)
    log_ranges = lineage.log_ranges(tx, session)
    by_role, first_at = messages.totals(tx, log_ranges)
    contexts, skills = usages.totals(tx, session.log_id)
    last_at = session.last_message_at
    return SessionStats(
        session_id=session.session_id,
        total_turns=session.last_seq,
        memories_extracted=0,
        messages=session.last_seq,
        live_messages=session.live_count,
        messages_by_role=by_role,
        tokens=session.tokens_total,
        pending_tokens=session.tokens_total - session.tokens_archived,
        tool_results=tool_results.count(tx, log_ranges),
        contexts_used=contexts,
        skills_used=skills,
        first_message_at=None if first_at is None else from_micros(first_at),
        last_message_at=None if last_at is None else from_micros(last_at),
    )


def _check_consistency(
    tx: Tx, principal: Principal, op: CheckConsistency, _prepared: None, _context: CallContext
) -> Consistency:
    owner_id = principal.internal_id
    all_sessions = session_uri(owner_id, "").rstrip("/")
    address = canonical_address(op.uri, principal)
    if is_below(all_sessions, address):
        _, expected, _ = sessions.totals(tx, owner_id)
        found = sessions.unindexed_sessions(tx, owner_id, None, MAX_MISSING + 1)
    elif is_below(address, all_sessions):
        session_id = address.removeprefix(f"{all_sessions}/").split("/")[0].split("#")[0]
        session = sessions.find(tx, owner_id, session_id)
        if session is None:
            raise NotFoundError("session", session_id)
        expected = session.last_seq
        found = sessions.unindexed_sessions(tx, owner_id, session_id, 1)
    else:
        expected, found = 0, []
    return Consistency(
        ok=not found,
        expected_count=expected,
        missing_record_count=sum(count for _, count in found),
        missing_records=[session_uri(owner_id, session_id) for session_id, _ in found[:MAX_MISSING]],
        missing_records_truncated=len(found) > MAX_MISSING,
    )


HANDLERS: dict[type, OperationHandler] = {
    GetMemoryStats: OperationHandler(_memory_stats),
    GetSessionStats: OperationHandler(_session_stats),
    CheckConsistency: OperationHandler(_check_consistency),
}
