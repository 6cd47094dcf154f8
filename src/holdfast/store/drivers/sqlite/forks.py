"""Closes SQLite databases before a fork and at exit."""

import atexit
import threading
import weakref
from contextlib import AbstractContextManager, suppress
from typing import Protocol

import apsw

from holdfast import forking


class ForkableDatabase(Protocol):
    def disconnected_for_fork(self) -> AbstractContextManager[None]:
        """Close all connections to the file during a fork."""

    def reset_after_fork(self) -> None: ...
    def close(self) -> None: ...


open_databases: "weakref.WeakSet[ForkableDatabase]" = weakref.WeakSet()
_disconnected: list[tuple[ForkableDatabase, AbstractContextManager[None]]] = []
"""During a fork: each database and the context manager that keeps it disconnected."""
_fork_lock = threading.Lock()


def _before_fork() -> None:
    """Close every connection, because SQLite's file locks do not survive a fork."""
    _fork_lock.acquire()
    for database in list(open_databases):
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
    for database in list(open_databases):
        with suppress(apsw.Error):
            database.close()


atexit.register(_close_all)
forking.register(before=_before_fork, in_parent=_after_fork_in_parent, in_child=_after_fork_in_child)
