"""The order in which the archives of a session are finished: one behind the other."""

from holdfast.engine.gate.rule import CallContext
from holdfast.store.database import Tx
from holdfast.store.tables import archives, tasks


def release_next(tx: Tx, log_id: int, context: CallContext) -> None:
    """Let the earliest archive begin that waits, if none that failed holds it up. The session is locked.

    Whether one does is a matter of policy, which may have changed since: so this is asked whenever something happens.
    """
    following = archives.first_in(tx, log_id, "pending")
    if following is None:
        return
    if context.settings.after_failed_archive != "proceed":
        failed = archives.first_in(tx, log_id, "failed")
        if failed is not None and failed.number < following.number:
            return
    tasks.release(tx, following.task_id, context.now)
    context.signal.raised = True
