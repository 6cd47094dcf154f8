"""Read connections to SQLite: as many as are needed, shared by whoever reads next."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

GLANCE = 0.0005
"""How long to sleep, in seconds, before looking again whether others are done."""


class Readers:
    """Read connections, opened when needed, kept while idle, never held across a fork.

    As in `groupcommit`, Ctrl-C may come at any call: giving a connection back can be done again from its beginning.
    """

    def __init__(self, open_one: Callable[[], apsw.Connection], idle: int) -> None:
        self._open_one = open_one
        self._keep = idle
        self._idle: list[apsw.Connection] = []
        self._users: set[object] = set()
        self._paused = False
        self._lock = threading.Lock()

    @contextmanager
    def borrowed(self) -> Iterator[apsw.Connection]:
        user = object()
        connection = None
        try:
            connection = self._enter(user)
            if connection is None:
                connection = self._open_one()
            yield connection
        finally:
            try:
                self._leave(user, connection)
            except BaseException:
                self._leave(user, connection)
                raise

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait until nobody reads, and let nobody begin."""
        try:
            with self._lock:
                self._paused = True
            while self._users:
                time.sleep(GLANCE)
            yield
        finally:
            self._paused = False

    def forget_waiting(self) -> None:
        """In a forked child nobody would release a lock that another thread held."""
        self._lock = threading.Lock()

    def close(self) -> None:
        while self._idle:
            shut(self._idle.pop())

    def _enter(self, user: object) -> apsw.Connection | None:
        while True:
            with self._lock:
                if not self._paused:
                    self._users.add(user)
                    return self._idle.pop() if self._idle else None
            time.sleep(GLANCE)

    def _leave(self, user: object, connection: apsw.Connection | None) -> None:
        with self._lock:
            if user not in self._users:
                return
            self._users.remove(user)
            if connection is None:
                return
            if len(self._idle) < self._keep and not connection.in_transaction:
                self._idle.append(connection)
                return
        shut(connection)


def shut(connection: apsw.Connection) -> None:
    """A disk that fails meanwhile is no reason to keep anything open: what was committed is safe."""
    with suppress(apsw.Error):
        connection.close(True)
