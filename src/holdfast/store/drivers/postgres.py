"""The PostgreSQL driver, with psycopg and a connection pool. Row-level security limits a transaction to its account."""

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from holdfast import forking
from holdfast.errors import FailedPreconditionError, InvalidArgumentError
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Submission, Tx
from holdfast.store.drivers.postgres_batches import run_batch
from holdfast.store.drivers.postgres_transactions import (
    BEGIN_READ,
    BEGIN_WRITE,
    DIALECT,
    ROLLBACK_ERRORS,
    SET_ACCOUNT,
    SET_ACCOUNT_OF_SCHEMA,
    Connection,
    NotCommittedError,
    Work,
    run_transaction,
    unavailable,
)
from holdfast.store.drivers.write_queue import SubmittedWrite, WriteQueue

T = TypeVar("T")

MAX_ATTEMPTS = 5
"""How often a transaction is tried that fails without being committed."""

WRITER_THREADS = 2
"""How many threads commit batches of submitted writes: one works while another waits for the disk."""

MIGRATION_LOCK = 5_417_233_016_042
"""The key of the advisory lock that a migration holds. Any fixed number that other programs do not use."""


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
        self._set_account = SET_ACCOUNT
        """The statement that begins the transaction of a write."""
        self._pool: ConnectionPool[Connection] | None = None
        self._lock = threading.Lock()
        self._queue: WriteQueue[Work[object]] | None = None
        self._threads = self._new_threads()
        """Run submitted writes that failed in their batch or would delay it."""
        _open_databases.add(self)

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T:
        return self._on_connection(partial(run_transaction, account, transaction, BEGIN_READ, SET_ACCOUNT))

    def write(self, account: str, transaction: Callable[[Tx], T]) -> T:
        return self._on_connection(partial(run_transaction, account, transaction, BEGIN_WRITE, self._set_account))

    def submit(self, submissions: Sequence[Submission]) -> None:
        with self._lock:
            if self._closed:
                raise _closed_error()
            if self._queue is None:
                self._queue = WriteQueue(self._commit_batch, threads=WRITER_THREADS)
            self._queue.put(
                [SubmittedWrite((account, transaction), reply) for account, transaction, reply in submissions]
            )

    def count_waiting_writes(self) -> int:
        waiting = self._queue.count_waiting() if self._queue else 0
        return waiting + self._threads._work_queue.qsize()  # noqa: SLF001 - there is no public way

    def migrate(self, now: int) -> None:
        def apply(tx: Tx) -> None:
            tx.one("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
            tx.execute(migrations.CREATE_TABLE)
            for migration in migrations.list_pending(tx):
                tx.run_script(migration.sql)
                migrations.record(tx, migration, now)

        self._on_connection(partial(run_transaction, EVERY_ACCOUNT, apply, BEGIN_WRITE, SET_ACCOUNT))
        self._set_account = SET_ACCOUNT_OF_SCHEMA.format(migrations.newest_known(DIALECT.name))

    def store_time(self, now: int) -> None:
        """Do nothing: the server has a clock of its own."""

    def copy_to(self, target: Path, progress: Callable[[int, int], None]) -> None:  # noqa: ARG002
        raise FailedPreconditionError(
            f"holdfast copies SQLite files only; back PostgreSQL up with `pg_dump --format=custom --file={target} URL`"
            " and restore with `pg_restore --dbname=URL --clean --if-exists FILE`, or use `pg_basebackup`"
        )

    def close(self) -> None:
        with self._lock:
            self._closed = True
        if self._queue is not None:
            self._queue.close()
        self._threads.shutdown(wait=True)
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def reset_after_fork(self) -> None:
        """Drop the pool and its locks: its sockets belong to the parent, and its threads do not exist in the child."""
        if self._pool is not None:
            _parent_pools.append(self._pool)
        self._pool, self._queue, self._threads = None, None, self._new_threads()
        self._lock = threading.Lock()

    def _new_threads(self) -> ThreadPoolExecutor:
        thread_count = max(1, self._pool_max * 3 // 4 - WRITER_THREADS)  # leaves connections for reads
        return ThreadPoolExecutor(thread_count, thread_name_prefix="holdfast-single-writer")

    def _commit_batch(self, batch: list[SubmittedWrite[Work[object]]]) -> None:
        """Commit writes together. A write that prevents this is removed, to run alone, and the others run again."""
        while batch:
            failed = self._on_connection(partial(run_batch, batch=batch, set_account=self._set_account))
            if failed is None:
                return
            batch.remove(failed)
            self._threads.submit(self._run_alone, failed)

    def _run_alone(self, write: SubmittedWrite[Work[object]]) -> None:
        try:
            outcome = self.write(*write.work)
        except BaseException as error:  # noqa: BLE001 - it is passed to the caller
            write.reply(None, error)
        else:
            write.reply(outcome, None)

    def _on_connection(self, run: Callable[[Connection], T]) -> T:
        """Run a transaction on a connection of the pool. If it was not committed for a temporary reason, try again."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return self._attempt(run)
            except NotCommittedError as not_committed:
                if isinstance(not_committed.cause, ROLLBACK_ERRORS):
                    # A different pause in each thread, so that they do not collide again.
                    time.sleep(0.01 * attempt * (threading.get_ident() % 97) / 97)
                else:
                    self._get_pool().check()  # a restarted server has closed all other connections, too
                if attempt == MAX_ATTEMPTS:
                    raise unavailable(not_committed.cause, "nothing was written; try again") from not_committed.cause
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempt(self, run: Callable[[Connection], T]) -> T:
        try:
            pool = self._get_pool()
            connection = pool.getconn()
        except PoolClosed:
            raise _closed_error() from None
        except PoolTimeout as error:
            raise unavailable(error, "nothing was written; check that the server runs and try again") from error
        try:
            return run(connection)
        finally:
            pool.putconn(connection)

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
                    connection_class=Connection,
                    min_size=1,
                    max_size=self._pool_max,
                    timeout=self._wait_seconds,
                    kwargs={"autocommit": True, "client_encoding": "UTF8"},
                    configure=_enforce_durability,
                    open=True,
                )
            return self._pool


def _enforce_durability(connection: Connection) -> None:
    """Turn `synchronous_commit` on if it is off, so that a commit is on the disk before it is acknowledged.

    Other values, which concern replicas, are the operator's choice.
    """
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )


def _closed_error() -> FailedPreconditionError:
    return FailedPreconditionError("this client was closed; connect again to use the database")


_open_databases = forking.reset_in_child(PostgresDatabase.reset_after_fork)
_parent_pools: list[object] = []
"""Pools inherited from a parent process. They are never freed: that would wait for threads that do not exist here."""


def _close_all() -> None:
    """Close all databases at exit. An open pool would wait for its threads and print a warning."""
    for database in list(_open_databases):
        database.close()


atexit.register(_close_all)
