"""The file of an SQLite database: readable by its owner only, and watched while it is open.

A process that has a file open can write to it after it was moved, replaced or deleted. SQLite reports no error then,
and the next process that opens the path does not find what was written.
"""

import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast import forking
from holdfast.errors import UnavailableError

Identity = tuple[int, int]
"""The device and the inode of a file."""

NOTHING_DONE = "nothing was read or written"
UNKNOWN_OUTCOME = "what was written went to the file that was there before, so the outcome of this call is unknown"


class _OpenFile:
    """A file at a path, and whether it is still there.

    On Linux a handle of the file has its present path. `stat` could be used instead, but after a `stat` the system
    stores a new modification time at the next write, which makes each commit a third slower. If the path has symbolic
    links, only `stat` can be used.
    """

    def __init__(self, path: str, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._handle = -1
        self._link: int | None = None
        """A handle of the symbolic link `/proc/self/fd/<handle>`. Reading it by its name takes twice as long."""
        self._close_link: Callable[[], object] = lambda: None
        if not sys.platform.startswith("linux"):
            return
        with suppress(OSError):
            # Closing such a handle does not end SQLite's locks, as closing a file would.
            self._handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._handle)
            self.open_link()
            _open_files.add(self)

    def open_link(self) -> None:
        """Open the link of this process. The one that a forked child inherits tells about its parent's handle."""
        self._close_link()
        self._link = None
        with suppress(OSError):
            link = os.open(f"/proc/self/fd/{self._handle}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._close_link = weakref.finalize(self, os.close, link)
            if os.readlink("", dir_fd=link) == self.path and _find_identity(self.path) == self.identity:
                self._link = link

    def is_in_place(self) -> bool:
        try:
            if self._link is not None and os.readlink("", dir_fd=self._link) == self.path:
                return True
        except OSError:
            pass
        return _find_identity(self.path) == self.identity


_open_files = forking.reset_in_child(_OpenFile.open_link)


class DatabaseFile:
    """The path of a database, and the file at this path that the process uses.

    The first open decides which file that is. From then on, no other file at the path is used or created.
    """

    def __init__(self, name: str) -> None:
        self.path = os.path.abspath(name)  # noqa: PTH100 - the same file after a change of the working directory
        self.is_displaced = False
        """Whether the last check failed."""
        self._file: _OpenFile | None = None
        self._wal: _OpenFile | None = None
        self._is_lost = False

    def prepare(self) -> None:
        """Make the file ready to be opened: create it if this process has not used it yet, else check it."""
        if self._file is not None:
            self.check(NOTHING_DONE)
            return
        with _creation_lock:
            _create(self.path)
        identity = _find_identity(self.path)
        if identity is not None:
            self._file = _OpenFile(self.path, identity)

    def watch_wal(self, path: str) -> None:
        """Watch the write-ahead log of an open connection, too."""
        identity = _find_identity(path)
        self._wal = None if identity is None else _OpenFile(path, identity)

    def unwatch_wal(self) -> None:
        """Stop watching it: SQLite deletes it with the last connection."""
        self._wal = None

    def forget(self) -> None:
        """All connections are closed. A displaced file is given up, because another file may get its inode."""
        self._wal = None
        self._is_lost = self.is_displaced

    def check_for_read(self) -> None:
        """Raise an error unless the path names the file that this process uses."""
        if self.is_displaced:
            self.check(NOTHING_DONE)
        elif self._file is not None and not self._file.is_in_place():
            self._raise(self.path, NOTHING_DONE)

    def check(self, outcome: str) -> None:
        """Raise an error that states the `outcome`, unless the file and its write-ahead log are in their place."""
        if self._is_lost or self._file is None or not self._file.is_in_place():
            self._raise(self.path, outcome)
        while (wal := self._wal) is not None and not wal.is_in_place():
            if wal is self._wal:  # else another thread has just closed or opened it
                self._raise(wal.path, outcome)
        self.is_displaced = False

    def is_in_place(self) -> bool:
        try:
            self.check(NOTHING_DONE)
        except UnavailableError:
            return False
        return True

    def _raise(self, path: str, outcome: str) -> None:
        self.is_displaced = True
        raise UnavailableError(
            f"{path} was moved, replaced or deleted while this process used it: {outcome}; "
            "put the file back, or restart the process to use what is at the path now",
            service="sqlite",
            reason="FileDisplaced",
        )


def create_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, ValueError) as error:
        raise _cannot_create("folder", str(folder), error) from error


_creation_lock = forking.Lock()
"""Held while a file is created. Closing it would end the locks of a connection that another thread opens meanwhile."""


def _create(path: str) -> None:
    """Create an empty file for its owner only. SQLite gives its write-ahead log the same mode."""
    try:
        os.close(os.open(os.path.realpath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass  # it keeps its mode
    except (OSError, ValueError) as error:
        raise _cannot_create("file", path, error) from error


def _cannot_create(kind: str, path: str, error: Exception) -> UnavailableError:
    return UnavailableError(
        f"the {kind} {path!r} cannot be created: {error}", service="sqlite", reason=type(error).__name__
    )


def _find_identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - three times as fast as Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino
