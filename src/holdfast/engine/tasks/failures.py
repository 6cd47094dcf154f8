"""What becomes of a task whose work did not succeed: another attempt later, or an end that everybody can see."""

import re

from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.kind import TaskKind
from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tasks import Failure

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
SECOND = 1_000_000
CHANCE_BITS = 48
MAX_UNEXPECTED_FAILURES = 10
"""How often to try what nobody foresaw, and how many workers may die of one task."""


def has_killed_too_many(claimed: ClaimedTask) -> bool:
    """Whether workers begin a task and none comes back from it: it is not to take more of them along."""
    task = claimed.task
    return task.attempts - 1 - task.failures >= min(MAX_UNEXPECTED_FAILURES, claimed.settings.task_attempts)


def worker_died(claimed: ClaimedTask) -> HoldfastError:
    died = claimed.task.attempts - 1 - claimed.task.failures
    return HoldfastError(f"{died} workers began this task and did not come back from it")


def handle(kind: TaskKind, claimed: ClaimedTask, error: Exception) -> None:
    """Write down that an attempt failed. Raises LeaseLostError if the task is not held any more."""
    if claimed.task.failures + 1 < _max_attempts(claimed, error):
        claimed.write(lambda tx, context: _postpone(tx, context, claimed, error))
    else:
        claimed.write(lambda tx, context: kind.fail(tx, context, claimed, failure_of(error)))


def failure_of(error: Exception) -> Failure:
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


def _max_attempts(claimed: ClaimedTask, error: Exception) -> int:
    """What may pass by itself is tried for long, what nobody foresaw some times, and what will not pass once."""
    if isinstance(error, UnavailableError):
        return claimed.settings.task_attempts
    return 1 if isinstance(error, HoldfastError) else min(MAX_UNEXPECTED_FAILURES, claimed.settings.task_attempts)


def _wait_before(attempt: int, claimed: ClaimedTask, error: Exception, chance: int) -> float:
    """Seconds until the next attempt: twice as long each time, by chance up to half as long, never before we may."""
    settings = claimed.settings
    longest = min(settings.task_backoff_seconds * 2 ** min(attempt - 1, 30), settings.task_backoff_max_seconds)
    told = float(error.details.get("retry_after", 0)) if isinstance(error, HoldfastError) else 0.0
    shortened: float = longest * (1 + chance / float(1 << CHANCE_BITS)) / 2
    return max(shortened, told)


def _postpone(tx: Tx, context: CallContext, claimed: ClaimedTask, error: Exception) -> None:
    wait = _wait_before(claimed.task.failures + 1, claimed, error, context.ids.chance())
    run_at = context.now + round(wait * SECOND)
    if not tasks.postpone(
        tx, claimed.claim, failure_of(error), run_at=run_at, worked=claimed.worked(context), now=context.now
    ):
        raise LeaseLostError
