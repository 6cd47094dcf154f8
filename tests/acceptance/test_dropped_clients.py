"""Clients that a program drops without closing them."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.server import running_server


@pytest.fixture
def wait_for_threads_to_end() -> Callable[[], None]:
    """Waits until all threads that the test has started have ended."""
    before = set(threading.enumerate())
    return lambda: wait_for(lambda: set(threading.enumerate()) <= before)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        gc.collect(0)
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"the condition was not met; threads: {threading.enumerate()}")


def use(target: str) -> None:
    """Use a client with background work, and drop it."""
    client = holdfast.connect(target)
    client.add_message("chat", "user", "hello")
    client.commit_session("chat")


def test_a_dropped_client_ends_its_threads_and_loses_nothing(
    target: str, wait_for_threads_to_end: Callable[[], None]
) -> None:
    for _ in range(5):
        use(target)
    gc.collect()
    wait_for_threads_to_end()
    with holdfast.connect(target) as client:
        client.wait_until_idle(20)
        assert client.get_session("chat").total_message_count == 5
        assert len(client.list_archives("chat")) == 5


def test_a_client_dropped_in_a_cycle_ends_its_threads(
    tmp_path: Path, wait_for_threads_to_end: Callable[[], None]
) -> None:
    cycle: list[object] = [holdfast.connect(tmp_path)]
    cycle[0].add_message("chat", "user", "hello")  # type: ignore[attr-defined]
    cycle[0].commit_session("chat")  # type: ignore[attr-defined]
    cycle.append(cycle)
    del cycle
    gc.collect()
    wait_for_threads_to_end()


def test_a_dropped_asynchronous_client_ends_its_threads(
    target: str, wait_for_threads_to_end: Callable[[], None]
) -> None:

    async def use_and_drop() -> None:
        client = holdfast.connect_async(target)
        await client.add_message("chat", "user", "hello")
        await client.commit_session("chat")

    for _ in range(3):
        asyncio.run(use_and_drop())
    gc.collect()
    wait_for_threads_to_end()
    with holdfast.connect(target) as client:
        assert client.get_session("chat").total_message_count == 3


def test_dropped_clients_keep_no_files_open(tmp_path: Path) -> None:
    use(str(tmp_path))
    wait_for(lambda: [file.name for file in tmp_path.iterdir()] == ["holdfast.db"])


def test_a_dropped_client_causes_no_warning(target: str) -> None:
    code = """
        import gc, sys, threading, time, holdfast
        for number in range(3):
            client = holdfast.connect(sys.argv[1])
            client.add_message("chat", "user", "hello")
            client.commit_session("chat")
        del client
        for _ in range(1_000):
            gc.collect()
            if threading.active_count() == 1:
                break
            time.sleep(0.01)
        print(threading.active_count())
    """
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_dropped_client_of_a_server_leaves_no_thread(
    tmp_path: Path, wait_for_threads_to_end: Callable[[], None]
) -> None:
    with running_server(tmp_path) as server:
        for _ in range(3):
            holdfast.connect(server.url).add_message("chat", "user", "hello")
        gc.collect()
        wait_for_threads_to_end()
