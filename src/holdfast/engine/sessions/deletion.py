"""Deleting a session. It is gone for every reader at once; the rows of a large one are deleted by a task."""

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.gate.session_access import require_session
from holdfast.engine.tasks.claimed_task import ClaimedTask, Slice
from holdfast.engine.tasks.order import add_task
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.errors import FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.model.sessions import SessionRef
from holdfast.model.tasks import DELETION
from holdfast.ops.sessions import DeleteSession
from holdfast.store.access import accounts
from holdfast.store.database import Tx
from holdfast.store.tables import auto_commit_checks, deleted_logs, lineage, sessions, tasks, usages
from holdfast.store.tables.tasks import StoredTask
from holdfast.validation import prebuild_decoder

FIRST_SLICE_ROWS = 1_000
"""How many rows are deleted in the transaction of the call. A smaller session needs no task."""
SLICE_ROWS = 250
"""How many rows each transaction of the task deletes. Small, so that other writers do not wait long."""


@prebuild_decoder
class DeletionPayload(msgspec.Struct, frozen=True):
    log_ids: list[int]
    """The logs that no session owns any more: of the session, and of deleted ancestors whose last fork it was."""
    messages: int = 0
    """The number of messages that the task has deleted."""


def delete_session(
    tx: Tx, principal: Principal, op: DeleteSession, _prepared: None, context: CallContext
) -> SessionRef:
    session = require_session(tx, principal, op, lock=True)
    accounts.lock(tx, tx.account)  # otherwise two concurrent deletions could each leave a shared log to the other
    sessions.delete(tx, session)
    auto_commit_checks.delete(tx, session.log_id)
    tasks.delete_for_log(tx, session.log_id)
    log_ids = [log_id for log_id in lineage.delete(tx, session) if not sessions.log_has_session(tx, log_id)]
    deleted_logs.mark_stale(tx, log_ids)
    usages.forget_below(tx, session.uri)
    if deleted_logs.delete_slice(tx, log_ids, FIRST_SLICE_ROWS).is_last:
        deleted_logs.mark_clean(tx, log_ids)
        context.wake_workers()  # what forks share is indexed again
    else:
        add_task(
            tx,
            context,
            DELETION,
            user_id=session.owner_id,
            resource_id=session.session_id,
            subject=session.uri,
            payload=DeletionPayload(log_ids),
            steps_total=deleted_logs.count_messages(tx, log_ids),
        )
    return SessionRef(session.session_id)


def _perform(claimed: ClaimedTask) -> WriteResults:
    def run(tx: Tx, _context: CallContext, payload: DeletionPayload) -> Slice[DeletionPayload]:
        deleted = deleted_logs.delete_slice(tx, payload.log_ids, SLICE_ROWS)
        messages = payload.messages + deleted.messages
        return Slice(DeletionPayload(payload.log_ids, messages), messages, is_last=deleted.is_last)

    last = claimed.run_slices(run, claimed.task.decode_payload(DeletionPayload))
    return lambda _tx, _context: {"session_id": claimed.task.resource_id, "messages": last.messages}


def _refuse_cancellation(_tx: Tx, _context: CallContext, task: StoredTask, _principal: Principal) -> None:
    raise FailedPreconditionError(
        f"Session {task.resource_id} is deleted already; task {task.task_id} removes what is left of it and cannot be"
        " cancelled",
        resource=task.task_id,
    )


DELETION_KIND = TaskKind(perform=_perform, cancelled=_refuse_cancellation)
