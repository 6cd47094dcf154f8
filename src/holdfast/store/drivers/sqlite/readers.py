"""A pool of read connections to SQLite."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

POLL_SECONDS = 0.0005
"""How long to sleep before checking again whether other threads or processes have finished."""


class ReaderPool:
    """Read connections, opened on demand and reused. None stays open across a fork.

    As in `group_commit`, KeyboardInterrupt may occur at any call. Therefore releasing a connection can be repeated
    from its beginning.
    """

    def __init__(self, open_connection: Callable[[], apsw.Connection], max_idle: int) -> None:
        self._open_connection = open_connection
        self._max_idle = max_idle
        self._idle: list[apsw.Connection] = []
        self._users: set[object] = set()
        self._paused = False
        self._lock = threading.Lock()

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        user = object()
        connection = None
        try:
            connection = self._acquire(user)
            if connection is None:
                connection = self._open_connection()
            yield connection
        finally:
            try:
                self._release(user, connection)
            except BaseException:
                self._release(user, connection)
                raise

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait until no connection is in use, and let no thread acquire one."""
        try:
            with self._lock:
                self._paused = True
            while self._users:
                time.sleep(POLL_SECONDS)
            yield
        finally:
            self._paused = False

    def reset_after_fork(self) -> None:
        """Replace the lock. In a forked child, no thread would release a lock that another thread held."""
        self._lock = threading.Lock()

    def close(self) -> None:
        while self._idle:
            close_connection(self._idle.pop())

    def _acquire(self, user: object) -> apsw.Connection | None:
        """Register a user and return an idle connection, or None if a new one must be opened."""
        while True:
            with self._lock:
                if not self._paused:
                    self._users.add(user)
                    return self._idle.pop() if self._idle else None
            time.sleep(POLL_SECONDS)

    def _release(self, user: object, connection: apsw.Connection | None) -> None:
        with self._lock:
            if user not in self._users:
                return
            self._users.remove(user)
            if connection is None:
                return
            if len(self._idle) < self._max_idle and not connection.in_transaction:
                self._idle.append(connection)
                return
        close_connection(connection)


def busy_handler(timeout: float) -> Callable[[int], bool]:
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


def close_connection(connection: apsw.Connection) -> None:
    """Close a connection and ignore errors of the disk: committed data is safe already."""
    with suppress(apsw.Error):
        connection.close(True)
