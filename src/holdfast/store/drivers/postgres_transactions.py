"""Transactions on a PostgreSQL connection: one, or a batch of writes that share a commit."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store.database import Dialect, Params, Row, Statement, Tx, transaction_scope
from holdfast.store.drivers.group_commit import Job
from holdfast.store.drivers.postgres_pipeline import Pipeline

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]
J = TypeVar("J", bound=Job[Work[object]])

DIALECT = Dialect(
    name="postgres",
    lock_row=" FOR NO KEY UPDATE",
    has_lateral_joins=True,
    insert_text=(
        "INSERT INTO message_text (account_id, log_id, seq, words) VALUES (?, ?, ?, to_tsvector('holdfast_text', ?))"
    ),
    delete_text="DELETE FROM message_text WHERE account_id = ? AND log_id = ? AND seq > ?",
    delete_all_text="DELETE FROM message_text WHERE account_id = ?",
    match_text=lambda _account, words: (_MATCH, [" & ".join(f"'{word}'" for word in words)]),
)
_MATCH = (
    "EXISTS (SELECT 1 FROM message_text t WHERE t.account_id = m.account_id AND t.log_id = m.log_id"
    " AND t.seq = m.seq AND t.words @@ to_tsquery('holdfast_text', ?))"
)

# Spelled out in full, because an operator may change the server's defaults.
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SET_ACCOUNT = "SELECT set_config('holdfast.account', ?, true)"
SET_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '20ms'"
"""For a batch: a write that waits longer for a lock runs alone, so that the others do not wait for it."""

CANCEL_SECONDS = 5.0

# After these errors PostgreSQL has certainly rolled the transaction back, so it can run again.
ROLLBACK_ERRORS = (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)


class Connection(psycopg.Connection[Row]):
    """A connection with a pipeline, which keeps the names of prepared statements."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.statements = Pipeline(self)


class PostgresTx:
    __slots__ = ("_pipeline", "account", "has_written")
    dialect = DIALECT

    def __init__(self, pipeline: Pipeline, account: str) -> None:
        self._pipeline = pipeline
        self.account = account
        self.has_written = False

    def execute(self, sql: str, params: Params = ()) -> None:
        self.has_written = True
        self._pipeline.send(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        rows = self.all_of([(sql, params)])[0]
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self.all_of([(sql, params)])[0]

    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if not self.has_written:
            self.has_written = not all(sql.startswith("SELECT") for sql, _ in statements)
        return self._pipeline.fetch(statements)

    def run_script(self, sql: str) -> None:
        self.has_written = True
        self._pipeline.run_script(sql)


class NotCommittedError(Exception):
    """The transaction was not committed, so it can run again."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def run_transaction(account: str, transaction: Callable[[Tx], T], begin: str, connection: Connection) -> T:
    pipeline = connection.statements
    with transaction_scope:
        try:
            pipeline.open()
            pipeline.send(begin)
            pipeline.send(SET_ACCOUNT, (account,))
            result = transaction(PostgresTx(pipeline, account))
            _commit(pipeline, is_read=begin == BEGIN_READ)
        except psycopg.Error as error:
            _roll_back(connection)
            raise _not_committed(connection, error) from error
        except BaseException as error:
            _roll_back(connection, is_interrupted=not isinstance(error, Exception))
            raise
        return result


def run_batch(connection: Connection, batch: Sequence[J]) -> J | None:
    """Run jobs in one transaction. Return None, or the job that failed: then nothing was written.

    A job that fails before it writes does not affect the others: it gets its error, and they are committed.
    """
    pipeline = connection.statements
    ends: list[int] = []
    with transaction_scope:
        try:
            pipeline.open()
            pipeline.send(BEGIN_WRITE)
            pipeline.send(SET_LOCK_TIMEOUT)
            account = None
            for job in batch:
                if job.work[0] != account:
                    account = job.work[0]
                    pipeline.send(SET_ACCOUNT, (account,))
                if not _run_job(job, PostgresTx(pipeline, account)):
                    _roll_back(connection)
                    return job
                ends.append(pipeline.sent_count)
            _commit(pipeline)
        except psycopg.Error as error:
            failed = bisect_right(ends, pipeline.succeeded_count)
            _roll_back(connection)
            if connection.closed or failed == len(batch):
                raise NotCommittedError(error) from error
            return batch[failed]
        except BaseException as error:
            _roll_back(connection, is_interrupted=not isinstance(error, Exception))
            raise
        return None


def _run_job(job: Job[Work[object]], tx: PostgresTx) -> bool:
    """Return False if the job failed after it had written."""
    job.outcome = job.error = None
    try:
        job.outcome = job.work[1](tx)
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 - it is passed to the caller of this job
        job.error = error
        return not tx.has_written
    return True


def _commit(pipeline: Pipeline, *, is_read: bool = False) -> None:
    """Raise psycopg.Error if the transaction was certainly not committed."""
    try:
        pipeline.end("COMMIT")
    except psycopg.Error as error:
        # The server executes statements in order and stops at an error.
        is_before_commit = error.sqlstate is not None and pipeline.succeeded_count < pipeline.sent_count - 1
        if is_read or is_before_commit or isinstance(error, ROLLBACK_ERRORS):
            raise
        raise unavailable(
            error, "the outcome of this call is unknown; retry it with the same idempotency key"
        ) from error
    pipeline.close()


def _roll_back(connection: Connection, *, is_interrupted: bool = False) -> None:
    """Make the connection ready for the next transaction, or close it."""
    try:
        if is_interrupted and connection.statements.is_waiting:
            connection.cancel_safe(timeout=CANCEL_SECONDS)  # else waiting for the results could take any time
            connection.close()
            return
        connection.statements.roll_back()
        connection.statements.close()
    except psycopg.Error:
        connection.close()


def _not_committed(connection: Connection, error: psycopg.Error) -> Exception:
    """The error to raise for an error of a transaction that was rolled back."""
    if not isinstance(error, psycopg.OperationalError):
        return unavailable(error, "nothing was written; check the database and the privileges of its user")
    if isinstance(error, ROLLBACK_ERRORS) or connection.closed:
        return NotCommittedError(error)
    return unavailable(error, "nothing was written; try again")


def unavailable(error: Exception, advice: str) -> HoldfastError:
    reason = str(error).strip().split("\n", 1)[0]
    return UnavailableError(f"PostgreSQL: {reason}: {advice}", service="postgres", reason=type(error).__name__)
