"""Copies of a database file that is in use, and their restoration.

A copy is one snapshot: it is read in steps inside one read transaction. It is written under a temporary name, synced,
and renamed when it is complete and checked.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from holdfast.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.store.drivers.sqlite.errors import STORAGE_ERRORS, translated_errors

STEP_PAGES = 256
"""How many pages are copied at a time: 1 MB."""
LOG_SUFFIXES = ("-wal", "-shm", "-journal")
"""Files that SQLite keeps beside a database file."""
CopyProgress = Callable[[int, int], None]
"""Called with the number of copied pages and of all pages."""


def copy_database(source: apsw.Connection, target: Path, progress: CopyProgress) -> None:
    """Copy a database into a new file and sync it. Other connections may write meanwhile."""
    _create_private_file(target)
    with translated_errors:
        copy = apsw.Connection(str(target))
        try:
            # The copy is synced once, at the end. It is not used before.
            copy.execute("PRAGMA synchronous = OFF").fetchall()
            with _snapshot(source), copy.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(STEP_PAGES)
                    progress(backup.page_count - backup.remaining, backup.page_count)
        finally:
            copy.close(True)
    sync(target)


@contextmanager
def _snapshot(source: apsw.Connection) -> Iterator[None]:
    """Keep one read transaction open: without it, a write during the copy would start the copy again."""
    if source.in_transaction:
        yield
        return
    source.execute("BEGIN")
    try:
        source.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()  # the snapshot begins with the first read
        yield
    finally:
        source.execute("ROLLBACK")


def open_source(file: Path) -> apsw.Connection:
    """Open a database file to copy it. Its write-ahead log, if there is one beside it, is part of it."""
    if not file.is_file():
        raise FailedPreconditionError(f"{file} does not exist or is not a file; give the file of a backup")
    with translated_errors:
        source = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            source.execute("PRAGMA schema_version").fetchall()
        except BaseException:
            source.close(True)
            raise
    return source


def require_new_target(target: Path, database_file: Path | None, *, overwrite: bool) -> None:
    """Raise an error if a backup must not be written to `target`."""
    if target.is_dir():
        raise InvalidArgumentError("target", f"{target} is a folder; give the name of a file in it")
    if not target.parent.is_dir():
        raise InvalidArgumentError("target", f"the folder {target.parent} does not exist; create it first")
    if database_file is not None and str(target) in {f"{database_file}{suffix}" for suffix in LOG_SUFFIXES}:
        raise InvalidArgumentError("target", f"{target} belongs to the database itself; give another file")
    if not target.exists():
        return
    if not target.is_file():
        raise InvalidArgumentError("target", f"{target} is not a file; give the name of a file")
    if database_file is not None and database_file.exists() and target.samefile(database_file):
        raise InvalidArgumentError("target", f"{target} is the database itself; give another file")
    if not overwrite:
        raise AlreadyExistsError(f"{target} exists; give another name, or overwrite it", resource=str(target))


def temporary_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.partial")


def publish(temporary: Path, target: Path) -> None:
    """Give a complete copy its name."""
    temporary.replace(target)
    _sync_folder(target.parent)


def discard(temporary: Path) -> None:
    for suffix in ("", *LOG_SUFFIXES):
        with suppress(OSError):
            Path(f"{temporary}{suffix}").unlink()


@contextmanager
def locked_for_replacement(file: Path) -> Iterator[None]:
    """Hold a database file alone while it is replaced. Raises an error if another process or client has it open.

    A connection in WAL mode holds a lock for as long as it is open, and leaving the mode needs to be alone.
    """
    connection = None
    try:
        connection = apsw.Connection(str(file))
        connection.set_busy_timeout(0)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.execute("BEGIN EXCLUSIVE")
    except (apsw.BusyError, apsw.LockedError) as error:
        if connection is not None:
            connection.close(True)
        raise FailedPreconditionError(
            f"{file} is in use by another process or client; stop it, then restore again"
        ) from error
    except STORAGE_ERRORS:
        pass  # a file that is so damaged that it cannot be locked is not in use either
    try:
        yield
    finally:
        if connection is not None:
            with suppress(apsw.Error):
                connection.close(True)


def move_aside(file: Path, suffix: str) -> Path:
    """Rename a database file and the files beside it. Return the new name."""
    aside = file.with_name(f"{file.name}.{suffix}")
    number = 1
    while aside.exists():
        aside = file.with_name(f"{file.name}.{suffix}.{number}")
        number += 1
    for each in ("", *LOG_SUFFIXES):
        with suppress(FileNotFoundError):
            Path(f"{file}{each}").replace(f"{aside}{each}")
    return aside


def sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with suppress(PermissionError):  # Windows cannot open a folder
        sync(folder)


def _create_private_file(file: Path) -> None:
    """Create the file so that no other user can read it: it has the messages of all accounts."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise UnavailableError(
            f"the file {file} cannot be created: {error.strerror}", service="backup", reason=type(error).__name__
        ) from error
