"""The handler of commit tasks."""

import msgspec

from holdfast import lazy
from holdfast.engine.commits import auto_commits, order
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.task_handler import TaskHandler
from holdfast.model.archives import archive_id
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions, tasks
from holdfast.store.tables.tasks import Failure


def _perform(claimed: ClaimedTask) -> None:
    """Summarise an archive. The summariser is imported with the first task: a client that never commits needs none."""
    lazy.load("holdfast.engine.commits.archiving").perform(claimed)


def _fail(tx: Tx, context: CallContext, claimed: ClaimedTask, failure: Failure) -> None:
    task = claimed.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    ended = tasks.fail(tx, claimed.claim, failure, worked=claimed.working_time(context), now=context.now)
    if session is None or not ended:
        raise LeaseLostError
    change = {"archive_id": archive_id(task.number), "task_id": task.task_id, "error": failure.message}
    details = {**change, "code": failure.code, "stage": task.stage, "attempts": task.attempts}
    archives.set_state(
        tx,
        task.log_id,
        task.number,
        "failed",
        ended_at=context.now,
        failure=msgspec.json.encode(details).decode(),
    )
    changes.record(tx, session, "commit_failed", task.user_id, context.now, change)
    order.unblock_next(tx, task.log_id, context)


COMMIT = TaskHandler(_perform, _fail, auto_commits.check_session)
