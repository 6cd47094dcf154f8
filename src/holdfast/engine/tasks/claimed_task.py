"""A task in hand: what it has finished is kept step by step, and only its holder can go on with it."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.rule import CallContext
from holdfast.engine.tasks.models import Models
from holdfast.model.summaries import Cost, cited_by_number
from holdfast.store.database import Database, Tx
from holdfast.store.tables import archives, steps, tasks
from holdfast.store.tables.tasks import Claim, StoredTask

T = TypeVar("T")
Observer = Callable[[str], None]
"""Is told of every boundary that the work passes, such as `claimed` or `summarise is kept`."""


class LeaseLostError(Exception):
    """The task is another's now, or nobody's: whatever was done for it does not count."""


class ClaimedTask:
    """One claim on a task, and the ways to go on with it."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        new_context: Callable[[], CallContext],
        tools: Models,
        claim: Claim,
        observe: Observer,
        activity: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.tools = tools
        self.claim = claim
        self.observe = observe
        self.new_context = new_context
        self.activity = activity
        self._db = db
        self._kept = self.read(lambda tx: steps.read(tx, claim.task.task_id))
        self._total = max(claim.task.steps_total, 1)
        self._since = new_context().now

    @property
    def task(self) -> StoredTask:
        return self.claim.task

    def read(self, work: Callable[[Tx], T]) -> T:
        return self._db.read(self.claim.account, work)

    def write(self, work: Callable[[Tx, CallContext], T]) -> T:
        context = self.new_context()
        return self._db.write(self.claim.account, lambda tx: work(tx, context))

    def expect(self, total: int) -> None:
        """How many steps there will be in all."""
        self._total = max(total, 1)

    def once(self, step: str, kind: type[T], do: Callable[[], tuple[T, Cost]]) -> T:
        """The output of a step: as it was kept, or else done now and kept. What it cost is counted with it."""
        known = self._kept.get(step)
        if known is not None:
            return msgspec.json.decode(cited_by_number(known), type=kind)
        self.observe(f"{step} begins")
        output, spent = do()
        self.observe(f"{step} is done")
        encoded = msgspec.json.encode(output).decode()
        self.write(lambda tx, context: self._keep(tx, context, step, encoded, spent))
        self._kept[step] = encoded
        self.observe(f"{step} is kept")
        return output

    def _keep(self, tx: Tx, context: CallContext, step: str, output: str, spent: Cost) -> None:
        done = len(self._kept) + 1
        total, worked = max(self._total, done), self.worked(context)
        if not tasks.advance(tx, self.claim, stage=step, done=done, total=total, worked=worked, now=context.now):
            raise LeaseLostError
        steps.keep(tx, self.task.task_id, step, output, context.now)
        archives.spend(tx, self.task.log_id, self.task.number, spent)
        self._since = context.now

    def spend(self, spent: Cost) -> None:
        """Count what was spent on a step that did not come to its end."""

        def count(tx: Tx, _context: CallContext) -> None:
            if not tasks.is_held(tx, self.claim):
                raise LeaseLostError
            archives.spend(tx, self.task.log_id, self.task.number, spent)

        self.write(count)

    def worked(self, context: CallContext) -> int:
        """Microseconds since the last time this was written down."""
        return max(0, context.now - self._since)

    def finish(self, work: Callable[[Tx, CallContext], Any]) -> None:
        """The last transaction: all that the task was for becomes visible, or nothing."""
        self.observe("finish begins")

        def last(tx: Tx, context: CallContext) -> None:
            work(tx, context)
            self.observe("finish is written")

        self.write(last)
        self.observe("finish is kept")
