"""Long rounds on PostgreSQL: frozen, killed, failed over, with locked rows, and behind PgBouncer."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

import holdfast
from holdfast.errors import DeadlineExceededError, HoldfastError
from holdfast.testing.contract import StoreContract
from holdfast.testing.faults import pgbouncer
from holdfast.testing.faults.failover import running_cluster
from holdfast.testing.faults.processes import run_writer
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, AppendLog, Event, Failed, attempt, retry_unacknowledged
from holdfast.testing.faults.writer import WriterOptions
from holdfast.testing.postgres import PostgresServer, postgres_server
from holdfast.testing.server import running_server

WRITERS = 8
FROZEN_SECONDS = 30
KILLS = 5
FAILOVERS = 3
needs_pgbouncer = pytest.mark.skipif(pgbouncer.PROGRAM is None, reason="pgbouncer is not installed")


class Load:
    """Threads that append with keys, each until its call is acknowledged, as a careful caller does."""

    def __init__(self, connect: Callable[[], holdfast.Client]) -> None:
        self.append_log = AppendLog()
        self.slowest = 0.0
        self._connect = connect
        self._lock = threading.Lock()
        self._ends = threading.Event()

    def record(self, event: Event) -> None:
        with self._lock:
            self.append_log.record(event)

    def acknowledged(self) -> int:
        return len(self.append_log.acknowledged)

    def wait_for_more(self, count: int) -> None:
        goal, deadline = self.acknowledged() + count, time.monotonic() + 60
        while self.acknowledged() < goal:
            assert time.monotonic() < deadline, "no appends are acknowledged"
            time.sleep(0.05)

    def _write(self, writer: int) -> None:
        with self._connect() as client:
            number = 0
            while not self._ends.is_set():
                number += 1
                self._append(client, Append(f"chat{writer % 3}", f"writer{writer}", number, keyed=True))

    def _append(self, client: holdfast.Client, append: Append) -> None:
        begun = time.monotonic()
        while not self._ends.is_set():
            try:
                if attempt(client, append, self.record):
                    break
            except DeadlineExceededError as error:
                self.record(Failed(append.name, error.message))
            time.sleep(0.05)
        self.slowest = max(self.slowest, time.monotonic() - begun)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(WRITERS) as threads:
            writers = [threads.submit(self._write, number) for number in range(WRITERS)]
            try:
                yield
            finally:
                self._ends.set()
            for writer in writers:
                writer.result()
        with self._connect() as client:
            retry_unacknowledged(client, self.append_log)


@contextmanager
def load_over_http(target: str) -> Iterator[Load]:
    with running_server(target) as server:
        load = Load(lambda: holdfast.connect(server.url))
        with load.running():
            load.wait_for_more(100)
            yield load
            load.wait_for_more(100)
    verify(target, load.append_log)


def test_a_frozen_server_loses_and_duplicates_nothing() -> None:
    with postgres_server() as server, load_over_http(server.new_database()), server.frozen():
        time.sleep(FROZEN_SECONDS)


def test_a_server_killed_again_and_again_loses_and_duplicates_nothing() -> None:
    with postgres_server() as server, load_over_http(server.new_database()) as load:
        for _ in range(KILLS):
            load.wait_for_more(100)
            server.kill()
            server.restart()


def test_failovers_lose_and_duplicate_nothing() -> None:
    for _ in range(FAILOVERS):
        with running_cluster() as cluster, load_over_http(cluster.new_database()) as load:
            load.wait_for_more(100)
            cluster.fail_over()


def test_connections_that_an_administrator_ends_under_load_lose_and_duplicate_nothing(
    postgres: PostgresServer,
) -> None:
    target = postgres.new_database()
    role = target.split("//")[1].split("@")[0]
    with load_over_http(target), psycopg.connect(postgres.url(), autocommit=True) as operator:
        for _ in range(100):
            operator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))
            time.sleep(0.1)


def test_locked_sessions_of_several_accounts_delay_no_other_account(postgres: PostgresServer) -> None:
    """Far more writes wait for locks than there are threads and connections, for longer than a request may take."""
    url = postgres.new_database()
    with running_server(url) as server, psycopg.connect(postgres.url(), autocommit=False) as peer:
        once = holdfast.Settings(http_attempts=1)
        clients = {
            name: holdfast.connect(server.url, account=name, user="alice", settings=once)
            for name in ("a", "b", "c", "rival")
        }
        for name, client in clients.items():
            for number in range(20):
                client.add_message(f"s{number}", "user", f"{name} {number}")
        role = url.split("//")[1].split("@")[0]
        peer.execute(f"SELECT 1 FROM {role}.sessions WHERE account_id <> 'rival' FOR NO KEY UPDATE".encode())
        ends, errors = threading.Event(), list[HoldfastError]()

        def keep_writing(name: str, number: int) -> None:
            while not ends.is_set():
                try:
                    clients[name].add_message(f"s{number}", "user", "blocked")
                except HoldfastError as error:
                    errors.append(error)
                    time.sleep(0.2)

        seconds = []
        with ThreadPoolExecutor(60) as threads:
            for name in ("a", "b", "c"):
                for number in range(20):
                    threads.submit(keep_writing, name, number)
            begun = time.monotonic()
            while time.monotonic() - begun < 40:
                before = time.monotonic()
                clients["rival"].add_message("s1", "user", "not blocked")
                seconds.append(time.monotonic() - before)
                time.sleep(0.02)
            peer.rollback()
            ends.set()
        for client in clients.values():
            client.close()
    seconds.sort()
    assert seconds[len(seconds) * 99 // 100] < 1
    assert len(errors) > 60
    assert all("locked by another transaction" in error.message for error in errors)


@needs_pgbouncer
def test_processes_behind_pgbouncer_lose_and_duplicate_nothing(postgres: PostgresServer) -> None:
    target, append_log = postgres.new_database(), AppendLog()
    with pgbouncer.pgbouncer_to(target) as url:
        options = {
            name: WriterOptions(target=url, writer=name, sessions=["shared", name], threads=3, keyed=name == "careful")
            for name in ("careful", "plain")
        }
        with (
            run_writer(append_log, options["careful"]) as careful,
            run_writer(append_log, options["plain"]) as plain,
            load_over_http(url),
        ):
            careful.wait_for(acknowledged=500)
            plain.wait_for(acknowledged=500)
            careful.kill()
            plain.kill()
        with holdfast.connect(url) as client:
            retry_unacknowledged(client, append_log)
    verify(target, append_log)


@needs_pgbouncer
class TestStoreBehindPgbouncer(StoreContract):
    """The contract of a database, with a transaction on another connection each time."""

    @pytest.fixture
    def target(self, postgres: PostgresServer) -> Iterator[str]:
        """What the fixtures `open_database` and `database` open."""
        with pgbouncer.pgbouncer_to(postgres.new_database()) as url:
            yield url
