"""Creating, reading, changing and forking sessions, and recording uses."""

from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.gate.session_access import (
    get_or_create_session,
    grantee_of,
    insert_session,
    new_session,
    require_session,
    require_unchanged,
)
from holdfast.engine.gate.streams import Page, as_result
from holdfast.engine.recall.skill_uses import count_skill_use
from holdfast.engine.sessions.deletion import delete_session
from holdfast.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.sessions import SessionConfig, SessionInfo, SessionPage, SessionRow, Usage, UseRecorded
from holdfast.ops.sessions import (
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ExtractMemories,
    ForkSession,
    GetSession,
    ListSessions,
    ListUsage,
    RecordUse,
    UpdateSession,
)
from holdfast.storable import storable_json, storable_text
from holdfast.store import read_memory
from holdfast.store.access import shared_sessions
from holdfast.store.database import Tx
from holdfast.store.tables import (
    archives,
    auto_commit_checks,
    changes,
    lineage,
    messages,
    session_info,
    unindexed,
    usages,
)
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, SessionFilter, StoredSession
from holdfast.store.timestamps import storable_micros

MAX_METADATA_BYTES = 64 * 1024
LISTED_ROWS = 500
"""How many sessions a server reads and sends at once, if a list has no limit."""


def _create(
    tx: Tx, principal: Principal, op: CreateSession, checked: tuple[str, str], context: CallContext
) -> SessionInfo:
    session_id = op.session_id or context.ids.new("sess")
    metadata, config = checked
    session = msgspec.structs.replace(
        new_session(principal, session_id, context),
        title=op.title,
        metadata=metadata,
        config=config,
        created_at=context.now if op.created_at is None else storable_micros("created_at", op.created_at),
    )
    inserted = insert_session(tx, principal, session, context)
    if inserted is None:
        raise _already_exists(session_id)
    return session_info.read_session_info(tx, inserted)


def _get(tx: Tx, principal: Principal, op: GetSession, _prepared: None, context: CallContext) -> SessionInfo:
    session = (
        get_or_create_session(tx, principal, op, context) if op.auto_create else require_session(tx, principal, op)
    )
    return session_info.read_session_info(tx, session)


def _list(tx: Tx, principal: Principal, op: ListSessions, before: int | None, _context: CallContext) -> Any:
    wanted = SessionFilter(before=before, q=op.q, state=op.state)
    if op.limit is None:
        page_rows = LISTED_ROWS if read_memory.is_limited() else read_memory.NO_LIMIT - 1
        return as_result(SessionPage([], None), "sessions", _rows_page(tx, principal, op, wanted, page_rows))
    found = _read_rows(tx, principal, op, wanted, op.limit + 1)
    page = found[: op.limit]
    has_more = len(found) > op.limit
    return SessionPage([store.to_row(session) for session in page], f"{page[-1].log_id:x}" if has_more else None)


def _rows_page(tx: Tx, principal: Principal, op: ListSessions, wanted: SessionFilter, limit: int) -> Page[SessionRow]:
    found = _read_rows(tx, principal, op, wanted, limit + 1)
    rows = [store.to_row(session) for session in found[:limit]]
    if len(found) <= limit:
        return Page(rows)
    following = msgspec.structs.replace(wanted, before=found[limit - 1].log_id)
    return Page(rows, lambda tx: _rows_page(tx, principal, op, following, limit))


def _read_rows(
    tx: Tx, principal: Principal, op: ListSessions, wanted: SessionFilter, limit: int
) -> list[StoredSession]:
    if op.shared is False:
        return store.page(tx, principal.internal_id, wanted, limit, for_list=True)
    read_page = shared_sessions.page if op.shared else shared_sessions.page_with_own
    return read_page(tx, grantee_of(principal), wanted, limit)


def _parse_cursor(_context: CallContext, op: ListSessions) -> int | None:
    return None if op.cursor is None else min(int(op.cursor, 16), 2**63 - 1)


