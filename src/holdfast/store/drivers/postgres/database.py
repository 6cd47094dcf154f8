"""The PostgreSQL driver, with psycopg. Row-level security limits a transaction to its account."""

import atexit
import copy
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast import forking
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Submission, Tx
from holdfast.store.drivers.keys_in_use import KeysInUse
from holdfast.store.drivers.lock_waits import LockWaits
from holdfast.store.drivers.postgres.batches import run_batch
from holdfast.store.drivers.postgres.limits import MIGRATION_LIMITS, SET_LIMITS, TimeLimits
from holdfast.store.drivers.postgres.pool import ConnectionPool, closed_error, connector
from holdfast.store.drivers.postgres.transactions import (
    DIALECT,
    LOST_STATEMENTS,
    ROLLBACK_ERRORS,
    Connection,
    LockedError,
    NotCommittedError,
    Work,
    locked_by_another,
    run_transaction,
    unavailable,
)
from holdfast.store.drivers.write_lanes import WriteLanes
from holdfast.store.drivers.write_queue import SubmittedWrite, WriteQueue

T = TypeVar("T")
Write = SubmittedWrite[Work[object]]

MAX_ATTEMPTS = 5
"""How often a transaction is tried that conflicts with others."""
WRITER_THREADS = 2
"""How many threads commit batches of submitted writes: one works while another waits for the disk."""
FIRST_LOCK_SECONDS = 0.1
"""How long a write waits for a lock before it needs a turn to wait longer."""
MIN_LOCK_SECONDS = 0.1
"""How long a write waits for a lock at least, even if it has already waited long for a thread or a turn."""
MIGRATION_LOCK = 5_417_233_016_042
"""The key of the advisory lock that a migration holds. Any fixed number that other programs do not use."""


