"""Failed attempts: a task is retried later, or fails for good with an error that its user can read."""

import re

from holdfast.computing import job as computing
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask, LeaseLostError
from holdfast.engine.tasks.order import unblock_next
from holdfast.engine.tasks.task_kind import TaskKind
from holdfast.errors import HoldfastError, UnavailableError, describe_unexpected
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tasks import Failure

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
MICROS_PER_SECOND = 1_000_000
MAX_UNEXPECTED_FAILURES = 10
"""How many attempts may end with an unexpected error, and how many workers may die during one task."""


def has_too_many_crashes(claimed: ClaimedTask) -> bool:
    """Whether the task has crashed so many workers that it must not be attempted again."""
    return _count_crashes(claimed) >= min(MAX_UNEXPECTED_FAILURES, claimed.settings.task_attempts)


def crash_error(claimed: ClaimedTask) -> HoldfastError:
    return HoldfastError(f"{_count_crashes(claimed)} workers died while they ran this task")


def _count_crashes(claimed: ClaimedTask) -> int:
    """Earlier attempts whose worker recorded neither a failure nor a result."""
    return claimed.task.attempts - 1 - claimed.task.failures


def record(kind: TaskKind, claimed: ClaimedTask, error: Exception) -> None:
    """Record a failed attempt: schedule a retry, or fail the task. Raises `LeaseLostError` if the lease was lost."""
    if claimed.task.failures + 1 < _max_attempts(claimed, error):
        claimed.write(lambda tx, context: _schedule_retry(tx, context, claimed, error))
    else:
        claimed.write(lambda tx, context: _fail(tx, context, kind, claimed, failure_from(error)))


def failure_from(error: Exception) -> Failure:
    """The error in a form that can be stored, logged and shown.

    The message of an unexpected error is replaced by its type and location: it may quote a conversation.
    """
    code = error.code if isinstance(error, HoldfastError) else HoldfastError.code
    message = error.message if isinstance(error, HoldfastError) else describe_unexpected(error)
    return Failure(code, _UNPRINTABLE.sub(" ", message).encode(errors="replace").decode())


def _max_attempts(claimed: ClaimedTask, error: Exception) -> int:
    """Temporary errors are retried up to the setting, unexpected errors a few times, permanent errors never.

    A computation whose process ends may be the cause of that, so it is retried a few times only.
    """
    if isinstance(error, UnavailableError) and error.details.get("service") != computing.SERVICE:
        return claimed.settings.task_attempts
    is_permanent = isinstance(error, HoldfastError) and not isinstance(error, UnavailableError)
    return 1 if is_permanent else min(MAX_UNEXPECTED_FAILURES, claimed.settings.task_attempts)


def _backoff_seconds(attempt: int, claimed: ClaimedTask, error: Exception, random_48_bits: int) -> float:
    """Seconds until the next attempt: exponential backoff with jitter, and no less than the error's `retry_after`."""
    settings = claimed.settings
    longest = min(settings.task_backoff_seconds * 2 ** min(attempt - 1, 30), settings.task_backoff_max_seconds)
    retry_after = float(error.details.get("retry_after", 0)) if isinstance(error, HoldfastError) else 0.0
    with_jitter: float = longest * (1 + random_48_bits / float(1 << 48)) / 2
    return max(with_jitter, retry_after)


def _schedule_retry(tx: Tx, context: CallContext, claimed: ClaimedTask, error: Exception) -> None:
    seconds = _backoff_seconds(claimed.task.failures + 1, claimed, error, context.ids.random_48_bits())
    wait, worked = round(seconds * MICROS_PER_SECOND), claimed.working_time()
    if not tasks.postpone(tx, claimed.claim, failure_from(error), wait=wait, worked=worked, now=context.now):
        raise LeaseLostError


def _fail(tx: Tx, context: CallContext, kind: TaskKind, claimed: ClaimedTask, failure: Failure) -> None:
    task, worked = claimed.task, claimed.working_time()
    if not kind.lock(tx, task) or not tasks.fail(tx, claimed.claim, failure, worked=worked, now=context.now):
        raise LeaseLostError
    kind.failed(tx, context, task, failure)
    unblock_next(tx, task.order_key, context)
