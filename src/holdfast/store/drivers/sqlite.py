"""The SQLite driver, with apsw: one writer with group commit and a pool of readers.

It is safe across threads, processes and forks.
"""

import atexit
import copy
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from holdfast import forking
from holdfast.errors import FailedPreconditionError, UnavailableError
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Dialect, Params, Row, Statement, Submission, Tx, transaction_scope
from holdfast.store.drivers.group_commit import GroupCommit, PendingWrite
from holdfast.store.drivers.sqlite_errors import STORAGE_ERRORS, translated_errors
from holdfast.store.drivers.sqlite_readers import POLL_SECONDS, ReaderPool, close_connection
from holdfast.store.drivers.write_queue import SubmittedWrite, WriteQueue
from holdfast.store.index import sqlite_text

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]

DIALECT = Dialect(
    name="sqlite",
    lock_row="",
    has_lateral_joins=False,
    index_text=None,
    delete_text=sqlite_text.DELETE,
    delete_all_text=sqlite_text.DELETE_ALL,
    match_text=sqlite_text.match,
)

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


class SqliteTx:
    __slots__ = ("_execute", "account")
    dialect = DIALECT

    def __init__(self, cursor: apsw.Cursor, account: str) -> None:
        self._execute = cursor.execute
        self.account = account

    def limit_to(self, scope: str) -> None:
        pass

    def execute(self, sql: str, params: Params = ()) -> None:
        self._execute(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        rows = self._execute(sql, params).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self._execute(sql, params).fetchall()

    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return [self.all(sql, params) for sql, params in statements]

    def all_within(self, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:  # noqa: ARG002
        rows: list[Row] = []
        total = 0
        for row in self._execute(sql, params):
            total += row[-1]
            if rows and total > max_bytes:
                return rows, True
            rows.append(row)
        return rows, False

    def run_script(self, sql: str) -> None:
        self._execute(sql)


class SqliteDatabase:
    """One SQLite file. Any number of threads and processes may use it at the same time."""

    def __init__(
        self, file: str, *, busy_timeout_ms: int = 30_000, idle_readers: int = 8, vfs: str | None = None
    ) -> None:
        self.file = file
        self._busy_timeout_ms = busy_timeout_ms
        self._vfs = vfs
        self.group: GroupCommit[Work[object]] = GroupCommit(self._commit)
        self._writer: apsw.Connection | None = None
        self._readers = ReaderPool(self._open_reader, idle_readers)
        self._closed = self._closing = False
        self._queue: WriteQueue[Work[object]] | None = None
        self._queue_lock = threading.Lock()
        if file != ":memory:":
            _create_folder(Path(file).parent)
        _open_databases.add(self)

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
                [SubmittedWrite((account, transaction), reply) for account, transaction, reply in submissions]
            )

    def count_waiting_writes(self) -> int:
        return self.group.count_waiting() + (self._queue.count_waiting() if self._queue else 0)

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T:
        if self.file == ":memory:":  # it has only one connection
            with self.group.exclusive():
                return _run_read(self._get_writer(), account, transaction)
        with self._readers.connection() as connection:
            return _run_read(connection, account, transaction)

    def migrate(self, now: int) -> None:
        def apply(tx: Tx) -> None:
            tx.execute(migrations.CREATE_TABLE)
            for migration in migrations.list_pending(tx):
                tx.run_script(migration.sql)
                migrations.record(tx, migration, now)

        try:
            self._write_exclusively(apply)
        except apsw.SQLError as error:
            raise FailedPreconditionError(
                f"{self.file} is a database of another program; name another file ({error})"
            ) from error

    def close(self) -> None:
        with self._queue_lock:
            self._closing = True
        if self._queue is not None:
            self._queue.close()
        with self._idle():
            self._closed = True
            self._disconnect()
        _open_databases.discard(self)

    @contextmanager
    def disconnected_for_fork(self) -> Iterator[None]:
        """Close all connections to the file during a fork. Parent and child open new ones when needed."""
        with self._idle():
            if self.file != ":memory:":
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

    def _write_exclusively(self, transaction: Callable[[Tx], object]) -> None:
        """Run a transaction alone in its batch, so that a failed schema change is rolled back as a whole."""
        write: PendingWrite[Work[object]] = PendingWrite((EVERY_ACCOUNT, transaction))
        self._commit_exclusively([write])
        if write.error is not None:
            raise write.error

    def _commit_exclusively(self, batch: Sequence[PendingWrite[Work[object]]]) -> None:
        with self.group.exclusive():
            self._commit(batch)

    def _commit(self, batch: Sequence[PendingWrite[Work[object]]]) -> None:
        try:
            with translated_errors, transaction_scope:
                _run_batch(self._get_writer(), batch)
        except Exception as error:  # noqa: BLE001 - it is passed to the callers
            self._drop_writer()
            for write in batch:
                # Each caller gets its own copy: raising an error extends its traceback.
                write.outcome, write.error = None, copy.copy(error)
        except BaseException:
            self._drop_writer()
            raise

    def _get_writer(self) -> apsw.Connection:
        """The write connection, opened if needed."""
        if self._closed:
            raise self._closed_error()
        if self._writer is None:
            self._writer = self._open(WRITER_PRAGMAS)
        return self._writer

    def _closed_error(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"{self.file} was closed by this client; connect again to use it")

    def _open_reader(self) -> apsw.Connection:
        if self._closed:
            raise self._closed_error()
        with translated_errors:
            return self._open(READER_PRAGMAS)

    def _open(self, pragmas: str) -> apsw.Connection:
        connection = apsw.Connection(self.file, vfs=self._vfs)
        connection.set_busy_handler(_busy_handler(self._busy_timeout_ms / 1_000))
        # SQLite's own LOWER handles only ASCII.
        connection.create_scalar_function("lower", _lower, 1, deterministic=True)
        self._configure(connection, pragmas)
        sqlite_text.register(connection)
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
        connection, self._writer = self._writer, None
        if connection is None:
            return
        if self.file == ":memory:":  # closing the connection would lose the data
            self._writer = connection
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return
        close_connection(connection)

    def _disconnect(self) -> None:
        self._readers.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            close_connection(writer)


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"the folder {str(folder)!r} cannot be created: {error}",
            service="sqlite",
            reason=type(error).__name__,
        ) from error