class PostgresDatabase:
    """One PostgreSQL database. Any number of processes on any number of machines may use it."""

    def __init__(
        self, url: str, *, pool_max: int = 16, wait_seconds: float = 30.0, request_seconds: float = 30.0
    ) -> None:
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise InvalidArgumentError("target", f"is not a PostgreSQL URL: {str(error).strip()}") from None
        self._url = url
        self._pool_max = pool_max
        self._wait_seconds = wait_seconds
        self._limits = TimeLimits.within(request_seconds)
        self._prepares = True
        self._closed = False
        self._known_schema: int | None = None
        """The newest schema that this version knows. None until the database has it."""
        self._begin()
        _open_databases.add(self)

    def _begin(self) -> None:
        """Create what a process cannot share with another."""
        self._lock = threading.Lock()
        self._queue: WriteQueue[Work[object]] | None = None
        # Together these leave connections for the batches and for reads.
        self._lanes: WriteLanes[Work[object]] = WriteLanes(
            self._run_lane, threads=max(1, self._pool_max * 3 // 8), per_account=max(1, self._pool_max * 3 // 16)
        )
        self._keys = KeysInUse[Work[object]]()
        self._lock_waits = LockWaits(max_count=max(1, self._pool_max // 4), per_account=max(1, self._pool_max // 8))
        self._pool = ConnectionPool(connector(self._url, self._limits), self._pool_max)

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T:
        keep_free = WRITER_THREADS if self._pool_max >= 2 * WRITER_THREADS else 0
        run = partial(run_transaction, account, transaction, is_read=True)
        try:
            return self._on_connection(run, keep_free=keep_free)
        except LockedError as error:  # by a migration: other locks do not block reads
            raise locked_by_another(self._limits.lock) from error

    def write(self, account: str, transaction: Callable[[Tx], T]) -> T:
        begun = time.monotonic()
        run = partial(run_transaction, account, transaction)
        try:
            return self._on_connection(partial(run, lock_seconds=FIRST_LOCK_SECONDS))
        except LockedError:
            pass
        # It waits for its turn without a connection. Otherwise one locked row could take all connections.
        deadline = begun + self._limits.lock
        try:
            with self._lock_waits.turn(account, deadline):
                left = max(MIN_LOCK_SECONDS, deadline - time.monotonic())
                return self._on_connection(partial(run, lock_seconds=left))
        except (LockedError, TimeoutError) as error:
            raise locked_by_another(time.monotonic() - begun) from error

    def submit(self, submissions: Sequence[Submission]) -> None:
        now = time.monotonic()
        writes = [
            SubmittedWrite((account, transaction), reply, key=(account, key), submitted_at=now)
            for account, transaction, reply, key in submissions
        ]
        with self._lock:
            if self._closed:
                raise closed_error()
            if self._queue is None:
                self._queue = WriteQueue(self._commit_batch, threads=WRITER_THREADS)
            self._queue.put(writes)

    def count_waiting_writes(self) -> int:
        return (self._queue.count_waiting() if self._queue else 0) + self._lanes.count_waiting()

    def migrate(self, now: int) -> None:
        if self.read(EVERY_ACCOUNT, _is_migrated):
            self._known_schema = migrations.newest_known(DIALECT.name)
            return

        def apply(tx: Tx) -> None:
            # Another process may be migrating for as long as a migration may take. After it, locks are short.
            limits = MIGRATION_LIMITS.as_settings()
            tx.one(SET_LIMITS, (int(MIGRATION_LIMITS.statement * 1_000), *limits[1:]))
            tx.one("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
            tx.one(SET_LIMITS, limits)
            tx.execute(migrations.CREATE_TABLE)
            for migration in migrations.list_pending(tx):
                tx.run_script(migration.sql)
                migrations.record(tx, migration, now)

        try:
            self._on_connection(partial(run_transaction, EVERY_ACCOUNT, apply, limits=MIGRATION_LIMITS))
        except LockedError as error:
            raise locked_by_another(MIGRATION_LIMITS.lock) from error
        self._known_schema = migrations.newest_known(DIALECT.name)

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
        self._lanes.close()
        self._pool.close()

    def reset_after_fork(self) -> None:
        """Drop the pool and its locks: its sockets belong to the parent, and its threads do not exist in the child."""
        _parent_objects.append((self._pool, self._lanes))
        self._begin()

    def _commit_batch(self, batch: list[Write]) -> None:
        """Commit writes together and reply to them, and then to those that waited for their keys."""
        while batch:
            with self._keys.claim(batch) as later:
                try:
                    self._commit_together(batch)
                except BaseException as error:  # noqa: BLE001 - it is passed to the callers
                    for write in batch:
                        write.outcome, write.error = None, copy.copy(error)
            for write in batch:
                write.answer(write.outcome, write.error)
            batch[:] = later

    def _commit_together(self, batch: list[Write]) -> None:
        """Commit writes together. A write that prevents this is removed, to run in a lane, and the others run again."""
        if batch:
            self._remove_overdue(batch)
        if self._lanes:  # while a lane of a key exists, later writes of the key wait in it
            self._move_to_lanes(batch, [write for write in batch if write.key in self._lanes])
        while batch:
            leaving = self._on_connection(partial(run_batch, batch=batch))
            if leaving is None:
                return
            key = leaving.write.key if leaving.is_locked and leaving.write.key[1] else None
            self._move_to_lanes(batch, [write for write in batch if write is leaving.write or write.key == key])

    def _move_to_lanes(self, batch: list[Write], writes: list[Write]) -> None:
        for write in writes:
            batch.remove(write)
            self._lanes.add(write)

    def _run_lane(self, writes: list[Write]) -> None:
        """Run writes that left their batch. They have the same key, so they probably wait for the same lock."""
        self._remove_overdue(writes)
        try:
            while writes:
                self._run_some(writes)
        except BaseException as error:  # noqa: BLE001 - it is passed to the callers
            for write in writes:
                write.answer(None, copy.copy(error))

    def _run_some(self, writes: list[Write]) -> None:
        """Run the writes in one transaction. Reply to those that are done or have failed, and remove them."""
        deadline = writes[-1].submitted_at + self._limits.lock
        lock_seconds = max(MIN_LOCK_SECONDS, deadline - time.monotonic())
        leaving = self._on_connection(
            partial(run_batch, batch=writes, lock_seconds=lock_seconds, statement_seconds=self._limits.statement)
        )
        if leaving is None:
            for write in writes:
                write.answer(write.outcome, write.error)
            writes.clear()
        elif leaving.is_locked:
            now = time.monotonic()
            for write in [w for w in writes if w is leaving.write or now >= w.submitted_at + self._limits.lock]:
                writes.remove(write)
                write.answer(None, locked_by_another(now - write.submitted_at))
        elif leaving.is_slow and leaving.cause:
            writes.remove(leaving.write)
            leaving.write.answer(None, unavailable(leaving.cause, "nothing was written; try again"))
        else:
            writes.remove(leaving.write)
            self._run_alone(leaving.write)

    def _run_alone(self, write: Write) -> None:
        try:
            outcome = self.write(*write.work)
        except BaseException as error:  # noqa: BLE001 - it is passed to the caller
            write.answer(None, error)
        else:
            write.answer(outcome, None)

    def _remove_overdue(self, writes: list[Write]) -> None:
        """Reply to writes whose callers have stopped waiting, and remove them."""
        now = time.monotonic()
        if now - writes[0].submitted_at <= self._limits.call:
            return
        for write in [write for write in writes if now - write.submitted_at > self._limits.call]:
            writes.remove(write)
            write.answer(None, _overdue(now - write.submitted_at))

    def _on_connection(self, run: Callable[[Connection], T], *, keep_free: int = 0) -> T:
        """Run a transaction on a connection of the pool. If it was not committed for a temporary reason, try again."""
        deadline = time.monotonic() + self._limits.call
        attempt = 0
        while True:
            try:
                return self._attempt(run, deadline, keep_free)
            except NotCommittedError as not_committed:
                attempt += 1
                cause = not_committed.cause
            if isinstance(cause, LOST_STATEMENTS):
                self._prepares = False
            conflicts = isinstance(cause, ROLLBACK_ERRORS)
            if (conflicts and attempt == MAX_ATTEMPTS) or time.monotonic() > deadline:
                raise unavailable(cause, "nothing was written; try again") from cause
            # A different pause in each thread, so that they do not collide again.
            time.sleep(0.01 * min(attempt, 50) * (threading.get_ident() % 97) / 97)

    def _attempt(self, run: Callable[[Connection], T], deadline: float, keep_free: int) -> T:
        pool = self._pool
        connection = pool.get(min(self._wait_seconds, deadline - time.monotonic()), keep_free=keep_free)
        connection.known_schema = self._known_schema
        self._limits = connection.limits  # the URL may set some
        if not self._prepares:
            connection.statements.stop_preparing()
        try:
            return run(connection)
        finally:
            pool.put(connection)


def _is_migrated(tx: Tx) -> bool:
    if tx.one("SELECT to_regclass('schema_migrations')::text") == (None,):
        return False
    return not migrations.list_pending(tx)


def _overdue(seconds: float) -> UnavailableError:
    return UnavailableError(
        f"PostgreSQL: the writes before this one have taken {seconds:.0f} s: nothing was written; try again",
        service="postgres",
        reason="Overdue",
    )


_open_databases = forking.reset_in_child(PostgresDatabase.reset_after_fork)
_parent_objects: list[object] = []
"""Connections and threads of a parent process. They are never freed: that would wait for threads that do not exist."""


def _close_all() -> None:
    """Close all databases at exit, so that submitted writes are finished."""
    for database in list(_open_databases):
        database.close()


atexit.register(_close_all)
