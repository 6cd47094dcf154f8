"""A commit as a kind of background task."""

import msgspec

from holdfast import lazy
from holdfast.engine.commits import auto_commits, order
from holdfast.engine.gate.rule import Moment
from holdfast.engine.tasks.claimed_task import LostError, Work
from holdfast.engine.tasks.kind import TaskKind
from holdfast.model.archives import archive_id
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, sessions, tasks
from holdfast.store.tables.tasks import Failure


def _perform(work: Work) -> None:
    """The summariser is too heavy for a client that never commits: it is imported with the first task."""
    lazy.load("holdfast.engine.commits.archiving").perform(work)


def _fail(tx: Tx, moment: Moment, work: Work, failure: Failure) -> None:
    task = work.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    ended = tasks.fail(tx, work.claim, failure, worked=work.worked(moment), now=moment.now)
    if session is None or not ended:
        raise LostError
    named = {"archive_id": archive_id(task.number), "task_id": task.task_id, "error": failure.message}
    details = {**named, "code": failure.code, "stage": task.stage, "attempts": task.attempts}
    archives.mark(
        tx,
        task.log_id,
        task.number,
        "failed",
        ended_at=moment.now,
        failure=msgspec.json.encode(details).decode(),
    )
    changes.record(tx, session, "commit_failed", task.user_id, moment.now, named)
    order.release_next(tx, task.log_id, moment)


COMMIT = TaskKind(_perform, _fail, auto_commits.look)
