"""Creating, finding, changing, forking and deleting sessions, and what they used."""

from typing import Any

import msgspec

from holdfast.engine.gate.rule import CallContext, Rule, always
from holdfast.engine.gate.session_access import blank, ensure, insert, require
from holdfast.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.sessions import SessionConfig, SessionInfo, SessionPage, SessionRef, Usage, UseRecorded
from holdfast.ops.sessions import (
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ForkSession,
    GetSession,
    ListSessions,
    ListUsage,
    RecordUse,
    UpdateSession,
)
from holdfast.storable import storable_json, storable_text
from holdfast.store.database import Tx
from holdfast.store.tables import (
    accounts,
    append_results,
    archives,
    auto_commit_checks,
    changes,
    lineage,
    messages,
    session_info,
    tasks,
    tool_results,
    usages,
)
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession
from holdfast.store.timestamps import storable_micros

MAX_METADATA_BYTES = 64 * 1024


def _create(
    tx: Tx, principal: Principal, op: CreateSession, ready: tuple[str, str], context: CallContext
) -> SessionInfo:
    session_id = op.session_id or context.ids.new("sess")
    metadata, config = ready
    session = msgspec.structs.replace(
        blank(principal, session_id, context),
        title=op.title,
        metadata=metadata,
        config=config,
        created_at=context.now if op.created_at is None else storable_micros("created_at", op.created_at),
    )
    inserted = insert(tx, principal, session, context)
    if inserted is None:
        raise _taken(session_id)
    return session_info.gather(tx, inserted)


def _get(tx: Tx, principal: Principal, op: GetSession, _ready: None, context: CallContext) -> SessionInfo:
    session = ensure(tx, principal, op.session_id, context) if op.auto_create else require(tx, principal, op.session_id)
    return session_info.gather(tx, session)


def _list(tx: Tx, principal: Principal, op: ListSessions, before: int | None, _context: CallContext) -> SessionPage:
    found = store.page(tx, principal.user_id, limit=op.limit + 1, before=before, q=op.q, state=op.state)
    shown = found[: op.limit]
    more = len(found) > op.limit
    return SessionPage([store.line(session) for session in shown], f"{shown[-1].log_id:x}" if more else None)


def _read_cursor(_context: CallContext, _principal: Principal, op: ListSessions) -> int | None:
    return None if op.cursor is None else min(int(op.cursor, 16), 2**63 - 1)


def _update(tx: Tx, principal: Principal, op: UpdateSession, _metadata: str, context: CallContext) -> SessionInfo:
    session = require(tx, principal, op.session_id, lock=True)
    asked = op.metadata or {}
    removed = {key for key, value in asked.items() if value is None}
    merged = {**store.decode_metadata(session.metadata), **asked}
    store.update(
        tx,
        session,
        title=session.title if op.title is None else op.title,
        metadata=_encode_metadata({key: value for key, value in merged.items() if key not in removed}),
        state=op.state or session.state,
        now=context.now,
    )
    given = {"title": op.title, "metadata": op.metadata, "state": op.state}
    told = {name: value for name, value in given.items() if value is not None}
    changes.record(tx, session, "updated", principal.user_id, context.now, told)
    return session_info.gather(tx, require(tx, principal, op.session_id))


def _configure(tx: Tx, principal: Principal, op: ConfigureSession, _ready: None, context: CallContext) -> SessionInfo:
    session = require(tx, principal, op.session_id, lock=True)
    given = {name: getattr(op, name) for name in SessionConfig.__struct_fields__}
    told = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    config = msgspec.structs.replace(store.decode_config(session.config), **told)
    store.configure(tx, session, _encode_config(config), context.now)
    changes.record(tx, session, "configured", principal.user_id, context.now, told)
    if op.auto_commit_policy:
        context.signal.raised = auto_commit_checks.look_by(tx, session.log_id, context.now)
    return session_info.gather(tx, require(tx, principal, op.session_id))


def _delete(tx: Tx, principal: Principal, op: DeleteSession, _ready: None, _context: CallContext) -> SessionRef:
    session = require(tx, principal, op.session_id, lock=True)
    accounts.lock(tx, tx.account)  # two deletions must not each leave a shared log to the other
    store.delete(tx, session)
    append_results.delete(tx, session.log_id)
    usages.delete(tx, session.log_id)
    changes.delete(tx, session.log_id)
    auto_commit_checks.delete(tx, session.log_id)
    tasks.delete_of_log(tx, session.log_id)
    archives.delete(tx, session.log_id)
    orphans = [log_id for log_id in lineage.cut_off(tx, session) if not store.log_is_alive(tx, log_id)]
    ends = [(log_id, lineage.needed_through(tx, log_id)) for log_id in orphans]
    tool_results.delete_after(tx, ends)
    for log_id, kept in ends:
        messages.delete_after(tx, log_id, kept)
    return SessionRef(session.session_id)


