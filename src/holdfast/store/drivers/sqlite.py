"""SQLite through apsw: one writer with group commit, readers beside it, safe across threads, processes and forks."""

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
from holdfast.store.database import EVERY_ACCOUNT, Dialect, Params, Row, Submission, Tx, inside_transaction
from holdfast.store.drivers.group_commit import GroupCommit, Job
from holdfast.store.drivers.sqlite_errors import STORAGE_FAILURES, explained_failures
from holdfast.store.drivers.sqlite_readers import GLANCE, Readers, shut
from holdfast.store.drivers.write_queue import Submitted, WriteQueue
from holdfast.store.index import sqlite_text

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]

DIALECT = Dialect(
    name="sqlite",
    lock_row="",
    insert_text="",
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
    -- Where a sync had failed, what is read from the log may not be on the disk: write it out before adding to it.
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

    def execute(self, sql: str, params: Params = ()) -> None:
        self._execute(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        rows = self._execute(sql, params).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        return self._execute(sql, params).fetchall()


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
        self._readers = Readers(self._open_reader, idle_readers)
        self._closed = self._closing = False
        self._queue: WriteQueue[Work[object]] | None = None
        self._queueing = threading.Lock()
        if file != ":memory:":
            _make_folder(Path(file).parent)
        _open_databases.add(self)

    def write(self, account: str, work: Callable[[Tx], T]) -> T:
        result: T = self.group.run((account, work))
        return result

    def submit(self, submissions: Sequence[Submission]) -> None:
        with self._queueing:
            if self._closing:
                raise self._was_closed()
            if self._queue is None:
                self._queue = WriteQueue(self._commit_in_turn)
            self._queue.put([Submitted((account, work), reply) for account, work, reply in submissions])

    def waiting(self) -> int:
        return self.group.waiting() + (self._queue.waiting() if self._queue else 0)

    def read(self, account: str, work: Callable[[Tx], T]) -> T:
        if self.file == ":memory:":  # has one connection, and so one user at a time
            with self.group.exclusive():
                return _snapshot(self._connected_writer(), account, work)
        with self._readers.borrowed() as connection:
            return _snapshot(connection, account, work)

    def migrate(self, now: int) -> None:
        def apply(tx: Tx) -> None:
            tx.execute(migrations.TABLE)
            for migration in migrations.pending(tx):
                tx.execute(migration.sql)
                migrations.record(tx, migration, now)

        try:
            self._write_alone(apply)
        except apsw.SQLError as error:
            raise FailedPreconditionError(
                f"{self.file} is a database of another program; name another file ({error})"
            ) from error

    def close(self) -> None:
        with self._queueing:
            self._closing = True
        if self._queue is not None:
            self._queue.close()
        with self._quiet():
            self._closed = True
            self._disconnect()
        _open_databases.discard(self)

    @contextmanager
    def ready_to_fork(self) -> Iterator[None]:
        """Hold no connection to a file. What follows on both sides opens connections anew."""
        with self._quiet():
            if self.file != ":memory:":
                self._disconnect()
            yield

    def forget_waiting(self) -> None:
        self.group.forget_waiting()
        self._queueing, self._queue = threading.Lock(), None  # its thread is the parent's
        self._readers.forget_waiting()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Wait until nothing runs, and let nothing begin."""
        with self.group.exclusive(), self._readers.paused():
            yield

    def _write_alone(self, work: Callable[[Tx], object]) -> None:
        """In a transaction of its own: what changes the schema is undone as a whole or not at all."""
        job: Job[Work[object]] = Job((EVERY_ACCOUNT, work))
        self._commit_in_turn([job])
        if job.error is not None:
            raise job.error

    def _commit_in_turn(self, batch: list[Job[Work[object]]]) -> None:
        with self.group.exclusive():
            self._commit(batch)

    def _commit(self, batch: list[Job[Work[object]]]) -> None:
        try:
            with explained_failures, inside_transaction:
                _run(self._connected_writer(), batch)
        except Exception as error:  # noqa: BLE001 - it is handed to the callers
            self._drop_writer()
            for job in batch:
                # Each caller gets an error of its own: a traceback grows as it is raised.
                job.outcome, job.error = None, copy.copy(error)
        except BaseException:
            self._drop_writer()
            raise

    def _connected_writer(self) -> apsw.Connection:
        if self._closed:
            raise self._was_closed()
        if self._writer is None:
            self._writer = self._open(WRITER_PRAGMAS)
        return self._writer

    def _was_closed(self) -> FailedPreconditionError:
        return FailedPreconditionError(f"{self.file} was closed by this client; connect again to use it")

    def _open_reader(self) -> apsw.Connection:
        if self._closed:
            raise self._was_closed()
        with explained_failures:
            return self._open(READER_PRAGMAS)

    def _open(self, pragmas: str) -> apsw.Connection:
        connection = apsw.Connection(self.file, vfs=self._vfs)
        connection.set_busy_handler(_patient(self._busy_timeout_ms / 1_000))
        connection.create_scalar_function("lower", _lower, 1, deterministic=True)  # its own knows only ASCII
        self._configure(connection, pragmas)
        sqlite_text.register(connection)
        return connection

    def _configure(self, connection: apsw.Connection, pragmas: str) -> None:
        deadline = time.monotonic() + self._busy_timeout_ms / 1_000
        while True:
            try:
                # A statement that answers holds back those behind it until it is read.
                connection.execute(pragmas).fetchall()
            except apsw.BusyError:
                # Who turns an empty file to WAL while another does the same is refused at once, without a wait.
                if time.monotonic() > deadline:
                    raise
                time.sleep(GLANCE)
            else:
                return

    def _drop_writer(self) -> None:
        """After a failure the connection's state is not worth reasoning about: the next write opens a new one."""
        connection, self._writer = self._writer, None
        if connection is None:
            return
        if self.file == ":memory:":  # closing it would lose the data
            self._writer = connection
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return
        shut(connection)

    def _disconnect(self) -> None:
        self._readers.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            shut(writer)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"the folder {str(folder)!r} cannot be made: {error}",
            service="sqlite",
            reason=type(error).__name__,
        ) from error


def _patient(seconds: float) -> Callable[[int], bool]:
    """Look every so often whether another process is done.

    SQLite's own timeout looks ever more seldom, and never in the moment between two commits of a busy neighbour.
    """
    deadline = 0.0

    def look_again(times: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if times == 0:
            deadline = now + seconds
        time.sleep(GLANCE)
        return now < deadline

    return look_again


def _run(connection: apsw.Connection, batch: list[Job[Work[object]]]) -> None:
    """Run a batch in one transaction; work that fails is undone without its neighbours.

    Savepoints would let each be undone, and cost as much as an append. Few fail, and those that do mostly find out
    before they have written anything: only when one fails behind that, all are run again with savepoints.
    """
    cursor = connection.cursor()  # one for all statements: to make one costs as much as a statement
    cursor.execute("BEGIN IMMEDIATE")
    for job in batch:
        account, work = job.work
        written = connection.total_changes()
        try:
            job.outcome = work(SqliteTx(cursor, account))
        except STORAGE_FAILURES:
            raise
        except Exception as error:  # noqa: BLE001 - it is handed to the caller whose work it was
            job.error = error
            if len(batch) == 1:
                cursor.execute("ROLLBACK")
                return
            if connection.total_changes() != written:
                cursor.execute("ROLLBACK")
                _run_apart(cursor, batch)
                return
    cursor.execute("COMMIT")


def _run_apart(cursor: apsw.Cursor, batch: list[Job[Work[object]]]) -> None:
    """Run a batch in one transaction with a savepoint for each."""
    execute = cursor.execute
    execute("BEGIN IMMEDIATE")
    for job in batch:
        account, work = job.work
        job.outcome = job.error = None
        execute("SAVEPOINT job")
        try:
            job.outcome = work(SqliteTx(cursor, account))
        except STORAGE_FAILURES:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            job.error = error
            execute("ROLLBACK TO job")
        execute("RELEASE job")
    execute("COMMIT")


def _snapshot(connection: apsw.Connection, account: str, work: Callable[[Tx], T]) -> T:
    with explained_failures, inside_transaction:
        try:
            connection.execute("BEGIN")
            return work(SqliteTx(connection.cursor(), account))
        finally:
            if connection.in_transaction:  # a failed disk ends it by itself
                connection.execute("ROLLBACK")


def _lower(*text: Any) -> str:
    return str(text[0]).lower()


_open_databases: "weakref.WeakSet[SqliteDatabase]" = weakref.WeakSet()
_forking: list[tuple[SqliteDatabase, AbstractContextManager[None]]] = []
_one_fork_at_a_time = threading.Lock()


def _before_fork() -> None:
    """SQLite's locks do not survive a fork: close every connection first; both sides open new ones when needed."""
    _one_fork_at_a_time.acquire()
    for database in list(_open_databases):
        ready = database.ready_to_fork()
        ready.__enter__()
        _forking.append((database, ready))


def _after_fork_in_parent() -> None:
    while _forking:
        _, ready = _forking.pop()
        ready.__exit__(None, None, None)
    _one_fork_at_a_time.release()


def _after_fork_in_child() -> None:
    for database, _ in _forking:
        database.forget_waiting()
    _after_fork_in_parent()


def _close_all() -> None:
    for database in list(_open_databases):
        with suppress(apsw.Error):
            database.close()


atexit.register(_close_all)
forking.register(before=_before_fork, in_parent=_after_fork_in_parent, in_child=_after_fork_in_child)