def _update(tx: Tx, principal: Principal, op: UpdateSession, _metadata: str, context: CallContext) -> SessionInfo:
    session = require_session(tx, principal, op, lock=True)
    new_metadata = op.metadata or {}
    removed = {key for key, value in new_metadata.items() if value is None}
    merged = {**store.decode_metadata(session.metadata), **new_metadata}
    store.update(
        tx,
        session,
        title=session.title if op.title is None else op.title,
        metadata=_encode_metadata({key: value for key, value in merged.items() if key not in removed}),
        state=op.state or session.state,
        now=context.now,
    )
    fields = {"title": op.title, "metadata": op.metadata, "state": op.state}
    changed = {name: value for name, value in fields.items() if value is not None}
    changes.record(tx, session, "updated", principal.user_id, context.now, changed)
    return session_info.read_session_info(tx, require_session(tx, principal, op))


def _configure(
    tx: Tx, principal: Principal, op: ConfigureSession, _prepared: None, context: CallContext
) -> SessionInfo:
    session = require_session(tx, principal, op, lock=True)
    fields = {name: getattr(op, name) for name in SessionConfig.__struct_fields__}
    changed = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    config = msgspec.structs.replace(store.decode_config(session.config), **changed)
    store.configure(tx, session, _encode_config(config), context.now)
    changes.record(tx, session, "configured", principal.user_id, context.now, changed)
    if op.auto_commit_policy:
        auto_commit_checks.schedule_now(tx, session.log_id)
        context.wake_workers()
    return session_info.read_session_info(tx, require_session(tx, principal, op))


def _fork(tx: Tx, principal: Principal, op: ForkSession, _prepared: None, context: CallContext) -> SessionInfo:
    parent = require_session(tx, principal, op, lock=True)
    at = _fork_point(tx, parent, op.at)
    tokens, time, added_at = _state_at(tx, parent, at)
    # The fork has the finished archives. Messages of unfinished archives are live messages of the fork.
    archived_through = archives.done_through(tx, parent.log_id, at)
    child = msgspec.structs.replace(
        new_session(principal, op.new_session_id or context.ids.new("sess"), context),
        title=parent.title if op.title is None else op.title,
        metadata=parent.metadata,
        config=parent.config,
        created_at=context.now if op.created_at is None else storable_micros("created_at", op.created_at),
        live_from=archived_through + 1,
        tokens_archived=_state_at(tx, parent, archived_through)[0],
        forked_from=parent.session_id,
        fork_seq=at,
        indexed_seq=at,
        fork_tokens=tokens,
        fork_time=time,
        fork_added=added_at,
    )
    inserted = insert_session(tx, principal, child, context)
    if inserted is None:
        raise _already_exists(child.session_id)
    lineage.branch(tx, parent, at, inserted.log_id)
    archives.copy_to_fork(tx, parent, inserted.log_id, archived_through)
    if archived_through:  # its archives have overviews to index
        unindexed.add(tx, inserted.log_id)
        context.wake_workers()
    changes.record(tx, parent, "forked", principal.user_id, context.now, {"session_id": inserted.session_id, "seq": at})
    if parent.config != NO_CONFIG:
        auto_commit_checks.schedule_now(tx, inserted.log_id)
        context.wake_workers()
    return session_info.read_session_info(tx, inserted)


def _fork_point(tx: Tx, parent: StoredSession, at: int | str | None) -> int:
    if at is None:
        return parent.last_seq
    if isinstance(at, int):
        if at > parent.last_seq:
            raise NotFoundError("message", str(at))
        return at
    seq = messages.find_seq(tx, lineage.log_ranges(tx, parent), at)
    if seq is None:
        raise NotFoundError("message", at)
    return seq


def _state_at(tx: Tx, session: StoredSession, seq: int) -> tuple[int, int | None, int | None]:
    """Return the tokens of a session through message `seq`, the message's time, and the time it was added."""
    log_ranges = lineage.log_ranges(tx, session, seq, seq)
    return messages.state_at(tx, log_ranges[0]) if log_ranges else (0, None, None)