def _fork(tx: Tx, principal: Principal, op: ForkSession, _ready: None, context: CallContext) -> SessionInfo:
    parent = require(tx, principal, op.session_id, lock=True)
    at = _fork_point(tx, parent, op.at)
    tokens, time, added = _state_at(tx, parent, at)
    # Only what a finished archive stands for is archived in the fork; the rest speaks for itself.
    archived_through = archives.done_through(tx, parent.log_id, at)
    child = msgspec.structs.replace(
        blank(principal, op.new_session_id or context.ids.new("sess"), context),
        title=parent.title if op.title is None else op.title,
        metadata=parent.metadata,
        config=parent.config,
        created_at=context.now if op.created_at is None else storable_micros("created_at", op.created_at),
        live_from=archived_through + 1,
        tokens_archived=_state_at(tx, parent, archived_through)[0],
        forked_from=parent.session_id,
        fork_seq=at,
        fork_tokens=tokens,
        fork_time=time,
        fork_added=added,
    )
    inserted = insert(tx, principal, child, context)
    if inserted is None:
        raise _taken(child.session_id)
    lineage.branch(tx, parent, at, inserted.log_id)
    archives.share(tx, parent, inserted.log_id, archived_through)
    changes.record(tx, parent, "forked", principal.user_id, context.now, {"session_id": inserted.session_id, "seq": at})
    if parent.config != NO_CONFIG:
        context.signal.raised = auto_commit_checks.look_by(tx, inserted.log_id, context.now)
    return session_info.gather(tx, inserted)


def _fork_point(tx: Tx, parent: StoredSession, at: int | str | None) -> int:
    if at is None:
        return parent.last_seq
    if isinstance(at, int):
        if at > parent.last_seq:
            raise NotFoundError("message", str(at))
        return at
    seq = messages.seq_of(tx, lineage.log_ranges(tx, parent), at)
    if seq is None:
        raise NotFoundError("message", at)
    return seq


def _state_at(tx: Tx, session: StoredSession, seq: int) -> tuple[int, int | None, int | None]:
    """The tokens of a session through message `seq`, that message's time, and when it was added."""
    holding = lineage.log_ranges(tx, session, seq, seq)
    return messages.state_at(tx, holding[0]) if holding else (0, None, None)


def _record_use(
    tx: Tx, principal: Principal, op: RecordUse, uses: list[usages.Use], context: CallContext
) -> UseRecorded:
    session = ensure(tx, principal, op.session_id, context)
    at = context.now if op.created_at is None else storable_micros("created_at", op.created_at)
    for use in uses:
        usages.insert(tx, session.log_id, principal.user_id, use, at)
    skills = sum(use.kind == "skill" for use in uses)
    used = {"contexts": [use.uri for use in uses if use.kind == "context"]}
    if op.skill is not None:
        used["skill"] = [op.skill.uri]
    changes.record(tx, session, "used", principal.user_id, context.now, used)
    return UseRecorded(session.session_id, len(uses) - skills, skills)


def _prepare_use(context: CallContext, _principal: Principal, op: RecordUse) -> list[usages.Use]:
    if op.contexts is None and op.skill is None:
        raise InvalidArgumentError("contexts", "nothing was used; give contexts, a skill, or both")
    uses = []
    for number, uri in enumerate(op.contexts or ()):
        storable_text(f"contexts[{number}]", uri)
        uses.append(usages.Use(context.ids.new("use"), "context", uri, None))
    if op.skill is not None:
        detail = storable_json("skill", msgspec.structs.asdict(op.skill))
        if len(detail.encode()) > context.settings.max_message_bytes:
            raise InvalidArgumentError("skill", f"is larger than {context.settings.max_message_bytes} bytes")
        uses.append(usages.Use(context.ids.new("use"), "skill", op.skill.uri, detail))
    return uses


def _list_usage(tx: Tx, principal: Principal, op: ListUsage, _ready: None, _context: CallContext) -> list[Usage]:
    return usages.read(tx, require(tx, principal, op.session_id).log_id, op.after, op.limit)


def _check_metadata(_context: CallContext, _principal: Principal, op: UpdateSession) -> str:
    return _encode_metadata(op.metadata or {})


def _prepare_creation(_context: CallContext, _principal: Principal, op: CreateSession) -> tuple[str, str]:
    config = SessionConfig(op.memory_policy, op.auto_commit_policy, op.memory_extraction_config)
    return _encode_metadata(op.metadata), _encode_config(config)


def _check_config(_context: CallContext, _principal: Principal, op: ConfigureSession) -> None:
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


def _taken(session_id: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"Session {session_id} already exists", resource=session_id, type="session")


RULES: dict[type, Rule] = {
    CreateSession: Rule(_create, always, _prepare_creation),
    GetSession: Rule(_get, lambda op: op.auto_create),
    ListSessions: Rule(_list, prepare=_read_cursor),
    UpdateSession: Rule(_update, always, _check_metadata),
    ConfigureSession: Rule(_configure, always, _check_config),
    DeleteSession: Rule(_delete, always),
    ForkSession: Rule(_fork, always),
    RecordUse: Rule(_record_use, always, _prepare_use),
    ListUsage: Rule(_list_usage),
}
