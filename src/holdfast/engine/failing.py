"""What becomes of a task whose work did not succeed: another attempt later, or an end that everybody can see."""

import msgspec

from holdfast.engine import order
from holdfast.engine.rule import Moment
from holdfast.engine.work import LostError, Work
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.model import archive_id
from holdfast.store import archives, changes, sessions, tasks
from holdfast.store.database import Tx

SECOND = 1_000_000
CHANCE_BITS = 48


def worker_died(times: int) -> HoldfastError:
    return HoldfastError(f"{times} workers began this task and none of them came back from it")


def handle(work: Work, error: Exception) -> None:
    """Write down that an attempt failed. Raises LostError if the task is not held any more."""
    if passes(error) and work.task.attempts < work.settings.task_attempts:
        work.write(lambda tx, moment: _postpone(tx, moment, work, error))
    else:
        work.write(lambda tx, moment: _fail(tx, moment, work, error))


def passes(error: Exception) -> bool:
    """Whether what failed now may succeed later by itself. What we did not foresee gets the benefit of the doubt."""
    return isinstance(error, UnavailableError) or not isinstance(error, HoldfastError)


def said(error: Exception) -> str:
    return error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"


def wait_before(attempt: int, work: Work, error: Exception, chance: int) -> float:
    """Seconds until the next attempt: twice as long each time, by chance up to half as long, never before we may."""
    settings = work.settings
    longest = min(settings.task_backoff_seconds * 2 ** min(attempt - 1, 30), settings.task_backoff_max_seconds)
    told = float(error.details.get("retry_after", 0)) if isinstance(error, HoldfastError) else 0.0
    shortened: float = longest * (1 + chance / float(1 << CHANCE_BITS)) / 2
    return max(shortened, told)


def _postpone(tx: Tx, moment: Moment, work: Work, error: Exception) -> None:
    wait = wait_before(work.task.attempts, work, error, moment.ids.chance())
    if not tasks.postpone(
        tx,
        work.claim,
        run_at=moment.now + round(wait * SECOND),
        error=said(error),
        worked=work.worked(moment),
        now=moment.now,
    ):
        raise LostError


def _fail(tx: Tx, moment: Moment, work: Work, error: Exception) -> None:
    task = work.task
    session = sessions.find_by_log(tx, task.log_id, lock=True)
    ended = tasks.finish(
        tx, work.claim, "failed", result=None, error=said(error), worked=work.worked(moment), now=moment.now
    )
    if session is None or not ended:
        raise LostError
    failure = {
        "error": said(error),
        "code": error.code if isinstance(error, HoldfastError) else "INTERNAL",
        "stage": task.stage,
        "attempts": task.attempts,
        "task_id": task.task_id,
    }
    archives.mark(
        tx,
        task.log_id,
        task.number,
        "failed",
        ended_at=moment.now,
        failure=msgspec.json.encode(failure).decode(),
    )
    told = {"archive_id": archive_id(task.number), "task_id": task.task_id, "error": said(error)}
    changes.record(tx, session, "commit_failed", task.user_id, moment.now, told)
    order.release_next(tx, task.log_id, moment)
