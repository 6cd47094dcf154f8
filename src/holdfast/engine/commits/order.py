"""The archives of a session are finished one after the other."""

from holdfast.engine.gate.rule import CallContext
from holdfast.store.database import Tx
from holdfast.store.tables import archives, tasks


def unblock_next(tx: Tx, log_id: int, context: CallContext) -> None:
    """Unblock the task of the earliest pending archive, unless a failed archive before it blocks it.

    The session must be locked. Whether a failed archive blocks is a setting that may change at any time. So every
    commit, and every change of a task, calls this function.
    """
    pending = archives.first_in_state(tx, log_id, "pending")
    if pending is None:
        return
    if context.settings.after_failed_archive != "proceed":
        failed = archives.first_in_state(tx, log_id, "failed")
        if failed is not None and failed.number < pending.number:
            return
    tasks.unblock(tx, pending.task_id, context.now)
    context.task_signal.is_set = True
