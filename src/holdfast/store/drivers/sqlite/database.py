"""The SQLite driver, with apsw: one writer with group commit and a pool of readers.

It is safe across threads, processes and forks.
"""

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast.errors import DataDamagedError, FailedPreconditionError, UnavailableError
from holdfast.store import migrations
from holdfast.store.database import (
    EVERY_ACCOUNT,
    Submission,
    Tx,
    is_cancelled,
    transaction_scope,
)
from holdfast.store.drivers.group_commit import GroupCommit, PendingWrite
from holdfast.store.drivers.sqlite.backup import CopyProgress, copy_database
from holdfast.store.drivers.sqlite.clock import BootClock, SqliteClock, system_boot_clock
from holdfast.store.drivers.sqlite.errors import STORAGE_ERRORS, translated_errors, unavailable
from holdfast.store.drivers.sqlite.file import NOTHING_DONE, UNKNOWN_OUTCOME, DatabaseFile, create_folder
from holdfast.store.drivers.sqlite.forks import open_databases
from holdfast.store.drivers.sqlite.readers import POLL_SECONDS, ReaderPool, busy_handler, close_connection
from holdfast.store.drivers.sqlite.transactions import DIALECT, SchemaCheck, Work, run_batch, run_read
from holdfast.store.drivers.write_queue import SubmittedWrite, WriteQueue
from holdfast.store.index import sqlite_text

T = TypeVar("T")

WRITER_PRAGMAS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16000;
    PRAGMA journal_size_limit = 67108864;
    -- After a failed sync, pages read from the log may not be on the disk: write them out before adding to the log.
    PRAGMA wal_checkpoint(PASSIVE);
"""
READER_PRAGMAS = """
    PRAGMA query_only = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA temp_store = MEMORY;
"""
CANCELLATION_STEPS = 10_000
"""How many instructions of SQLite's virtual machine a read runs before it looks whether it is cancelled."""


