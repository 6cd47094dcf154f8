"""A PostgreSQL server that fails while its synchronous standby takes over."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from holdfast.testing.faults.failover import Cluster, running_cluster
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, AppendLog, attempt, retry_unacknowledged


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


def test_everything_acknowledged_is_stored_once_after_a_failover(cluster: Cluster) -> None:
    """Calls that are made while no server can be written to wait until the standby has taken over."""
    url, append_log, lock, ends = cluster.new_database(), AppendLog(), threading.Lock(), threading.Event()

    def record(event: object) -> None:
        with lock:
            append_log.record(event)  # type: ignore[arg-type]

    def write(writer: int) -> int:
        number = 0
        while not ends.is_set():
            number += 1
            append = Append(f"chat{writer % 2}", f"writer{writer}", number, keyed=True)
            while not attempt(client, append, record):
                time.sleep(0.01)
        return number

    settings = holdfast.Settings(worker_threads=0)
    with holdfast.connect(url, settings=settings) as client, ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, number) for number in range(4)]
        try:
            time.sleep(0.5)
            cluster.fail_over()
            before = len(append_log.acknowledged)
            time.sleep(0.5)
        finally:
            ends.set()
        counts = [writer.result() for writer in writers]
        assert sum(counts) > before > 20
        retry_unacknowledged(client, append_log)
    verify(url, append_log)
