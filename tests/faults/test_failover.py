"""A PostgreSQL server that fails while its synchronous standby takes over."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.testing.faults.failover import Cluster, running_cluster
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, AppendLog, attempt, retry_unacknowledged


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def wait_for_acknowledged(append_log: AppendLog, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(append_log.acknowledged) < count:
        assert time.monotonic() < deadline, "no appends are acknowledged"
        time.sleep(0.01)


def test_everything_acknowledged_is_stored_once_after_a_failover(cluster: Cluster) -> None:
    """Calls that are made while no server can be written to wait until the standby has taken over."""
    url, append_log, lock, ends = cluster.new_database(), AppendLog(), threading.Lock(), threading.Event()

    def record(event: object) -> None:
        with lock:
            append_log.record(event)  # type: ignore[arg-type]

    def write(writer: int) -> None:
        number = 0
        while not ends.is_set():
            number += 1
            append = Append(f"chat{writer % 2}", f"writer{writer}", number, keyed=True)
            while not attempt(client, append, record):
                time.sleep(0.01)

    standby = PostgresDatabase(cluster.standby.url())
    """A client that knows only the standby. What it writes waits until the standby can be written to."""
    settings = holdfast.Settings(worker_threads=0)
    with holdfast.connect(url, settings=settings) as client, ThreadPoolExecutor(5) as threads:
        writers = [threads.submit(write, number) for number in range(4)]
        try:
            wait_for_acknowledged(append_log, 20)
            waiting = threads.submit(standby.write, "acme", lambda tx: tx.one("SELECT pg_current_xact_id()::text"))
            cluster.fail_over()
            wait_for_acknowledged(append_log, len(append_log.acknowledged) + 20)
        finally:
            ends.set()
        for writer in writers:
            writer.result()
        assert waiting.result() is not None
        retry_unacknowledged(client, append_log)
    standby.close()
    verify(url, append_log)