class SqliteDatabase:
    """One SQLite file. Any number of threads and processes may use it at the same time."""

    def __init__(
        self,
        file: str,
        *,
        busy_timeout_ms: int = 30_000,
        idle_readers: int = 8,
        vfs: str | None = None,
        boot_clock: BootClock | None = None,
    ) -> None:
        self.file = file
        self._busy_timeout_ms = busy_timeout_ms
        self._vfs = vfs
        self._clock = SqliteClock(boot_clock or system_boot_clock())
        self._schema_check = SchemaCheck()
        self.group: GroupCommit[Work[object]] = GroupCommit(self._commit)
        self._writer: apsw.Connection | None = None
        self._readers = ReaderPool(self._open_reader, idle_readers)
        self._closed = self._closing = False
        self._queue: WriteQueue[Work[object]] | None = None
        self._queue_lock = threading.Lock()
        self._database_file: DatabaseFile | None = None if file == ":memory:" else DatabaseFile(file)
        if self._database_file is not None:
            create_folder(Path(self._database_file.path).parent)
        open_databases.add(self)

    def write(self, account: str, transaction: Callable[[Tx], T]) -> T:
        result: T = self.group.run((account, transaction))
        return result

    def submit(self, submissions: Sequence[Submission]) -> None:
        with self._queue_lock:
            if self._closing:
                raise self._closed_error()
            if self._queue is None:
                self._queue = WriteQueue(self._commit_exclusively)
            self._queue.put(
                [SubmittedWrite((account, transaction), reply) for account, transaction, reply, _ in submissions]
            )

    def count_waiting_writes(self) -> int:
        return self.group.count_waiting() + (self._queue.count_waiting() if self._queue else 0)

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T:
        if self._database_file is None:  # a database in memory has only one connection
            with self.group.exclusive():
                return run_read(self._get_writer(), account, transaction)
        with self._readers.connection() as connection:
            self._database_file.check_for_read()
            return run_read(connection, account, transaction)

    def migrate(self, now: int) -> None:
        newest = migrations.newest_known(DIALECT.name)

        def apply(tx: Tx) -> bool:
            tx.execute(migrations.CREATE_TABLE)
            for migration in migrations.list_pending(tx):
                tx.run_script(migration.sql)
                migrations.record(tx, migration, now)
            if tx.one("PRAGMA user_version") != (newest,):  # a database that was dumped and loaded has none
                tx.execute(f"PRAGMA user_version = {newest}")
            return self._clock.start(tx, now)

        try:
            is_time_outdated = self._write_exclusively(apply)
        except DataDamagedError as error:
            if not isinstance(error.__cause__, apsw.SQLError):
                raise
            raise FailedPreconditionError(
                f"{self.file} is a database of another program; name another file ({error.__cause__})"
            ) from error
        self._schema_check.newest_known = newest
        if is_time_outdated:
            with suppress(UnavailableError):  # with a full disk, the database can be read
                self.store_time(now)

    def store_time(self, now: int) -> None:
        def store(tx: Tx) -> None:
            self._clock.start(tx, now)  # another process may have continued the time after a restart
            self._clock.store(tx, now)

        self.write(EVERY_ACCOUNT, store)

    def copy_to(self, target: Path, progress: CopyProgress) -> None:
        if self.file == ":memory:":
            with self.group.exclusive():
                copy_database(self._get_writer(), target, progress)
            return
        if self._database_file is not None:
            self._database_file.check_for_read()
        with self._readers.connection() as connection:
            copy_database(connection, target, progress)

    def close(self) -> None:
        with self._queue_lock:
            self._closing = True
        if self._queue is not None:
            self._queue.close()
        with self._idle():
            self._closed = True
            self._disconnect()
        open_databases.discard(self)

    @contextmanager
    def disconnected_for_fork(self) -> Iterator[None]:
        """Close all connections to the file during a fork. Parent and child open new ones when needed."""
        with self._idle():
            if self._database_file is not None:
                self._disconnect()
            yield

    def reset_after_fork(self) -> None:
        self.group.reset_after_fork()
        self._queue_lock, self._queue = threading.Lock(), None  # its thread exists only in the parent
        self._readers.reset_after_fork()

    @contextmanager
    def _idle(self) -> Iterator[None]:
        """Wait until no transaction runs, and let none begin."""
        with self.group.exclusive(), self._readers.paused():
            yield

    def _write_exclusively(self, transaction: Callable[[Tx], T]) -> T:
        """Run a transaction alone in its batch, so that a failed schema change is rolled back as a whole."""
        write: PendingWrite[Work[object]] = PendingWrite((EVERY_ACCOUNT, transaction))
        self._commit_exclusively([write])
        if write.error is not None:
            raise write.error
        outcome: T = write.outcome
        return outcome

    def _commit_exclusively(self, batch: Sequence[PendingWrite[Work[object]]]) -> None:
        with self.group.exclusive():
            self._commit(batch)

    def _commit(self, batch: Sequence[PendingWrite[Work[object]]]) -> None:
        try:
            with transaction_scope:
                run_batch(self._get_writer(), batch, self._schema_check)
            if self._database_file is not None:
                self._database_file.check(UNKNOWN_OUTCOME)
        except Exception as error:  # noqa: BLE001 - it is passed to the callers
            self._drop_writer()
            reported = unavailable(error) if isinstance(error, STORAGE_ERRORS) else error
            for write in batch:
                # Each caller gets its own copy: raising an error extends its traceback.
                write.outcome, write.error = None, copy.copy(reported)
        except BaseException:
            self._drop_writer()
            raise

    def _get_writer(self) -> apsw.Connection:
        """The write connection, opened if needed."""
        if self._closed:
            raise self._closed_error()
        if self._writer is not None and self._database_file is not None and self._database_file.is_displaced:
            self._database_file.check(NOTHING_DONE)
            self._drop_writer()  # the file is back
        if self._writer is None:
            self._writer = self._open(WRITER_PRAGMAS)
            self._schema_check.checked_changes = None
            if self._database_file is not None:
                self._database_file.watch_wal(self._writer.filename_wal)
        return self._writer

    def _closed_error(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"{self.file} was closed by this client; connect again to use it")

    def _open_reader(self) -> apsw.Connection:
        if self._closed:
            raise self._closed_error()
        if self._database_file is not None and self._writer is not None:
            # Without its write-ahead log in place, a new connection would create another one.
            self._database_file.check(NOTHING_DONE)
        with translated_errors:
            connection = self._open(READER_PRAGMAS)
            connection.set_progress_handler(is_cancelled, CANCELLATION_STEPS)
            return connection

    def _open(self, pragmas: str) -> apsw.Connection:
        if self._database_file is None:
            connection = apsw.Connection(self.file)
        else:
            self._database_file.prepare()
            connection = apsw.Connection(self._database_file.path, apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs)
        try:
            # The values of parameters do not change plans. Otherwise a statement with a LIMIT or an outer join would be
            # prepared again each time it runs.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.set_busy_handler(busy_handler(self._busy_timeout_ms / 1_000))
            # SQLite's own LOWER handles only ASCII.
            connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            connection.create_scalar_function("holdfast_now", self._clock.now, 0)
            self._configure(connection, pragmas)
            sqlite_text.register(connection)
            if self._database_file is not None:
                self._database_file.check(NOTHING_DONE)
        except BaseException:
            close_connection(connection)
            raise
        return connection

    def _configure(self, connection: apsw.Connection, pragmas: str) -> None:
        deadline = time.monotonic() + self._busy_timeout_ms / 1_000
        while True:
            try:
                # A PRAGMA that returns rows delays the following statements until its rows are fetched.
                connection.execute(pragmas).fetchall()
            except apsw.BusyError:
                # Two processes that switch an empty file to WAL at once get this error without a call of the
                # busy handler.
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
            else:
                return

    def _drop_writer(self) -> None:
        """Close the write connection after a failure, when its state is uncertain. The next write opens a new one."""
        connection = self._writer
        if connection is None:
            return
        if self._database_file is None:  # closing the connection would lose the data
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return
        if not self._database_file.is_in_place():  # while it is open, no other file can get its inode
            self._save_displaced(connection)
            return
        self._database_file.unwatch_wal()
        self._writer = None
        close_connection(connection)

    def _save_displaced(self, connection: apsw.Connection) -> None:
        """Copy the write-ahead log into the database file. If only the log was displaced, nothing is lost then."""
        with suppress(apsw.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            # FULL waits for readers. A part of the log in the file would be worse than nothing.
            connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()

    def _disconnect(self) -> None:
        if self._database_file is not None:
            self._database_file.forget()
        self._readers.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            close_connection(writer)


def _lower(*text: Any) -> str:
    return str(text[0]).lower()
