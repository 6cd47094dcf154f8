"""An operation that is authorised, validated and prepared. Only its transaction is left to run."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine.gate.rule import TaskSignal
from holdfast.store.database import Database, ReplyCallback, Submission, Tx

R = TypeVar("R")


class PreparedCall(msgspec.Struct, Generic[R], frozen=True):
    db: Database
    account: str
    """The account of the transaction."""
    writes: bool
    transaction: Callable[[Tx], R]
    task_signal: TaskSignal
    wake_workers: Callable[[], None]
    """Called after the commit if the signal is set."""
    wait_for: Callable[[], None] | None = None
    """If set, blocks until the transaction may run. Such a call must run in a thread that may block."""

    def run(self) -> R:
        if self.wait_for is not None:
            self.wait_for()
        result = (self.db.write if self.writes else self.db.read)(self.account, self.transaction)
        if self.task_signal.is_set:
            self.wake_workers()
        return result

    def as_submission(self, reply: ReplyCallback) -> Submission:
        """The write in the form that `Database.submit` takes. `reply` gets its outcome."""

        def reply_and_wake(outcome: Any, error: BaseException | None) -> None:
            reply(outcome, error)
            if self.task_signal.is_set:
                self.wake_workers()

        return Submission(self.account, self.transaction, reply_and_wake)
