"""What becomes of a task whose work did not succeed: another attempt later, or an end that everybody can see."""

import re

from holdfast.engine.gate.rule import Moment
from holdfast.engine.tasks.claimed_task import LostError, Work
from holdfast.engine.tasks.kind import TaskKind
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tasks import Failure

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
SECOND = 1_000_000
CHANCE_BITS = 48
UNFORESEEN = 10
"""How often to try what nobody foresaw, and how many workers may die of one task."""


def has_killed_too_many(work: Work) -> bool:
    """Whether workers begin a task and none comes back from it: it is not to take more of them along."""
    task = work.task
    return task.attempts - 1 - task.failures >= min(UNFORESEEN, work.settings.task_attempts)


def worker_died(work: Work) -> HoldfastError:
    died = work.task.attempts - 1 - work.task.failures
    return HoldfastError(f"{died} workers began this task and did not come back from it")


def handle(kind: TaskKind, work: Work, error: Exception) -> None:
    """Write down that an attempt failed. Raises LostError if the task is not held any more."""
    if work.task.failures + 1 < _most_attempts(work, error):
        work.write(lambda tx, moment: _postpone(tx, moment, work, error))
    else:
        work.write(lambda tx, moment: kind.fail(tx, moment, work, told_by(error)))


def told_by(error: Exception) -> Failure:
    """As it can be stored, logged and shown. The text of an error that nobody foresaw may quote what anyone said."""
    code = error.code if isinstance(error, HoldfastError) else HoldfastError.code
    message = error.message if isinstance(error, HoldfastError) else f"{type(error).__name__} in {_place_of(error)}"
    return Failure(code, _UNPRINTABLE.sub(" ", message).encode(errors="replace").decode())


def _place_of(error: Exception) -> str:
    """The module and line of ours that an error came through last."""
    place, traceback = __name__, error.__traceback__
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if module.startswith("holdfast."):
            place = f"{module}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _most_attempts(work: Work, error: Exception) -> int:
    """What may pass by itself is tried for long, what nobody foresaw some times, and what will not pass once."""
    if isinstance(error, UnavailableError):
        return work.settings.task_attempts
    return 1 if isinstance(error, HoldfastError) else min(UNFORESEEN, work.settings.task_attempts)


def _wait_before(attempt: int, work: Work, error: Exception, chance: int) -> float:
    """Seconds until the next attempt: twice as long each time, by chance up to half as long, never before we may."""
    settings = work.settings
    longest = min(settings.task_backoff_seconds * 2 ** min(attempt - 1, 30), settings.task_backoff_max_seconds)
    told = float(error.details.get("retry_after", 0)) if isinstance(error, HoldfastError) else 0.0
    shortened: float = longest * (1 + chance / float(1 << CHANCE_BITS)) / 2
    return max(shortened, told)


def _postpone(tx: Tx, moment: Moment, work: Work, error: Exception) -> None:
    wait = _wait_before(work.task.failures + 1, work, error, moment.ids.chance())
    run_at = moment.now + round(wait * SECOND)
    if not tasks.postpone(tx, work.claim, told_by(error), run_at=run_at, worked=work.worked(moment), now=moment.now):
        raise LostError
