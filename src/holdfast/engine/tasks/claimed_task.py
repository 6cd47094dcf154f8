"""A task that a worker has claimed. Each finished step is checkpointed; only the holder of the lease can continue."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

import msgspec

from holdfast.computing.job import Embed, I, Job, JobRunner, O, no_vectors
from holdfast.config import Settings
from holdfast.engine.gate.models import Models
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.model.summaries import Cost
from holdfast.store.database import Database, Tx
from holdfast.store.tables import steps, tasks
from holdfast.store.tables.tasks import Claim, StoredTask

T = TypeVar("T")
P = TypeVar("P")
NO_COST = Cost()
Observer = Callable[[str], None]
"""Called at each boundary of the work, such as `claimed` or `summarise is checkpointed`. Fault tests use it."""


MICROS_PER_SECOND = 1_000_000
MIN_PAUSE_SECONDS = 0.001
"""The shortest pause between two slices. The pause is otherwise as long as the slice before it."""


class Slice(msgspec.Struct, Generic[P], frozen=True):
    """What one of many short transactions of a task has done."""

    payload: P
    """The payload for the next slice."""
    done: int
    """The progress of the task after this slice."""
    is_last: bool


class LeaseLostError(Exception):
    """Another worker holds the task, or it was cancelled or deleted. The results of this claim are discarded."""


def unchanged(checkpoint: str) -> str:
    return checkpoint


class ClaimedTask:
    """One claim on a task: reads, writes and checkpointed steps."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        new_context: Callable[[], CallContext],
        models: Models,
        claim: Claim,
        observe: Observer,
        spent: Callable[[Tx, StoredTask, str, Cost], None],
        job_runner: JobRunner,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.models = models
        self.claim = claim
        self.observe = observe
        self.new_context = new_context
        self._job_runner = job_runner
        self._elapsed = elapsed
        self._db = db
        self._spent = spent
        self._step = ""
        self._checkpoints = self.read(lambda tx: steps.read(tx, claim.task.task_id))
        self._total_steps = max(claim.task.steps_total, 1)
        self._last_recorded_at = self._elapsed()

    @property
    def task(self) -> StoredTask:
        return self.claim.task

    def read(self, transaction: Callable[[Tx], T]) -> T:
        return self._db.read(self.claim.account, transaction)

    def write(self, transaction: Callable[[Tx, CallContext], T]) -> T:
        context = self.new_context()
        return self._db.write(self.claim.account, lambda tx: transaction(tx, context))

    def compute(self, job: Job[I, O], input: I, embed: Embed = no_vectors) -> O:
        """Run a job, and return its output. `embed` is called if the job needs vectors of texts."""
        return self._job_runner.run(job, input, embed)

    def plan_steps(self, steps: Iterable[str], further: int) -> None:
        """Set the total that the task's progress shows: the finished steps, `steps`, and a number of further ones."""
        self._total_steps = len(set(self._checkpoints) | set(steps)) + further

    def run_step(
        self,
        step: str,
        output_type: type[T],
        run: Callable[[], tuple[T, Cost]],
        upgrade: Callable[[str], str] = unchanged,
    ) -> T:
        """Return the output of a step: from its checkpoint, or by calling `run` and checkpointing what it returns.

        The cost that `run` returns is recorded in the same transaction as the checkpoint. `upgrade` converts the JSON
        of a checkpoint that an earlier version may have written.
        """
        checkpoint = self._checkpoints.get(step)
        if checkpoint is not None:
            return msgspec.json.decode(upgrade(checkpoint), type=output_type)
        self._step = step
        self.observe(f"{step} begins")
        output, cost = run()
        self.observe(f"{step} is done")
        encoded = msgspec.json.encode(output).decode()
        self.write(lambda tx, context: self._write_checkpoint(tx, context, step, encoded, cost))
        self._checkpoints[step] = encoded
        self.observe(f"{step} is checkpointed")
        return output

    def _write_checkpoint(self, tx: Tx, context: CallContext, step: str, output: str, cost: Cost) -> None:
        done = len(self._checkpoints) + 1
        total, worked = max(self._total_steps, done), self.working_time()
        if not tasks.advance(tx, self.claim, stage=step, done=done, total=total, worked=worked, now=context.now):
            raise LeaseLostError
        steps.insert(tx, self.task.task_id, step, output, context.now)
        self._add_cost(tx, cost)
        self._last_recorded_at = self._elapsed()

    def record_cost(self, cost: Cost) -> None:
        """Record the cost of a step that failed. The step will run again, but its cost must still be counted."""

        def add(tx: Tx, _context: CallContext) -> None:
            if not tasks.is_held(tx, self.claim):
                raise LeaseLostError
            self._add_cost(tx, cost)

        self.write(add)

    def _add_cost(self, tx: Tx, cost: Cost) -> None:
        if cost != NO_COST:
            tasks.add_cost(tx, self.task.task_id, cost)
            self._spent(tx, self.task, self._step, cost)

    def run_slices(self, run: Callable[[Tx, CallContext, P], Slice[P]], payload: P) -> P:
        """Run a long write in short transactions, with pauses between them in which others write.

        Each call of `run` gets the payload that the previous one returned. The payload is stored in the transaction of
        its slice: after a crash, the next attempt continues with it. Return the last payload.
        """
        state = Slice(payload, self.task.steps_done, is_last=False)
        while not state.is_last:
            self.observe("slice begins")
            begun = time.monotonic()
            state = self.write(partial(self._run_slice, run=run, payload=state.payload))
            self.observe("slice is written")
            if not state.is_last:
                time.sleep(max(MIN_PAUSE_SECONDS, time.monotonic() - begun))
        return state.payload

    def _run_slice(
        self, tx: Tx, context: CallContext, run: Callable[[Tx, CallContext, P], Slice[P]], payload: P
    ) -> Slice[P]:
        tx.allow_long_statements()
        if not tasks.is_held(tx, self.claim):
            raise LeaseLostError
        done = run(tx, context, payload)
        encoded = msgspec.json.encode(done.payload).decode()
        tasks.advance(
            tx,
            self.claim,
            stage=self.task.kind,
            done=done.done,
            total=max(self._total_steps, done.done),
            worked=self.working_time(),
            now=context.now,
        )
        tasks.store_payload(tx, self.task.task_id, encoded)
        self._last_recorded_at = self._elapsed()
        return done

    def working_time(self) -> int:
        """Microseconds of work that are not recorded in the task yet."""
        return round((self._elapsed() - self._last_recorded_at) * MICROS_PER_SECOND)
