"""The order in which the archives of a session are finished: one behind the other."""

from holdfast.engine.rule import Moment
from holdfast.store import archives, tasks
from holdfast.store.database import Tx


def has_to_wait(tx: Tx, log_id: int, number: int, moment: Moment) -> bool:
    """Whether an archive before `number` is still to be finished. One that failed holds the others up by policy."""
    holding = [archives.first_in(tx, log_id, "pending")]
    if moment.settings.after_failed_archive != "proceed":
        holding.append(archives.first_in(tx, log_id, "failed"))
    return any(archive is not None and archive.number < number for archive in holding)


def release_next(tx: Tx, log_id: int, moment: Moment) -> None:
    """Let the earliest archive begin that waits, if nothing holds it up any more. The session is locked."""
    following = archives.first_in(tx, log_id, "pending")
    if following is not None and not has_to_wait(tx, log_id, following.number, moment):
        tasks.release(tx, following.task_id, moment.now)
        moment.signal.raised = True
