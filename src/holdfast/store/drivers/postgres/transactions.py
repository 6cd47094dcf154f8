"""Transactions on a PostgreSQL connection."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from holdfast.errors import HoldfastError, UnavailableError
from holdfast.store import migrations
from holdfast.store.database import Dialect, Params, Row, Statement, Tx, raise_if_cancelled, transaction_scope
from holdfast.store.drivers.postgres.limits import (
    ANSWER_MARGIN_SECONDS,
    LONG_STATEMENT_SECONDS,
    NO_LIMIT_SECONDS,
    SET_ACCOUNT_AND_LIMITS,
    SET_STATEMENT_LIMIT,
    TimeLimits,
)
from holdfast.store.drivers.postgres.pipeline import Pipeline
from holdfast.store.index import postgres_text
from holdfast.store.row_errors import ROW_ERRORS, damage_error

LOST_STATEMENTS = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
"""Errors of a pooler that gives each transaction another connection: a prepared statement is missing
there, or another one has its name."""

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]

DIALECT = Dialect(
    name="postgres",
    lock_row=" FOR NO KEY UPDATE",
    has_lateral_joins=True,
    allocate_documents=postgres_text.allocate,
    insert_text=postgres_text.insert,
    delete_text=postgres_text.delete,
    delete_account_text=postgres_text.DELETE_ACCOUNT,
    text_hits=postgres_text.HITS,
    text_query=postgres_text.query,
    match_text=postgres_text.match,
    ranges=(
        "SELECT (value ->> 0)::bigint AS log_id, (value ->> 1)::bigint AS first_seq, (value ->> 2)::bigint AS last_seq"
        " FROM json_array_elements(?::json)"
    ),
    can_index_vectors=True,
    unreadable_row=(),
)

# Spelled out in full, because an operator may change the server's defaults.
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SET_ACCOUNT = "SELECT set_config('holdfast.account', ?, true)"
TURN_ON_SYNCHRONOUS_COMMIT = "SET LOCAL synchronous_commit = on"
REQUIRE_SCHEMA = "SELECT holdfast_refuse_schema(number) FROM schema_migrations WHERE number > ?"
"""Begins a write. It fails if the database has a newer schema than the given one."""
NEWER_SCHEMA = "HF001"
"""The SQLSTATE of that failure."""

CANCEL_SECONDS = 5.0

# After these errors PostgreSQL has certainly rolled the transaction back, so it can run again.
ROLLBACK_ERRORS = (pg.DeadlockDetected, pg.SerializationFailure)
NOT_COMMITTED_ERRORS = (*ROLLBACK_ERRORS, pg.LockNotAvailable, *LOST_STATEMENTS)
"""With these errors a COMMIT has failed. Others leave its outcome unknown."""
UNUSABLE_CONNECTION = (
    pg.AdminShutdown,
    pg.CrashShutdown,
    pg.CannotConnectNow,
    pg.IdleInTransactionSessionTimeout,
    # A standby, or a primary that became one. "cannot set transaction read-write mode" has the second class.
    pg.ReadOnlySqlTransaction,
    pg.FeatureNotSupported,  # also a prepared statement whose table has changed
    *LOST_STATEMENTS,
)
"""After these errors the connection is replaced, and the transaction runs again."""


class Connection(psycopg.Connection[Row]):
    """A connection with a pipeline, which keeps the names of prepared statements."""

    limits: TimeLimits
    turns_on_synchronous_commit = False
    """Whether transactions must turn `synchronous_commit` on, because the server's default is off."""
    known_schema: int | None = None
    """The newest schema that this version knows. A write fails if the database has a newer one. None: not checked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.statements = Pipeline(self)
        self.opened_at = time.monotonic()


class PostgresTx:
    __slots__ = ("_limits", "_pipeline", "account", "has_written", "statement")
    dialect = DIALECT

    def __init__(self, pipeline: Pipeline, account: str, limits: TimeLimits) -> None:
        self._pipeline = pipeline
        self._limits = limits
        self.account = account
        self.has_written = False
        self.statement: Statement | None = None
        """The last query, which a damage error names."""

    def limit_to(self, scope: str) -> None:
        pass

    def allow_long_statements(self) -> None:
        seconds = max(self._limits.statement, LONG_STATEMENT_SECONDS)
        self._pipeline.wait_longer(seconds + ANSWER_MARGIN_SECONDS)
        self._pipeline.send(SET_STATEMENT_LIMIT, (int(seconds * 1_000),))

    def execute(self, sql: str, params: Params = ()) -> None:
        self.has_written = True
        self._pipeline.send(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        rows = self.all_of([(sql, params)])[0]
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self.all_of([(sql, params)])[0]

    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise_if_cancelled()
        if not self.has_written:
            self.has_written = not all(sql.startswith("SELECT") for sql, _ in statements)
        self.statement = statements[-1] if statements else None
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


class LockedError(Exception):
    """The transaction waited too long for a lock. It was not committed."""


def run_transaction(
    account: str,
    transaction: Callable[[Tx], T],
    connection: Connection,
    *,
    is_read: bool = False,
    lock_seconds: float = NO_LIMIT_SECONDS,
    limits: TimeLimits | None = None,
) -> T:
    """Run a transaction. It waits for a lock for `lock_seconds`, or for the time that the limits allow."""
    pipeline, limits = connection.statements, limits or connection.limits
    tx = PostgresTx(pipeline, account, limits)
    with transaction_scope:
        try:
            begin(connection, limits, is_read=is_read)
            pipeline.send(SET_ACCOUNT_AND_LIMITS, (*limits.as_settings(lock_seconds, is_read=is_read), account))
            result = transaction(tx)
            commit(pipeline, is_read=is_read)
        except psycopg.Error as error:
            roll_back(connection, error, is_read=is_read)
            raise not_committed(connection, error) from error
        except BaseException as error:
            roll_back(connection, error)
            if isinstance(error, ROW_ERRORS):
                raise damage_error(error, tx.statement) from error
            raise
        return result


def begin(connection: Connection, limits: TimeLimits, *, is_read: bool = False) -> None:
    pipeline = connection.statements
    pipeline.open(limits.answer)
    pipeline.send(BEGIN_READ if is_read else BEGIN_WRITE)
    if is_read:
        return
    if connection.turns_on_synchronous_commit:
        pipeline.send(TURN_ON_SYNCHRONOUS_COMMIT)
    if connection.known_schema is not None:
        pipeline.send(REQUIRE_SCHEMA, (connection.known_schema,))


def commit(pipeline: Pipeline, *, is_read: bool = False) -> None:
    """Raise psycopg.Error if the transaction was certainly not committed."""
    try:
        pipeline.end("COMMIT")
    except psycopg.Error as error:
        # The server executes statements in order and stops at an error.
        is_before_commit = error.sqlstate is not None and pipeline.succeeded_count < pipeline.sent_count - 1
        if is_read or is_before_commit or isinstance(error, NOT_COMMITTED_ERRORS):
            raise
        raise unavailable(
            error, "the outcome of this call is unknown; retry it with the same idempotency key"
        ) from error
    pipeline.close()


def roll_back(connection: Connection, error: BaseException | None, *, is_read: bool = False) -> None:
    """Make the connection ready for the next transaction, or close it if the error leaves it unusable."""
    try:
        if connection.statements.has_timed_out:
            connection.close()  # its server does not answer a rollback either
            return
        if isinstance(error, BaseException) and not isinstance(error, Exception) and connection.statements.is_waiting:
            connection.cancel_safe(timeout=CANCEL_SECONDS)  # else waiting for the results could take any time
            connection.close()
            return
        connection.statements.roll_back()
        connection.statements.close()
        if isinstance(error, UNUSABLE_CONNECTION) and not (is_read and isinstance(error, pg.ReadOnlySqlTransaction)):
            connection.close()
    except psycopg.Error:
        connection.close()


def not_committed(connection: Connection, error: psycopg.Error) -> Exception:
    """The error to raise for an error of a transaction that was rolled back."""
    if error.sqlstate == NEWER_SCHEMA:
        return migrations.newer_schema_error(DIALECT.name, int(error.diag.message_detail or 0))
    if isinstance(error, pg.LockNotAvailable):
        return LockedError(str(error))
    if isinstance(error, ROLLBACK_ERRORS) or connection.closed:
        return NotCommittedError(error)
    if not isinstance(error, psycopg.OperationalError):
        return unavailable(error, "nothing was written; check the database and the privileges of its user")
    return unavailable(error, "nothing was written; try again")


def unavailable(error: Exception, advice: str) -> HoldfastError:
    reason = str(error).strip().split("\n", 1)[0]
    return UnavailableError(f"PostgreSQL: {reason}: {advice}", service="postgres", reason=type(error).__name__)


def locked_by_another(seconds: float) -> HoldfastError:
    return UnavailableError(
        f"PostgreSQL: the session, or another row that this call changes, was locked by another transaction for"
        f" {seconds:.1f} s: nothing was written; try again",
        service="postgres",
        reason="LockNotAvailable",
    )
