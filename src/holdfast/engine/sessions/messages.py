"""Appending messages exactly once, and reading them."""

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast import lazy
from holdfast.engine.commits import auto_commits
from holdfast.engine.gate import session_access
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.streams import Page, as_result, response_bytes
from holdfast.engine.sessions.drafts import CheckedMessages, make_drafts
from holdfast.errors import ConflictError, FailedPreconditionError, InvalidArgumentError
from holdfast.json_documents import decode_json
from holdfast.model.identity import DEFAULT_AGENT, Principal
from holdfast.model.messages import Appended, Message, MessagePage, NewMessage, message_id
from holdfast.ops.sessions import AddMessage, AddMessages, GetMessages
from holdfast.store.checked.message_rows import find_author, set_author
from holdfast.store.database import Tx
from holdfast.store.tables import append_results, documents, lineage, tool_results
from holdfast.store.tables import messages as store
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.messages import Draft
from holdfast.store.tables.sessions import NO_CONFIG, StoredSession
from holdfast.text.words import indexed_words

MAX_PENDING = 500
"""Messages of a log that a search reads because they are not indexed yet. If there are more, they are indexed first."""
MAX_INDEXING_SECONDS = 20.0
MAX_QUERY_WORDS = 100
"""Different words of a search."""


def _check(context: CallContext, op: AddMessage | AddMessages) -> CheckedMessages:
    if isinstance(op, AddMessage):
        return make_drafts(context, [op], "")
    return make_drafts(context, op.messages, "messages[{}].")