def _busy_handler(timeout: float) -> Callable[[int], bool]:
    """A busy handler that retries at a constant interval until the timeout.

    SQLite's own busy timeout waits longer after each attempt, so that it misses the short time between two commits
    of a busy process.
    """
    deadline = 0.0

    def wait_and_retry(previous_calls: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if previous_calls == 0:
            deadline = now + timeout
        time.sleep(POLL_SECONDS)
        return now < deadline

    return wait_and_retry


def _run_batch(connection: apsw.Connection, batch: Sequence[PendingWrite[Work[object]]]) -> None:
    """Run a batch in one transaction. A write that fails is rolled back without the others.

    A savepoint costs as much as an append, and most writes that fail do so before they change a row. Therefore writes
    run without savepoints first. Only if one fails after it has changed rows, the batch runs again with savepoints.
    """
    cursor = connection.cursor()  # shared by all statements: creating a cursor costs as much as a statement
    cursor.execute("BEGIN IMMEDIATE")
    for write in batch:
        account, transaction = write.work
        changes_before = connection.total_changes()
        try:
            write.outcome = transaction(SqliteTx(cursor, account))
        except STORAGE_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - it is passed to the caller of this write
            write.error = error
            if len(batch) == 1:
                cursor.execute("ROLLBACK")
                return
            if connection.total_changes() != changes_before:
                cursor.execute("ROLLBACK")
                _run_batch_with_savepoints(cursor, batch)
                return
    cursor.execute("COMMIT")


def _run_batch_with_savepoints(cursor: apsw.Cursor, batch: Sequence[PendingWrite[Work[object]]]) -> None:
    """Run a batch in one transaction with a savepoint for each write."""
    execute = cursor.execute
    execute("BEGIN IMMEDIATE")
    for write in batch:
        account, transaction = write.work
        write.outcome = write.error = None
        execute("SAVEPOINT write")
        try:
            write.outcome = transaction(SqliteTx(cursor, account))
        except STORAGE_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            write.error = error
            execute("ROLLBACK TO write")
        execute("RELEASE write")
    execute("COMMIT")


def _run_read(connection: apsw.Connection, account: str, transaction: Callable[[Tx], T]) -> T:
    with translated_errors, transaction_scope:
        try:
            connection.execute("BEGIN")
            return transaction(SqliteTx(connection.cursor(), account))
        finally:
            if connection.in_transaction:  # an I/O error rolls it back automatically
                connection.execute("ROLLBACK")


def _lower(*text: Any) -> str:
    return str(text[0]).lower()


_open_databases: "weakref.WeakSet[SqliteDatabase]" = weakref.WeakSet()
_disconnected: list[tuple[SqliteDatabase, AbstractContextManager[None]]] = []
"""During a fork: each database and the context manager that keeps it disconnected."""
_fork_lock = threading.Lock()


def _before_fork() -> None:
    """Close every connection, because SQLite's file locks do not survive a fork."""
    _fork_lock.acquire()
    for database in list(_open_databases):
        disconnection = database.disconnected_for_fork()
        disconnection.__enter__()
        _disconnected.append((database, disconnection))


def _after_fork_in_parent() -> None:
    while _disconnected:
        _, disconnection = _disconnected.pop()
        disconnection.__exit__(None, None, None)
    _fork_lock.release()


def _after_fork_in_child() -> None:
    for database, _ in _disconnected:
        database.reset_after_fork()
    _after_fork_in_parent()


def _close_all() -> None:
    for database in list(_open_databases):
        with suppress(apsw.Error):
            database.close()


atexit.register(_close_all)
forking.register(before=_before_fork, in_parent=_after_fork_in_parent, in_child=_after_fork_in_child)
