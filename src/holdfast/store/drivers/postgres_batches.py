"""A batch of writes in one transaction on PostgreSQL.

Most writes append to different sessions. Their transactions declare this with `limit_to`, so that they can run
together: all of them run until they need a result, then all reads are sent at once, and they run again with the
results. A batch of appends needs two round trips, as a single append does. All other writes of the batch follow one
after another.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import psycopg

from holdfast.store.database import Params, Row, Statement, transaction_scope
from holdfast.store.drivers.group_commit import Job
from holdfast.store.drivers.postgres_transactions import (
    BEGIN_WRITE,
    DIALECT,
    SET_ACCOUNT,
    Connection,
    NotCommittedError,
    PostgresTx,
    Work,
    commit,
    roll_back,
)

J = TypeVar("J", bound=Job[Work[object]])

SET_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '20ms'"
"""A write that waits longer for a lock runs alone later, so that the others of its batch do not wait for it."""
MAX_RUNS = 4
"""How often a write runs together with others. A write that needs more results runs on its own."""


def run_batch(connection: Connection, batch: Sequence[J]) -> J | None:
    """Run jobs in one transaction. Return None, or the job that failed: then nothing was written.

    A job that fails before it writes does not affect the others: it gets its error, and they are committed.
    """
    running = _RunningBatch[J](connection)
    with transaction_scope:
        try:
            running.begin()
            for job in running.run_together(batch) if len(batch) > 1 else batch:
                if not running.run_alone(job):
                    roll_back(connection)
                    return job
            commit(connection.statements)
        except psycopg.Error as error:
            failed = running.failed_job()
            roll_back(connection)
            if connection.closed or failed is None:
                raise NotCommittedError(error) from error
            return failed
        except BaseException as error:
            roll_back(connection, is_interrupted=not isinstance(error, Exception))
            raise
        return None


class _RunningBatch(Generic[J]):
    def __init__(self, connection: Connection) -> None:
        self._pipeline = connection.statements
        self._account: str | None = None
        self._owners: list[J | None] = []
        """The job of each statement that was sent."""
        self._current: J | None = None

    def begin(self) -> None:
        self._pipeline.open()
        self._pipeline.send(BEGIN_WRITE)
        self._pipeline.send(SET_LOCK_TIMEOUT)

    def failed_job(self) -> J | None:
        """The job of the statement that failed."""
        self._own_statements()
        failed = self._pipeline.succeeded_count
        return self._owners[failed] if failed < len(self._owners) else None

    def run_alone(self, job: J) -> bool:
        """Run a job after all others. Return False if it failed after it had written."""
        self._switch_to(job)
        tx = PostgresTx(self._pipeline, job.work[0])
        job.outcome = job.error = None
        try:
            job.outcome = job.work[1](tx)
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001 - it is passed to the caller of this job
            job.error = error
            return not tx.has_written
        return True

    def run_together(self, batch: Sequence[J]) -> list[J]:
        """Run the jobs that have different scopes. Return the others."""
        others: list[J] = []
        runs: dict[tuple[str, str], tuple[J, _PartialTx]] = {}
        for job in batch:
            tx = _run_partially(job, [])
            scope = (job.work[0], tx.scope or "")
            if not tx.can_run_together or scope in runs:
                others.append(job)
            else:
                runs[scope] = job, tx
        # All batches lock sessions in the same order, so that they do not deadlock.
        waiting = [run for _, run in sorted(runs.items())]
        for _ in range(MAX_RUNS):
            waiting = self._continue(waiting, others)
            if not waiting:
                break
        return others + [job for job, _ in waiting]

    def _continue(self, runs: "list[tuple[J, _PartialTx]]", others: list[J]) -> "list[tuple[J, _PartialTx]]":
        """Send the writes of finished jobs and the reads of the others, which then run again. Return these."""
        reading = [(job, tx) for job, tx in runs if tx.needed]
        for job, tx in runs:
            if not tx.can_run_together:
                others.append(job)
            elif not tx.needed:
                self._send(job, tx.writes)
        for job, tx in reading:
            self._send(job, tx.needed)
        results = self._pipeline.fetch_last(sum(len(tx.needed) for _, tx in reading)) if reading else []
        continued = []
        for job, tx in reading:
            own, results = results[: len(tx.needed)], results[len(tx.needed) :]
            continued.append((job, _run_partially(job, [*tx.known, own])))
        return continued

    def _send(self, job: J, statements: Sequence[Statement]) -> None:
        if statements:
            self._switch_to(job)
            for sql, params in statements:
                self._pipeline.send(sql, params)

    def _switch_to(self, job: J) -> None:
        self._own_statements()
        self._current = job
        if self._account != job.work[0]:
            self._account = job.work[0]
            self._pipeline.send(SET_ACCOUNT, (self._account,))

    def _own_statements(self) -> None:
        """Assign the statements that were sent since the last call to the current job."""
        self._owners += [self._current] * (self._pipeline.sent_count - len(self._owners))


class _StoppedError(Exception):
    """A transaction cannot continue without a result."""


class _PartialTx:
    """Runs a transaction as far as results are known. Its writes wait until it has finished."""

    __slots__ = ("_next", "account", "can_run_together", "known", "needed", "scope", "writes")
    dialect = DIALECT

    def __init__(self, account: str, known: list[list[list[Row]]]) -> None:
        self.account = account
        self.known = known
        """The results of its first reads."""
        self.needed: Sequence[Statement] = ()
        """The statements whose results it needs to continue."""
        self.writes: list[Statement] = []
        self.scope: str | None = None
        self.can_run_together = True
        self._next = 0

    def limit_to(self, scope: str) -> None:
        self.scope = scope

    def execute(self, sql: str, params: Params = ()) -> None:
        self.writes.append((sql, params))

    def one(self, sql: str, params: Params = ()) -> Row | None:
        rows = self.all_of([(sql, params)])[0]
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self.all_of([(sql, params)])[0]

    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if self.writes or not all(sql.startswith("SELECT") for sql, _ in statements):
            # What it reads depends on what it wrote.
            self.can_run_together = False
            raise _StoppedError
        if self._next == len(self.known):
            self.needed = statements
            raise _StoppedError
        self._next += 1
        return self.known[self._next - 1]

    def run_script(self, _sql: str) -> None:
        self.can_run_together = False
        raise _StoppedError


def _run_partially(job: Job[Work[object]], known: list[list[list[Row]]]) -> _PartialTx:
    tx = _PartialTx(job.work[0], known)
    job.outcome = job.error = None
    try:
        job.outcome = job.work[1](tx)
    except _StoppedError:
        pass
    except Exception as error:  # noqa: BLE001 - it is passed to the caller of this job
        job.error = error
        tx.writes.clear()
    if tx.scope is None:
        tx.can_run_together = False
    if not tx.can_run_together:
        tx.needed = ()
    return tx
