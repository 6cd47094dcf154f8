"""What the workers need to know about one kind of task."""

from collections.abc import Callable

import msgspec

from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import Failure


class TaskKind(msgspec.Struct, frozen=True):
    perform: Callable[[ClaimedTask], None]
    """Does the work. An error fails the attempt."""
    fail: Callable[[Tx, CallContext, ClaimedTask, Failure], None]
    """Writes down the last failed attempt. Raises `LeaseLostError` if the task is not held any more."""
    check: Callable[[Tx, int, CallContext], None]
    """Checks a session for which a time was set, by the id of its log, and starts a task if one is due."""
