"""Transactions on a PostgreSQL connection."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store.database import Dialect, Params, Row, Statement, Tx, transaction_scope
from holdfast.store.drivers.postgres_pipeline import Pipeline
from holdfast.store.index import postgres_text

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]

DIALECT = Dialect(
    name="postgres",
    lock_row=" FOR NO KEY UPDATE",
    has_lateral_joins=True,
    index_text=postgres_text.update,
    delete_text=postgres_text.DELETE,
    delete_all_text=postgres_text.DELETE_ALL,
    match_text=postgres_text.match,
)

# Spelled out in full, because an operator may change the server's defaults.
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SET_ACCOUNT = "SELECT set_config('holdfast.account', ?, true)"

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

    def limit_to(self, scope: str) -> None:
        pass

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

    def all_within(self, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:
        return all_within(self, sql, params, max_bytes, order_by)

    def run_script(self, sql: str) -> None:
        self.has_written = True
        self._pipeline.run_script(sql)


def all_within(tx: Tx, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:
    """Select the rows in the server, so that the rest is not sent. Large columns are stored apart and not read."""
    rows = tx.all(
        f"SELECT * FROM (SELECT q.*, SUM(q.bytes) OVER (ORDER BY q.{order_by})::bigint AS bytes_through,"
        f" COUNT(*) OVER () AS row_count FROM ({sql}) q) AS r WHERE bytes_through <= ? OR bytes_through = bytes"
        f" ORDER BY {order_by}",
        (*params, max_bytes),
    )
    return [row[:-2] for row in rows], bool(rows) and len(rows) < rows[0][-1]


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
            commit(pipeline, is_read=begin == BEGIN_READ)
        except psycopg.Error as error:
            roll_back(connection)
            raise _not_committed(connection, error) from error
        except BaseException as error:
            roll_back(connection, is_interrupted=not isinstance(error, Exception))
            raise
        return result


def commit(pipeline: Pipeline, *, is_read: bool = False) -> None:
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


def roll_back(connection: Connection, *, is_interrupted: bool = False) -> None:
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
