"""A batch of writes in one transaction on PostgreSQL.

Most writes append to different sessions. Their transactions declare this with `limit_to`, so that they can run
together: all of them run until they need a result, then all reads are sent at once, and they run again with the
results. A batch of appends needs two round trips, as a single append does. All other writes of the batch follow one
after another.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
import psycopg
from psycopg import errors as pg

from holdfast.store.database import Params, Row, Statement, transaction_scope
from holdfast.store.drivers.group_commit import PendingWrite
from holdfast.store.drivers.postgres.limits import SET_LIMITS
from holdfast.store.drivers.postgres.transactions import (
    DIALECT,
    NEWER_SCHEMA,
    SET_ACCOUNT,
    Connection,
    NotCommittedError,
    PostgresTx,
    Work,
    all_within,
    begin,
    commit,
    not_committed,
    roll_back,
)
from holdfast.store.row_errors import ROW_ERRORS, damage_error

J = TypeVar("J", bound=PendingWrite[Work[object]])

MAX_LOCK_SECONDS = 0.02
"""A write that waits longer for a lock leaves its batch, so that the others do not wait for it."""
MAX_STATEMENT_SECONDS = 2.0
"""A write with a statement that takes longer leaves its batch, too."""
MAX_RUNS = 4
"""How often a write runs together with others. A write that needs more results runs on its own."""


class LeavingWrite(msgspec.Struct, Generic[J], frozen=True):
    """A write that prevents its batch from being committed. Nothing was written."""

    write: J
    cause: psycopg.Error | None
    """The error of the database. None if it takes long, or failed in Python."""

    @property
    def is_locked(self) -> bool:
        return isinstance(self.cause, pg.LockNotAvailable)

    @property
    def is_slow(self) -> bool:
        return isinstance(self.cause, pg.QueryCanceled)


def run_batch(
    connection: Connection,
    batch: Sequence[J],
    lock_seconds: float = MAX_LOCK_SECONDS,
    statement_seconds: float = MAX_STATEMENT_SECONDS,
) -> LeavingWrite[J] | None:
    """Run writes in one transaction. Return None, or the write that has to leave the batch: then nothing was written.

    A write that fails before it writes does not affect the others: it gets its error, and they are committed.
    """
    running = _RunningBatch[J](connection)
    with transaction_scope:
        try:
            running.begin(lock_seconds, statement_seconds)
            for write in running.run_together(batch) if len(batch) > 1 else batch:
                if not running.run_alone(write):
                    roll_back(connection, None)
                    return LeavingWrite(write, None)
            commit(connection.statements)
        except psycopg.Error as error:
            failed = running.failed_write()
            roll_back(connection, error)
            if error.sqlstate == NEWER_SCHEMA:  # this concerns all writes
                raise not_committed(connection, error) from error
            if connection.closed or failed is None:
                raise NotCommittedError(error) from error
            return LeavingWrite(failed, error)
        except BaseException as error:
            roll_back(connection, error)
            raise
        return None


class _RunningBatch(Generic[J]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pipeline = connection.statements
        self._account: str | None = None
        self._owners: list[J | None] = []
        """The write of each statement that was sent."""
        self._current: J | None = None

    def begin(self, lock_seconds: float, statement_seconds: float) -> None:
        limits = self._connection.limits
        begin(self._connection, limits)
        self._pipeline.send(SET_LIMITS, limits.as_settings(lock_seconds, statement_seconds))

    def failed_write(self) -> J | None:
        """The write of the statement that failed."""
        self._assign_sent_statements()
        failed = self._pipeline.succeeded_count
        return self._owners[failed] if failed < len(self._owners) else None

    def run_alone(self, write: J) -> bool:
        """Run a write after all others. Return False if it failed after it had written, or takes long."""
        self._switch_to(write)
        tx = _BatchedTx(self._pipeline, write.work[0], self._connection.limits)
        write.outcome = write.error = None
        try:
            write.outcome = write.work[1](tx)
        except psycopg.Error:
            raise
        except _StoppedError:
            return False
        except Exception as error:  # noqa: BLE001 - it is passed to the caller of this write
            write.error = damage_error(error, tx.statement) if isinstance(error, ROW_ERRORS) else error
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
        self._assign_sent_statements()
        self._current = write
        if self._account != write.work[0]:
            self._account = write.work[0]
            self._pipeline.send(SET_ACCOUNT, (self._account,))

    def _assign_sent_statements(self) -> None:
        """Record that the statements sent since the last call belong to the current write."""
        self._owners += [self._current] * (self._pipeline.sent_count - len(self._owners))


class _StoppedError(Exception):
    """A transaction cannot continue here: without a result, or because it takes long."""


class _BatchedTx(PostgresTx):
    """A transaction that runs after others of its batch."""

    __slots__ = ()

    def allow_long_statements(self) -> None:
        raise _StoppedError


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

    def allow_long_statements(self) -> None:
        self.can_run_together = False
        raise _StoppedError

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