def _append(
    tx: Tx, principal: Principal, op: AddMessage | AddMessages, checked: CheckedMessages, context: CallContext
) -> Appended:
    tx.limit_to(op.session_id)
    session = session_access.get_or_create_session(tx, principal, op, context)
    if op.idempotency_key is not None or checked.given_ids:
        earlier_result = _find_earlier_result(tx, principal, session, op, checked)
        if earlier_result is not None:
            return earlier_result
    last = session.last_seq
    _require_appendable(session, op.expected_seq, last)
    drafts = checked.drafts
    # Ids sort by time. If the clock was set back, the new ids must still follow the existing ones.
    now = max(context.now, session.last_added_at)
    ids = [
        draft.id or message_id(now // 1_000, seq, context.ids.random_48_bits())
        for seq, draft in enumerate(drafts, last + 1)
    ]
    named = _with_author(drafts, principal, session)
    tokens_total = store.append(tx, session, principal.internal_id, named, ids, now)
    if session.indexed_seq == last:  # nothing was waiting to be indexed, so no worker may be awake for it
        context.wake_workers()
    for output in checked.outputs:  # sorted by hash: transactions that lock rows in the same order cannot deadlock
        seq, created_at = last + 1 + output.message_index, drafts[output.message_index].created_at
        tool_results.insert(tx, session.log_id, seq, output, created_at)
    result = Appended(
        session_id=session.session_id,
        message_count=last + len(drafts) - session.live_from + 1,
        pending_tokens=tokens_total - session.tokens_archived,
        added=len(drafts),
        seq=last + len(drafts),
        message_ids=ids,
    )
    if session.config != NO_CONFIG:
        updated = msgspec.structs.replace(session, own_seq=result.seq, own_tokens=tokens_total, own_added=now)
        auto_commits.commit_after_append(tx, updated, context)
    if op.idempotency_key is not None:
        fingerprint = _fingerprint(op, checked, _author(principal, session))
        append_results.insert(tx, session.log_id, op.idempotency_key, fingerprint, result)
    return result


def _with_author(drafts: list[Draft], principal: Principal, session: StoredSession) -> list[Draft]:
    """Return the messages with their author, unless the owner adds them with the default agent."""
    author = _author(principal, session)
    agent_id = None if principal.agent_id == DEFAULT_AGENT else principal.agent_id
    if author is None and agent_id is None:
        return drafts
    return [msgspec.structs.replace(draft, extra=set_author(draft.extra, author, agent_id)) for draft in drafts]


def _author(principal: Principal, session: StoredSession) -> str | None:
    """Return who adds a message, or None for the owner of the session."""
    return None if principal.internal_id == session.owner_id else principal.user_id


def _require_appendable(session: StoredSession, expected_seq: int | None, last: int) -> None:
    if session.state == "archived":
        raise FailedPreconditionError(
            f"Session {session.session_id} is archived; set its state to active before adding to it",
            resource=session.session_id,
        )
    if expected_seq is not None and expected_seq != last:
        raise ConflictError(
            f"expected_seq: the last message is {last}, not {expected_seq}; read the new messages and try again",
            resource=session.session_id,
            type="session",
            current_seq=last,
        )


def _find_earlier_result(
    tx: Tx, principal: Principal, session: StoredSession, op: AddMessage | AddMessages, checked: CheckedMessages
) -> Appended | None:
    """Return the result of the original append if this one is a retry."""
    if op.idempotency_key is not None:
        found = append_results.find(tx, session.log_id, op.idempotency_key)
        if found is not None:
            fingerprint, result = found
            if fingerprint != _fingerprint(op, checked, _author(principal, session)):
                raise ConflictError(
                    f"idempotency_key: {op.idempotency_key!r} was used for another body or by another user; use a new"
                    " key",
                    resource=op.idempotency_key,
                    type="idempotency_key",
                )
            return result
    log_ranges = lineage.log_ranges(tx, session) if checked.given_ids else []
    for id, index in checked.given_ids.items():  # noqa: A001
        seq = store.find_seq(tx, log_ranges, id)
        if seq is not None:
            return _result_if_same(tx, session, op, checked, seq - index, id, _author(principal, session))
    return None


def _result_if_same(
    tx: Tx,
    session: StoredSession,
    op: AddMessage | AddMessages,
    checked: CheckedMessages,
    first: int,
    id: str,
    author: str | None,
) -> Appended:
    """Return the result of the append that stored messages from `first` on.

    Raise a conflict for the message `id` if the stored messages differ from the new ones. To a collaborator, messages
    of others differ in any case: a guessed message must not be confirmed to somebody who may not read it.
    """
    last = first + len(checked.drafts) - 1
    stored_messages = store.read_stored(tx, lineage.log_ranges(tx, session, first, last))
    is_same = len(stored_messages) == len(checked.drafts) and all(
        # A damaged message cannot be compared. The caller has sent its id before, so this is a retry.
        (
            stored.is_damaged
            or (
                (stored.role, _without_author(stored.extra)) == (draft.role, draft.extra)
                and (author is None or find_author(stored.extra) == author)
                and _same_parts(stored.parts_json, draft.parts_json)
                and (message.created_at is None or stored.created_at == draft.created_at)
            )
        )
        and message.id in {None, stored.id}
        for stored, draft, message in zip(stored_messages, checked.drafts, _new_messages(op), strict=True)
    )
    if not is_same:
        raise ConflictError(
            f"id: the session already has a message {id!r} with another body; use a new id",
            resource=id,
            type="message",
        )
    tokens_through, _, _ = store.state_at(tx, lineage.log_ranges(tx, session, last, last)[0])
    return Appended(
        session_id=session.session_id,
        message_count=max(0, last - session.live_from + 1),
        pending_tokens=max(0, tokens_through - session.tokens_archived),
        added=len(stored_messages),
        seq=last,
        message_ids=[stored.id for stored in stored_messages],
    )


def _without_author(extra: str | None) -> str | None:
    return extra if extra is None else set_author(extra, None, None)


def _same_parts(stored: str, new: str) -> bool:
    return stored == new or _without_tool_names(stored) == _without_tool_names(new)


def _without_tool_names(parts_json: str) -> list[Any]:
    """Drop the tool names of results: they are known only if the call is in the same append."""
    decoded: list[dict[str, Any]] = decode_json(parts_json)
    return [{key: value for key, value in part.items() if key != "tool_name"} for part in decoded]


def _new_messages(op: AddMessage | AddMessages) -> Sequence[NewMessage]:
    return [op] if isinstance(op, AddMessage) else op.messages


def _fingerprint(op: AddMessage | AddMessages, checked: CheckedMessages, author: str | None) -> str:
    """Hash everything that the caller gave, and no generated value. Two authors with one key have sent two messages."""
    given: list[Any] = [
        (message.id, draft.role, draft.parts, draft.extra, draft.created_at if message.created_at else None)
        for message, draft in zip(_new_messages(op), checked.drafts, strict=True)
    ]
    if author is not None:
        given.append(author)
    return hashlib.sha256(msgspec.json.encode(given, order="deterministic")).hexdigest()


def _index_many_pending(resources: EngineResources, principal: Principal, op: GetMessages, _checked: None) -> None:
    """Index the messages of a session before a search in it, if it would otherwise read many."""
    log_ids = resources.db.read(principal.account_id, lambda tx: _logs_with_many_pending(tx, principal, op))
    if log_ids:
        deadline = time.monotonic() + MAX_INDEXING_SECONDS
        lazy.load("holdfast.engine.recall.pending").index_now(resources, principal.account_id, log_ids, deadline)


def _logs_with_many_pending(tx: Tx, principal: Principal, op: GetMessages) -> list[int]:
    session = session_access.require_session(tx, principal, op)
    return [
        each.log_id
        for each in lineage.log_ranges(tx, session)
        if each.last - max(each.first - 1, documents.last_number(tx, each.log_id)) > MAX_PENDING
    ]


def _get(tx: Tx, principal: Principal, op: GetMessages, _prepared: None, context: CallContext) -> Any:
    session = session_access.require_session(tx, principal, op)
    first = max(op.first, session.live_from) if op.live else op.first
    words = None if op.q is None else _query_words(op.q)
    if words is not None and not words:
        return MessagePage(session.session_id, [], None)
    log_ranges = lineage.log_ranges(tx, session, first, op.last)
    page = _page(tx, principal, session, log_ranges, op.limit, words, response_bytes(context), is_first=True)
    return as_result(MessagePage(session.session_id, [], None), "messages", page)


def _page(
    tx: Tx,
    principal: Principal,
    session: StoredSession,
    log_ranges: list[LogRange],
    limit: int,
    words: list[str] | None,
    max_bytes: int,
    *,
    is_first: bool,
) -> Page[Message]:
    rows = store.read_page(tx, log_ranges, limit, words, max_bytes=max_bytes, at_least_one=is_first)
    found, size = rows.messages, rows.bytes
    following = lineage.ranges_after(log_ranges, found[-1].seq) if found else log_ranges
    is_end = not following or not (rows.has_more or len(found) == limit)
    next_seq = None if is_end else following[0].first
    if is_end or not found or len(found) == limit or size >= max_bytes:
        return Page(found, ending={"next_seq": next_seq})
    limit_left, bytes_left = limit - len(found), max_bytes - size

    def read_next(tx: Tx) -> Page[Message]:
        current = session_access.require_unchanged(tx, principal, session)
        return _page(tx, principal, current, following, limit_left, words, bytes_left, is_first=False)

    return Page(found, read_next)


def _query_words(q: str) -> list[str]:
    """Return the distinct words of a query. The time of a search grows with their number."""
    words = list(dict.fromkeys(indexed_words(q)))
    if len(words) > MAX_QUERY_WORDS:
        raise InvalidArgumentError("q", f"has {len(words)} different words; give at most {MAX_QUERY_WORDS}")
    return words


HANDLERS: dict[type, OperationHandler] = {
    AddMessage: OperationHandler(_append, writes=always, check=_check),
    AddMessages: OperationHandler(_append, writes=always, check=_check),
    GetMessages: OperationHandler(_get, prepare=_index_many_pending, prepares=lambda op: op.q is not None),
}
