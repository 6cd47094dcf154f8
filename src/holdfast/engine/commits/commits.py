"""The first phase of a commit, in one transaction: create the archive, seal its messages, create its task."""

from holdfast.context.archive_boundary import CallEvent, find_call_spans, last_sealable_seq
from holdfast.engine.commits.archives import require_archive
from holdfast.engine.commits.uses import count_uses
from holdfast.engine.gate import session_access
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.tasks.operations import retry_task
from holdfast.engine.tasks.order import Order, add_task
from holdfast.errors import FailedPreconditionError
from holdfast.model.archives import Committed, MessageRange, SkipReason, archive_id, archive_uri
from holdfast.model.identity import Principal
from holdfast.model.tasks import COMMIT, CommitPayload, Task
from holdfast.ops.commits import CommitSession, RetryArchive
from holdfast.store.checked.archive_rows import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, lineage, messages, tool_calls
from holdfast.store.tables import sessions as store
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.tasks import order_key_of_log


def _commit(tx: Tx, principal: Principal, op: CommitSession, _prepared: None, context: CallContext) -> Committed:
    session = session_access.require_session(tx, principal, op, lock=True)
    return seal(tx, session, principal.user_id, op.keep_recent_count or 0, context)


def seal(tx: Tx, session: StoredSession, user_id: str, keep: int, context: CallContext) -> Committed:
    """Seal the live messages of a session except the last `keep`. The session must be locked."""
    if session.live_count <= 0:
        return _skipped(session, "no_messages")
    last_seq = _last_seq_to_seal(tx, session, session.last_seq - keep)
    if last_seq < session.live_from:
        return _skipped(session, "all_within_keep_window")
    failed = blocking_archive(tx, session, context)
    if failed is not None:
        raise _blocked(session, failed)
    tokens = _tokens_through(tx, session, last_seq)
    number = archives.last_number(tx, session.log_id) + 1
    uri = archive_uri(session.owner_id, session.session_id, number)
    task_id = add_task(
        tx,
        context,
        COMMIT,
        user_id=session.owner_id,
        resource_id=session.session_id,
        subject=uri,
        payload=CommitPayload(session.log_id, number),
        order=Order(order_key_of_log(session.log_id), number),
    )
    sealed = MessageRange(number, "pending", session.live_from, last_seq, tokens - session.tokens_archived)
    archives.insert(tx, session.log_id, number, sealed, task_id, context.now)
    store.seal(tx, session, last_seq, tokens, context.now)
    count_uses(tx, session, number, context.now)
    details = {"archive_id": archive_id(number), "task_id": task_id, "last_seq": last_seq}
    changes.record(tx, session, "committed", user_id, context.now, details)
    return Committed(
        session_id=session.session_id,
        status="accepted",
        task_id=task_id,
        archive_uri=uri,
        archived=True,
    )


def blocking_archive(tx: Tx, session: StoredSession, context: CallContext) -> StoredArchive | None:
    """Return the failed archive that blocks further commits of the session, if there is one."""
    if context.settings.after_failed_archive != "refuse":
        return None
    return archives.first_in_state(tx, session.log_id, "failed")


def _last_seq_to_seal(tx: Tx, session: StoredSession, last: int) -> int:
    """Return the last message to seal, up to `last`, such that no tool call is separated from its result.

    A call that is still running is not sealed either.
    """
    live = lineage.log_ranges(tx, session, session.live_from)
    last_user_seq = messages.last_seq_of_role(tx, live, "user")
    recent = find_call_spans(_calls(tx, session, max(last_user_seq + 1, session.live_from)))
    if all(span.is_answered for span in recent) and not _calls(tx, session, last + 1):
        return last
    return last_sealable_seq(last, _calls(tx, session, session.live_from), last_user_seq)


def _calls(tx: Tx, session: StoredSession, first: int) -> list[CallEvent]:
    return [CallEvent(*row) for row in tool_calls.read_calls(tx, lineage.log_ranges(tx, session, first))]


def _tokens_through(tx: Tx, session: StoredSession, seq: int) -> int:
    if seq == session.last_seq:
        return session.tokens_total
    return messages.state_at(tx, lineage.log_ranges(tx, session, seq, seq)[0])[0]


def _skipped(session: StoredSession, reason: SkipReason) -> Committed:
    return Committed(
        session_id=session.session_id, status="skipped", task_id=None, archive_uri=None, archived=False, reason=reason
    )


def _blocked(session: StoredSession, failed: StoredArchive) -> FailedPreconditionError:
    failed_id = archive_id(failed.number)
    return FailedPreconditionError(
        f"{failed_id} of session {session.session_id} failed; retry or cancel its task {failed.task_id} first."
        " Its messages are still in the context, and new ones can be added",
        resource=session.session_id,
        archive_id=failed_id,
        task_id=failed.task_id,
    )


def _retry_archive(tx: Tx, principal: Principal, op: RetryArchive, _prepared: None, context: CallContext) -> Task:
    session = session_access.require_session(tx, principal, op)
    archive = require_archive(tx, session, op.archive_id)
    if archive.state == "done":
        raise FailedPreconditionError(f"{op.archive_id} is done; there is nothing to retry", resource=op.archive_id)
    return retry_task(tx, principal, archive.task_id, context)


HANDLERS: dict[type, OperationHandler] = {
    CommitSession: OperationHandler(_commit, writes=always),
    RetryArchive: OperationHandler(_retry_archive, writes=always),
}
