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
from holdfast.store.drivers.group_commit import PendingWrite
from holdfast.store.drivers.postgres_transactions import (
    BEGIN_WRITE,
    DIALECT,
    SET_ACCOUNT,
    Connection,
    NotCommittedError,
    PostgresTx,
    Work,
    all_within,
    commit,
    roll_back,
)

J = TypeVar("J", bound=PendingWrite[Work[object]])

SET_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '20ms'"
"""A write that waits longer for a lock runs alone later, so that the others of its batch do not wait for it."""
MAX_RUNS = 4
"""How often a write runs together with others. A write that needs more results runs on its own."""


def run_batch(connection: Connection, batch: Sequence[J]) -> J | None:
    """Run writes in one transaction. Return None, or the write that failed: then nothing was written.

    A write that fails before it writes does not affect the others: it gets its error, and they are committed.
    """
    running = _RunningBatch[J](connection)
    with transaction_scope:
        try:
            running.begin()
            for write in running.run_together(batch) if len(batch) > 1 else batch:
                if not running.run_alone(write):
                    roll_back(connection)
                    return write
            commit(connection.statements)
        except psycopg.Error as error:
            failed = running.failed_write()
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
        """The write of each statement that was sent."""
        self._current: J | None = None

    def begin(self) -> None:
        self._pipeline.open()
        self._pipeline.send(BEGIN_WRITE)
        self._pipeline.send(SET_LOCK_TIMEOUT)

    def failed_write(self) -> J | None:
        """The write of the statement that failed."""
        self._own_statements()
        failed = self._pipeline.succeeded_count
        return self._owners[failed] if failed < len(self._owners) else None

    def run_alone(self, write: J) -> bool:
        """Run a write after all others. Return False if it failed after it had written."""
        self._switch_to(write)
        tx = PostgresTx(self._pipeline, write.work[0])
        write.outcome = write.error = None
        try:
            write.outcome = write.work[1](tx)
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001 - it is passed to the caller of this write
            write.error = error
            return not tx.has_written
        return True

    def run_together(self, batch: Sequence[J]) -> list[J]:
        """Run the writes that have different scopes. Return the others."""
        others: list[J] = []
        runs: dict[tuple[str, str], tuple[J, _PartialTx]] = {}
        for write in batch:
            tx = _run_partially(write, [])
            scope = (write.work[0], tx.scope or "")
            if not tx.can_run_together or scope in runs:
                others.append(write)
            else:
                runs[scope] = write, tx
        # All batches lock sessions in the same order, so that they do not deadlock.
        waiting = [run for _, run in sorted(runs.items())]
        for _ in range(MAX_RUNS):
            waiting = self._continue(waiting, others)
            if not waiting:
                break
        return others + [write for write, _ in waiting]

    def _continue(self, runs: "list[tuple[J, _PartialTx]]", others: list[J]) -> "list[tuple[J, _PartialTx]]":
        """Send the statements of finished writes and the reads of the others, which then run again. Return these."""
        reading = [(write, tx) for write, tx in runs if tx.needed]
        for write, tx in runs:
            if not tx.can_run_together:
                others.append(write)
            elif not tx.needed:
                self._send(write, tx.writes)
        numbers: list[int] = []
        for write, tx in reading:
            self._send(write, tx.needed)
            sent = self._pipeline.sent_count
            numbers += range(sent - len(tx.needed), sent)
        results = self._pipeline.fetch_numbers(numbers) if reading else []
        continued = []
        for write, tx in reading:
            own, results = results[: len(tx.needed)], results[len(tx.needed) :]
            continued.append((write, _run_partially(write, [*tx.known, own])))
        return continued

    def _send(self, write: J, statements: Sequence[Statement]) -> None:
        if statements:
            self._switch_to(write)
            for sql, params in statements:
                self._pipeline.send(sql, params)

    def _switch_to(self, write: J) -> None:
        self._own_statements()
        self._current = write
        if self._account != write.work[0]:
            self._account = write.work[0]
            self._pipeline.send(SET_ACCOUNT, (self._account,))

    def _own_statements(self) -> None:
        """Assign the statements that were sent since the last call to the current write."""
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

    def all_within(self, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:
        return all_within(self, sql, params, max_bytes, order_by)

    def run_script(self, _sql: str) -> None:
        self.can_run_together = False
        raise _StoppedError


def _run_partially(write: PendingWrite[Work[object]], known: list[list[list[Row]]]) -> _PartialTx:
    tx = _PartialTx(write.work[0], known)
    write.outcome = write.error = None
    try:
        write.outcome = write.work[1](tx)
    except _StoppedError:
        pass
    except Exception as error:  # noqa: BLE001 - it is passed to the caller of this write
        write.error = error
        tx.writes.clear()
    if tx.scope is None:
        tx.can_run_together = False
    if not tx.can_run_together:
        tx.needed = ()
    return tx
