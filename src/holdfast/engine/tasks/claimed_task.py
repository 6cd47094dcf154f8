"""A task in hand: what it has finished is kept step by step, and only its holder can go on with it."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.rule import Moment
from holdfast.engine.tasks.models import Tools
from holdfast.model.summaries import Spent, cited_by_number
from holdfast.store.database import Database, Tx
from holdfast.store.tables import archives, steps, tasks
from holdfast.store.tables.tasks import Claim, StoredTask

T = TypeVar("T")
Observer = Callable[[str], None]
"""Is told of every boundary that the work passes, such as `claimed` or `summarise is kept`."""


class LostError(Exception):
    """The task is another's now, or nobody's: whatever was done for it does not count."""


class Work:
    """One claim on a task, and the ways to go on with it."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        moment: Callable[[], Moment],
        tools: Tools,
        claim: Claim,
        observe: Observer,
        activity: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.tools = tools
        self.claim = claim
        self.observe = observe
        self.moment = moment
        self.activity = activity
        self._db = db
        self._kept = self.read(lambda tx: steps.read(tx, claim.task.task_id))
        self._total = max(claim.task.steps_total, 1)
        self._since = moment().now

    @property
    def task(self) -> StoredTask:
        return self.claim.task

    def read(self, work: Callable[[Tx], T]) -> T:
        return self._db.read(self.claim.account, work)

    def write(self, work: Callable[[Tx, Moment], T]) -> T:
        moment = self.moment()
        return self._db.write(self.claim.account, lambda tx: work(tx, moment))

    def expect(self, total: int) -> None:
        """How many steps there will be in all."""
        self._total = max(total, 1)

    def once(self, step: str, kind: type[T], do: Callable[[], tuple[T, Spent]]) -> T:
        """The output of a step: as it was kept, or else done now and kept. What it cost is counted with it."""
        known = self._kept.get(step)
        if known is not None:
            return msgspec.json.decode(cited_by_number(known), type=kind)
        self.observe(f"{step} begins")
        output, spent = do()
        self.observe(f"{step} is done")
        encoded = msgspec.json.encode(output).decode()
        self.write(lambda tx, moment: self._keep(tx, moment, step, encoded, spent))
        self._kept[step] = encoded
        self.observe(f"{step} is kept")
        return output

    def _keep(self, tx: Tx, moment: Moment, step: str, output: str, spent: Spent) -> None:
        done = len(self._kept) + 1
        total, worked = max(self._total, done), self.worked(moment)
        if not tasks.advance(tx, self.claim, stage=step, done=done, total=total, worked=worked, now=moment.now):
            raise LostError
        steps.keep(tx, self.task.task_id, step, output, moment.now)
        archives.spend(tx, self.task.log_id, self.task.number, spent)
        self._since = moment.now

    def spend(self, spent: Spent) -> None:
        """Count what was spent on a step that did not come to its end."""

        def count(tx: Tx, _moment: Moment) -> None:
            if not tasks.is_held(tx, self.claim):
                raise LostError
            archives.spend(tx, self.task.log_id, self.task.number, spent)

        self.write(count)

    def worked(self, moment: Moment) -> int:
        """Microseconds since the last time this was written down."""
        return max(0, moment.now - self._since)

    def finish(self, work: Callable[[Tx, Moment], Any]) -> None:
        """The last transaction: all that the task was for becomes visible, or nothing."""
        self.observe("finish begins")

        def last(tx: Tx, moment: Moment) -> None:
            work(tx, moment)
            self.observe("finish is written")

        self.write(last)
        self.observe("finish is kept")