def _record_use(
    tx: Tx, principal: Principal, op: RecordUse, uses: list[usages.Use], context: CallContext
) -> UseRecorded:
    session = get_or_create_session(tx, principal, op, context)
    at = context.now if op.created_at is None else storable_micros("created_at", op.created_at)
    for use in uses:
        usages.insert(tx, context.ids.new("use"), session.log_id, principal.user_id, use, at)
    skill_count = sum(use.kind == "skill" for use in uses)
    used = {"contexts": [use.uri for use in uses if use.kind == "context"]}
    if op.skill is not None:
        used["skill"] = [op.skill.uri]
        count_skill_use(tx, principal, op.skill, at)
    if uses:
        changes.record(tx, session, "used", principal.user_id, context.now, used)
    return UseRecorded(session.session_id, len(uses) - skill_count, skill_count)


def _check_use(context: CallContext, op: RecordUse) -> list[usages.Use]:
    uses = []
    for number, uri in enumerate(op.contexts or ()):
        storable_text(f"contexts[{number}]", uri)
        uses.append(usages.Use("context", uri, None))
    if op.skill is not None:
        detail = storable_json("skill", msgspec.structs.asdict(op.skill))
        if len(detail.encode()) > context.settings.max_message_bytes:
            raise InvalidArgumentError("skill", f"is larger than {context.settings.max_message_bytes} bytes")
        uses.append(usages.Use("skill", op.skill.uri, detail))
    return uses


def _list_usage(tx: Tx, principal: Principal, op: ListUsage, _prepared: None, _context: CallContext) -> Any:
    session = require_session(tx, principal, op)
    return as_result([], None, _usage_page(tx, principal, session, op.after, op.limit))


def _usage_page(tx: Tx, principal: Principal, session: StoredSession, after: str | None, limit: int) -> Page[Usage]:
    found, has_more = usages.read_page(tx, session.log_id, after, limit)
    if not has_more:
        return Page(found)
    last_id, limit_left = found[-1].id, limit - len(found)

    def read_next(tx: Tx) -> Page[Usage]:
        return _usage_page(tx, principal, require_unchanged(tx, principal, session), last_id, limit_left)

    return Page(found, read_next)


def _extract(
    tx: Tx, principal: Principal, op: ExtractMemories, _prepared: None, _context: CallContext
) -> list[dict[str, Any]]:
    require_session(tx, principal, op)
    return []


def _check_metadata(_context: CallContext, op: UpdateSession) -> str:
    return _encode_metadata(op.metadata or {})


def _check_creation(_context: CallContext, op: CreateSession) -> tuple[str, str]:
    config = SessionConfig(op.memory_policy, op.auto_commit_policy, op.memory_extraction_config)
    return _encode_metadata(op.metadata), _encode_config(config)


def _check_config(_context: CallContext, op: ConfigureSession) -> None:
    _encode_config(SessionConfig(memory_extraction_config=op.memory_extraction_config or None))


def _encode_config(config: SessionConfig) -> str:
    extraction = storable_json("memory_extraction_config", config.memory_extraction_config)
    if len(extraction.encode()) > MAX_METADATA_BYTES:
        raise InvalidArgumentError("memory_extraction_config", f"is larger than {MAX_METADATA_BYTES} bytes")
    return msgspec.json.encode(config).decode()


def _encode_metadata(metadata: dict[str, Any]) -> str:
    encoded = storable_json("metadata", metadata)
    if len(encoded.encode()) > MAX_METADATA_BYTES:
        raise InvalidArgumentError("metadata", f"is larger than {MAX_METADATA_BYTES} bytes; keep large data elsewhere")
    return encoded


def _already_exists(session_id: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"Session {session_id} already exists", resource=session_id, type="session")


HANDLERS: dict[type, OperationHandler] = {
    CreateSession: OperationHandler(_create, writes=always, check=_check_creation),
    GetSession: OperationHandler(_get, writes=lambda op: op.auto_create),
    ListSessions: OperationHandler(_list, check=_parse_cursor),
    UpdateSession: OperationHandler(_update, writes=always, check=_check_metadata),
    ConfigureSession: OperationHandler(_configure, writes=always, check=_check_config),
    DeleteSession: OperationHandler(delete_session, writes=always),
    ForkSession: OperationHandler(_fork, writes=always),
    RecordUse: OperationHandler(_record_use, writes=always, check=_check_use),
    ListUsage: OperationHandler(_list_usage),
    ExtractMemories: OperationHandler(_extract),
}
