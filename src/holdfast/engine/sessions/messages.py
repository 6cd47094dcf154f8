"""Appending messages exactly once, and reading them back."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.engine.commits import auto_commits
from holdfast.engine.gate import session_access
from holdfast.engine.gate.rule import CallContext, Rule, always
from holdfast.engine.sessions.drafts import Prepared, prepare
from holdfast.errors import ConflictError, FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.model.messages import Appended, MessagePage, NewMessage, message_id
from holdfast.ops.sessions import AddMessage, AddMessages, GetMessages
from holdfast.store.database import Tx
from holdfast.store.tables import append_results, lineage, tool_results
from holdfast.store.tables import messages as store
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession
from holdfast.text.words import cut


def _prepare(context: CallContext, _principal: Principal, op: AddMessage | AddMessages) -> Prepared:
    if isinstance(op, AddMessage):
        return prepare(context, [op], "")
    return prepare(context, op.messages, "messages[{}].")


def _append(
    tx: Tx, principal: Principal, op: AddMessage | AddMessages, ready: Prepared, context: CallContext
) -> Appended:
    session = session_access.ensure(tx, principal, op.session_id, context)
    earlier = _earlier(tx, session, op, ready)
    if earlier is not None:
        return earlier
    last = session.last_seq
    _require_open(session, op.expected_seq, last)
    drafts = ready.drafts
    # A clock that went back must not put this message's id before the last one's.
    now = max(context.now, session.last_added_at)
    ids = [
        draft.id or message_id(now // 1_000, seq, context.ids.chance()) for seq, draft in enumerate(drafts, last + 1)
    ]
    total = store.append(tx, session, principal.user_id, drafts, ids, now)
    for output in ready.outputs:  # sorted by content, in one order for everyone
        tool_results.insert(tx, session.log_id, last + 1 + output.message, output, drafts[output.message].created_at)
    result = Appended(
        session_id=session.session_id,
        message_count=last + len(drafts) - session.live_from + 1,
        pending_tokens=total - session.tokens_archived,
        added=len(drafts),
        seq=last + len(drafts),
        message_ids=ids,
    )
    if session.config != NO_CONFIG:
        grown = msgspec.structs.replace(session, own_seq=result.seq, own_tokens=total, own_added=now)
        auto_commits.consider(tx, grown, context)
    if op.idempotency_key is not None:
        append_results.insert(tx, session.log_id, op.idempotency_key, _fingerprint(op, ready), result, context.now)
    return result


def _require_open(session: StoredSession, expected_seq: int | None, last: int) -> None:
    if session.state == "archived":
        raise FailedPreconditionError(
            f"Session {session.session_id} is archived; set its state to active before adding to it",
            resource=session.session_id,
        )
    if expected_seq is not None and expected_seq != last:
        raise ConflictError(
            f"expected_seq: the last message is {last}, not {expected_seq}; read what was added and try again",
            resource=session.session_id,
            type="session",
            current_seq=last,
        )


def _earlier(tx: Tx, session: StoredSession, op: AddMessage | AddMessages, ready: Prepared) -> Appended | None:
    """The result of the same append made before, if this one is a retry."""
    if op.idempotency_key is not None:
        found = append_results.find(tx, session.log_id, op.idempotency_key)
        if found is not None:
            fingerprint, result = found
            if fingerprint != _fingerprint(op, ready):
                raise ConflictError(
                    f"idempotency_key: {op.idempotency_key!r} was used for another body; use a new key",
                    resource=op.idempotency_key,
                    type="idempotency_key",
                )
            return result
    named = [(place, message.id) for place, message in enumerate(_given(op)) if message.id is not None]
    log_ranges = lineage.log_ranges(tx, session) if named else []
    for place, id in named:  # noqa: A001
        seq = store.seq_of(tx, log_ranges, id)
        if seq is not None:
            return _same_again(tx, session, op, ready, seq - place, id)
    return None


def _same_again(
    tx: Tx, session: StoredSession, op: AddMessage | AddMessages, ready: Prepared, first: int, known: str
) -> Appended:
    """The result of the append that began at `first`, if what it stored is what is asked for now."""
    last = first + len(ready.drafts) - 1
    before = store.stored(tx, lineage.log_ranges(tx, session, first, last))
    same = len(before) == len(ready.drafts) and all(
        (was.role, was.extra) == (draft.role, draft.extra)
        and (was.parts == draft.parts or _unnamed(was.parts) == _unnamed(draft.parts))
        and given.id in {None, was.id}
        and (given.created_at is None or was.created_at == draft.created_at)
        for was, draft, given in zip(before, ready.drafts, _given(op), strict=True)
    )
    if not same:
        raise ConflictError(
            f"id: the session already has a message {known!r} with another body; use a new id",
            resource=known,
            type="message",
        )
    through, _, _ = store.state_at(tx, lineage.log_ranges(tx, session, last, last)[0])
    return Appended(
        session_id=session.session_id,
        message_count=max(0, last - session.live_from + 1),
        pending_tokens=max(0, through - session.tokens_archived),
        added=len(before),
        seq=last,
        message_ids=[was.id for was in before],
    )


def _unnamed(parts: str) -> list[Any]:
    """Parts without the names of results, which are known only if the call is in the same append."""
    decoded: list[dict[str, Any]] = msgspec.json.decode(parts)
    return [{key: value for key, value in part.items() if key != "tool_name"} for part in decoded]


def _given(op: AddMessage | AddMessages) -> Sequence[NewMessage]:
    return [op] if isinstance(op, AddMessage) else op.messages


def _fingerprint(op: AddMessage | AddMessages, ready: Prepared) -> str:
    """What makes two appends the same: everything the caller said, nothing that was chosen for them."""
    said = [
        (given.id, draft.role, draft.said, draft.extra, draft.created_at if given.created_at else None)
        for given, draft in zip(_given(op), ready.drafts, strict=True)
    ]
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()


def _get(tx: Tx, principal: Principal, op: GetMessages, _ready: None, _context: CallContext) -> MessagePage:
    session = session_access.require(tx, principal, op.session_id)
    first = max(op.first, session.live_from) if op.live else op.first
    words = None if op.q is None else cut(op.q)
    if words is not None and not words:
        return MessagePage(session.session_id, [], None)
    log_ranges = lineage.log_ranges(tx, session, first, op.last)
    found = store.read(tx, log_ranges, op.limit, words)
    more = len(found) == op.limit and found[-1].seq < log_ranges[-1].last
    return MessagePage(session.session_id, found, found[-1].seq + 1 if more else None)


RULES: dict[type, Rule] = {
    AddMessage: Rule(_append, always, _prepare),
    AddMessages: Rule(_append, always, _prepare),
    GetMessages: Rule(_get),
}
