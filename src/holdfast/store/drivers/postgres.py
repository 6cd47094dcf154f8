"""The PostgreSQL driver, with psycopg and a connection pool. Row-level security limits a transaction to its account."""

import atexit
import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import Literal
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from holdfast import forking
from holdfast.errors import FailedPreconditionError, HoldfastError, InvalidArgumentError, UnavailableError
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Dialect, Params, Row, Submission, Tx, transaction_scope

T = TypeVar("T")
Connection = psycopg.Connection[Row]

DIALECT = Dialect(
    name="postgres",
    lock_row=" FOR NO KEY UPDATE",
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

MAX_ATTEMPTS = 5
"""How often a transaction is tried that fails without being committed."""

MIGRATION_LOCK = 5_417_233_016_042
"""The key of the advisory lock that a migration holds. Any fixed number that other programs do not use."""

# After these errors PostgreSQL has certainly rolled the transaction back, so it can run again.
ROLLBACK_ERRORS = (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)


class PostgresTx:
    __slots__ = ("_execute", "account")
    dialect = DIALECT

    def __init__(self, connection: Connection, account: str) -> None:
        self._execute = connection.execute
        self.account = account

    def execute(self, sql: str, params: Params = ()) -> None:
        self._execute(_placeholders(sql), params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        return self._execute(_placeholders(sql), params).fetchone()

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self._execute(_placeholders(sql), params).fetchall()


class PostgresDatabase:
    """One PostgreSQL database. Any number of processes on any number of machines may use it."""

    def __init__(self, url: str, *, pool_max: int = 16, wait_seconds: float = 30.0) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise InvalidArgumentError("target", f"is not a PostgreSQL URL: {str(error).strip()}") from None
        self._url = url
        self._pool_max = pool_max
        self._wait_seconds = wait_seconds
        self._closed = False
        self._pool: ConnectionPool[Connection] | None = None
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        _open_databases.add(self)

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T:
        return self._run(account, transaction, BEGIN_READ)

    def write(self, account: str, transaction: Callable[[Tx], T]) -> T:
        return self._run(account, transaction, BEGIN_WRITE)

    def submit(self, submissions: Sequence[Submission]) -> None:
        with self._lock:
            if self._closed:
                raise _closed_error()
            if self._threads is None:
                thread_count = max(1, self._pool_max * 3 // 4)  # leaves connections for reads while writes wait
                self._threads = ThreadPoolExecutor(thread_count, thread_name_prefix="holdfast-writer")
            for submission in submissions:
                self._threads.submit(self._write_and_reply, submission)

    def count_waiting_writes(self) -> int:
        return self._threads._work_queue.qsize() if self._threads else 0  # noqa: SLF001 - there is no public way

    def migrate(self, now: int) -> None:
        def apply(tx: Tx) -> None:
            tx.one("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
            tx.execute(migrations.CREATE_TABLE)
            for migration in migrations.list_pending(tx):
                tx.execute(migration.sql)
                migrations.record(tx, migration, now)

        self.write(EVERY_ACCOUNT, apply)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True)
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def reset_after_fork(self) -> None:
        """Drop the pool and its locks: its sockets belong to the parent, and its threads do not exist in the child."""
        if self._pool is not None:
            _parent_pools.append(self._pool)
        self._pool, self._threads = None, None
        self._lock = threading.Lock()

    def _write_and_reply(self, submission: Submission) -> None:
        try:
            outcome = self.write(submission.account, submission.transaction)
        except BaseException as error:  # noqa: BLE001 - it is passed to the caller
            submission.reply(None, error)
        else:
            submission.reply(outcome, None)

    def _run(self, account: str, transaction: Callable[[Tx], T], begin: str) -> T:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._attempt(account, transaction, begin)
            except _NotCommittedError as not_committed:
                if isinstance(not_committed.cause, ROLLBACK_ERRORS):
                    # A different pause in each thread, so that they do not collide again.
                    time.sleep(0.01 * attempt * (threading.get_ident() % 97) / 97)
                else:
                    self._get_pool().check()  # a restarted server has closed all other connections, too
                if attempt == MAX_ATTEMPTS:
                    raise _unavailable(not_committed.cause, "nothing was written; try again") from not_committed.cause
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempt(self, account: str, transaction: Callable[[Tx], T], begin: str) -> T:
        try:
            with self._get_pool().connection() as connection:
                return _run_transaction(connection, account, transaction, begin)
        except PoolClosed:
            raise _closed_error() from None
        except PoolTimeout as error:
            raise _unavailable(error, "nothing was written; check that the server runs and try again") from error

    def _get_pool(self) -> "ConnectionPool[Connection]":
        pool = self._pool
        if pool is not None:
            return pool
        with self._lock:
            if self._closed:
                raise _closed_error()
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._url,
                    min_size=1,
                    max_size=self._pool_max,
                    timeout=self._wait_seconds,
                    kwargs={"autocommit": True},
                    configure=_enforce_durability,
                    open=True,
                )
            return self._pool


class _NotCommittedError(Exception):
    """The transaction was not committed, so it can run again."""

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _run_transaction(connection: Connection, account: str, transaction: Callable[[Tx], T], begin: str) -> T:
    with transaction_scope:
        try:
            # Both statements in one round trip.
            connection.execute(f"{begin}; SET LOCAL holdfast.account = {Literal(account).as_string(connection)}")
            result = transaction(PostgresTx(connection, account))
        except psycopg.OperationalError as error:
            _roll_back(connection)
            if isinstance(error, ROLLBACK_ERRORS) or connection.closed:
                raise _NotCommittedError(error) from error
            raise _unavailable(error, "nothing was written; try again") from error
        except psycopg.Error as error:
            _roll_back(connection)
            raise _unavailable(
                error, "nothing was written; check the database and the privileges of its user"
            ) from error
        except BaseException:
            _roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            _roll_back(connection)
            if begin == BEGIN_READ or isinstance(error, ROLLBACK_ERRORS):
                raise _NotCommittedError(error) from error
            raise _unavailable(
                error, "the outcome of this call is unknown; retry it with the same idempotency key"
            ) from error
        return result


def _enforce_durability(connection: Connection) -> None:
    """Turn `synchronous_commit` on if it is off, so that a commit is on the disk before it is acknowledged.

    Other values, which concern replicas, are the operator's choice.
    """
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )


def _closed_error() -> FailedPreconditionError:
    return FailedPreconditionError("this client was closed; connect again to use the database")


def _roll_back(connection: Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


def _unavailable(error: Exception, advice: str) -> HoldfastError:
    reason = str(error).strip().split("\n", 1)[0]
    return UnavailableError(f"PostgreSQL: {reason}: {advice}", service="postgres", reason=type(error).__name__)


@functools.cache
def _placeholders(sql: str) -> Any:
    return sql.replace("%", "%%").replace("?", "%s")


_open_databases = forking.reset_in_child(PostgresDatabase.reset_after_fork)
_parent_pools: list[object] = []
"""Pools inherited from a parent process. They are never freed: that would wait for threads that do not exist here."""


def _close_all() -> None:
    """Close all databases at exit. An open pool would wait for its threads and print a warning."""
    for database in list(_open_databases):
        database.close()


atexit.register(_close_all)
