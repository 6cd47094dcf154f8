"""A pool of PostgreSQL connections. A caller that needs a connection opens it in its own thread."""

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import FailedPreconditionError, UnavailableError
from holdfast.store.drivers.postgres.limits import TimeLimits
from holdfast.store.drivers.postgres.transactions import Connection, unavailable

MAX_IDLE_SECONDS = 600.0
"""A connection that was not used for this long is closed, unless it is the only one."""
MAX_AGE_SECONDS = 3_600.0
"""An older connection is replaced. After a failover of the database, this distributes the connections anew."""
CONNECT_SECONDS = 5
"""How long to wait for one host to accept a connection. After that the next host is tried."""
MIN_PAUSE_SECONDS = 0.02
MAX_PAUSE_SECONDS = 0.5
"""The longest pause between two attempts to connect."""

READ_SYNCHRONOUS_COMMIT = "SELECT current_setting('synchronous_commit')"
READ_OWN_LIMITS = (
    "SELECT name, setting::bigint FROM pg_settings WHERE source = 'client' AND name IN"
    " ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')"
)
READ_NO_LIMITS = "SELECT 1 WHERE FALSE"
"""Used instead of `READ_OWN_LIMITS` if the user has set no limits: it returns no rows, and costs less."""


def connection_options(url: str) -> dict[str, str | int]:
    """Options for each connection, except for those that the URL sets.

    A peer that vanished is noticed after about half a minute, also while nothing is sent.
    """
    given = conninfo_to_dict(url)
    options: dict[str, str | int] = {
        "application_name": "holdfast",
        "connect_timeout": CONNECT_SECONDS,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
    }
    if "," in str(given.get("host") or given.get("hostaddr") or ""):
        options["target_session_attrs"] = "primary"  # of several hosts, only one can be written to
    if "PGCONNECT_TIMEOUT" in os.environ:
        del options["connect_timeout"]
    return {name: value for name, value in options.items() if name not in given}


def connector(url: str, limits: TimeLimits) -> Callable[[], Connection]:
    """Return a function that opens a connection with these limits, except for those that the URL sets."""
    options: dict[str, Any] = connection_options(url)
    has_own_limits = bool(conninfo_to_dict(url).get("options") or os.environ.get("PGOPTIONS"))

    def connect() -> Connection:
        connection = Connection.connect(url, autocommit=True, client_encoding="UTF8", **options)
        try:
            synchronous_commit, own_limits = connection.statements.run_in_own_transaction(
                [(READ_SYNCHRONOUS_COMMIT, ()), (READ_OWN_LIMITS if has_own_limits else READ_NO_LIMITS, ())],
                CONNECT_SECONDS,
            )
        except BaseException:
            connection.close()
            raise
        connection.turns_on_synchronous_commit = synchronous_commit[0] == ("off",)
        connection.limits = limits.replaced_by(dict(own_limits))
        return connection

    return connect


class ConnectionPool:
    """Up to `max_size` connections. `open_connection` opens one, or raises psycopg.Error."""

    def __init__(self, open_connection: Callable[[], Connection], max_size: int) -> None:
        self._open_connection = open_connection
        self._max_size = max_size
        self._idle: list[tuple[Connection, float]] = []
        """Idle connections and when they were last used. The last one is used next."""
        self._in_use = 0
        self._closed = False
        self._lock = threading.Lock()
        self._place_freed = threading.Condition(self._lock)
        """Wakes callers that may take any place."""
        self._unreserved_place_freed = threading.Condition(self._lock)
        """Wakes callers that must keep some places free."""

    def get(self, seconds: float, *, keep_free: int = 0) -> Connection:
        """Take a connection that is not known to be lost. Leave `keep_free` places for others."""
        deadline, pause = time.monotonic() + seconds, MIN_PAUSE_SECONDS
        while True:
            idle = self._reserve(deadline, keep_free)
            try:
                if idle is None:
                    return self._open_connection()
                if not _is_lost(idle):
                    return idle
                idle.close()
                self._release()
            except psycopg.Error as error:
                self._release()  # while this thread pauses, another may return a connection
                if time.monotonic() + pause > deadline:
                    raise unavailable(error, "nothing was written; check that the server runs and try again") from error
                time.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
            except BaseException:
                self._release()
                raise

    def put(self, connection: Connection) -> None:
        now = time.monotonic()
        expired: Connection | None = None
        with self._lock:
            self._in_use -= 1
            if self._closed or connection.closed or now - connection.opened_at > MAX_AGE_SECONDS:
                expired = connection
            else:
                self._idle.append((connection, now))
                if len(self._idle) > 1 and now - self._idle[0][1] > MAX_IDLE_SECONDS:
                    expired = self._idle.pop(0)[0]
            self._notify()
        if expired is not None:
            expired.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            self._place_freed.notify_all()
            self._unreserved_place_freed.notify_all()
        for connection, _ in idle:
            connection.close()

    def _reserve(self, deadline: float, keep_free: int) -> Connection | None:
        """Wait for a place. Return an idle connection for it, or None if one has to be opened."""
        max_in_use = max(1, self._max_size - keep_free)
        freed = self._unreserved_place_freed if keep_free else self._place_freed
        with self._lock:
            while self._in_use >= max_in_use and not self._closed:
                if not freed.wait(deadline - time.monotonic()) and self._in_use >= max_in_use:
                    raise _all_in_use(self._max_size)
            if self._closed:
                raise closed_error()
            self._in_use += 1
            return self._idle.pop()[0] if self._idle else None

    def _release(self) -> None:
        with self._lock:
            self._in_use -= 1
            self._notify()

    def _notify(self) -> None:
        """Wake one waiting caller of each kind. If both wait, one gets the place and the other waits again."""
        self._place_freed.notify()
        self._unreserved_place_freed.notify()


def _is_lost(connection: Connection) -> bool:
    """Whether the server has ended an idle connection. This does not wait.

    The server sends nothing to an idle connection, except when it ends it, or when a setting of the server changes.
    """
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def closed_error() -> FailedPreconditionError:
    return FailedPreconditionError("this client was closed; connect again to use the database")


def _all_in_use(count: int) -> UnavailableError:
    return UnavailableError(
        f"PostgreSQL: all {count} connections of this process are in use: nothing was written; try again,"
        " or raise postgres_pool_max",
        service="postgres",
        reason="PoolTimeout",
    )
