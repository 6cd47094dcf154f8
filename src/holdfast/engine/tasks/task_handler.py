"""The functions that handle one kind of task."""

from collections.abc import Callable

import msgspec

from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import Failure


class TaskHandler(msgspec.Struct, frozen=True):
    perform: Callable[[ClaimedTask], None]
    """Runs the task. An exception fails the attempt."""
    fail: Callable[[Tx, CallContext, ClaimedTask, Failure], None]
    """Records the failure of the last attempt. Raises `LeaseLostError` if the claim no longer holds the task."""
    check: Callable[[Tx, int, CallContext], None]
    """Checks the session with this log id, and starts a task if one is due. Runs when the session's check is due."""
