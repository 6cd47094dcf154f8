"""The kind of the tasks of commits."""

import msgspec

from holdfast import lazy
from holdfast.config import Settings
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.access import user_name
from holdfast.model.archives import ArchiveState, archive_id
from holdfast.model.identity import Principal
from holdfast.model.summaries import Cost
from holdfast.model.tasks import CommitPayload, SessionPayload
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions
from holdfast.store.tables.tasks import Failure, StoredTask


def _perform(claimed: ClaimedTask) -> WriteResults:
    """Summarise an archive. The summariser is imported with the first task: a client that never commits needs none."""
    write_results: WriteResults = lazy.load("holdfast.engine.commits.commit_task").perform(claimed)
    return write_results


def _failed(tx: Tx, context: CallContext, task: StoredTask, failure: Failure) -> None:
    error = {"error": failure.message}
    details = {
        **_ids_of(task),
        **error,
        "code": failure.code,
        "stage": task.stage,
        "attempts": task.attempts,
    }
    _set_state(tx, task, "failed", context.now, msgspec.json.encode(details).decode())
    _record(tx, context, task, "commit_failed", user_name(task.user_id), error)


def _cancelled(tx: Tx, context: CallContext, task: StoredTask, principal: Principal) -> None:
    _set_state(tx, task, "cancelled", context.now)
    _record(tx, context, task, "commit_cancelled", principal.user_id)


def _retried(tx: Tx, context: CallContext, task: StoredTask, principal: Principal) -> None:
    _set_state(tx, task, "pending", None)
    _record(tx, context, task, "commit_retried", principal.user_id)


def _spent(tx: Tx, task: StoredTask, _step: str, cost: Cost) -> None:
    payload = task.decode_payload(CommitPayload)
    archives.add_cost(tx, payload.log_id, payload.number, cost)


def lock_session(tx: Tx, task: StoredTask) -> bool:
    """Lock the session of a commit or a resummary. It is always locked before its tasks, which prevents deadlocks."""
    return sessions.find_by_log(tx, task.decode_payload(SessionPayload).log_id, lock=True) is not None


def _set_state(tx: Tx, task: StoredTask, state: ArchiveState, ended_at: int | None, failure: str | None = None) -> None:
    payload = task.decode_payload(CommitPayload)
    archives.set_state(tx, payload.log_id, payload.number, state, ended_at=ended_at, failure=failure)


def _record(
    tx: Tx, context: CallContext, task: StoredTask, change: str, user_id: str, error: dict[str, str] | None = None
) -> None:
    session = sessions.find_by_log(tx, task.decode_payload(CommitPayload).log_id)
    if session is not None:
        changes.record(tx, session, change, user_id, context.now, {**_ids_of(task), **(error or {})})


def _ids_of(task: StoredTask) -> dict[str, str]:
    return {"archive_id": archive_id(task.decode_payload(CommitPayload).number), "task_id": task.task_id}


def _blocks_after_failure(settings: Settings) -> bool:
    return settings.after_failed_archive != "proceed"


COMMIT_KIND = TaskKind(
    perform=_perform,
    failed=_failed,
    cancelled=_cancelled,
    retried=_retried,
    spent=_spent,
    lock=lock_session,
    blocks_after_failure=_blocks_after_failure,
)
