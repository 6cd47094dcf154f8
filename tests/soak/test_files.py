"""Rounds of displaced databases and unread logs under a server that is written to."""

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

import holdfast
from holdfast.testing.server import ServerProcess, running_server

MEMORY_CLIENTS = str(Path(__file__).parent.parent / "faults" / "programs" / "memory_clients.py")
ROUNDS = 12
WRITERS = 4
MESSAGES = "/api/v1/sessions/chat/messages"


class Writers:
    """Clients that append numbered messages to a server, and know which were acknowledged."""

    def __init__(self, server: ServerProcess, first: int) -> None:
        self.acknowledged: set[str] = set()
        self._numbers = itertools.count(first)
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._append, args=(server.url,)) for _ in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> set[str]:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)
        return self.acknowledged

    def _append(self, url: str) -> None:
        with httpx2.Client(base_url=url, timeout=10) as http:
            while not self._is_over.is_set():
                text = f"message {next(self._numbers)}"
                try:
                    response = http.post(MESSAGES, json={"role": "user", "content": text})
                except httpx2.TransportError:
                    return
                if response.status_code == 200:
                    self.acknowledged.add(text)
                else:
                    assert response.status_code == 503, response.text
                    time.sleep(0.01)


def stored_texts(folder: Path) -> set[str]:
    """What another process finds at the path."""
    with holdfast.connect(folder) as client:
        return {message.text for message in client.session("chat").messages}


@pytest.mark.parametrize("kind", ["moved", "wal moved", "folder moved"])
def test_nothing_acknowledged_is_lost_when_files_are_moved_and_the_server_is_killed(tmp_path: Path, kind: str) -> None:
    folder, rng = tmp_path / "data", random.Random(kind)
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        with running_server(folder) as server:
            writers = Writers(server, number * 1_000_000)
            time.sleep(rng.uniform(0.1, 0.5))
            original, moved = {
                "moved": (folder / "holdfast.db", tmp_path / "moved.db"),
                "wal moved": (folder / "holdfast.db-wal", tmp_path / "moved-wal"),
                "folder moved": (folder, tmp_path / "moved"),
            }[kind]
            original.rename(moved)
            time.sleep(rng.uniform(0.05, 0.3))
            assert not original.exists()
            moved.rename(original)
            time.sleep(rng.uniform(0, 0.3))
            server.kill()
            acknowledged |= writers.stop()
    assert len(acknowledged) > 20 * ROUNDS
    assert acknowledged <= stored_texts(folder)


def test_what_is_acknowledged_after_a_deletion_survives_it(tmp_path: Path) -> None:
    """The messages before the deletion are gone with their file. No later one is acknowledged and lost."""
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        with running_server(folder) as server:
            writers = Writers(server, 0)
            time.sleep(0.2)
            for file in folder.iterdir():
                file.unlink()
            time.sleep(0.3)  # requests that were acknowledged before the deletion have arrived
            writers.acknowledged.clear()
            time.sleep(0.2)
            server.kill()
            acknowledged = writers.stop()
        assert acknowledged <= stored_texts(folder)


def test_a_server_whose_log_is_never_read_answers_tens_of_thousands_of_requests(tmp_path: Path) -> None:
    output, log = os.pipe()
    with running_server(tmp_path, log_file=log) as server, httpx2.Client(base_url=server.url, timeout=10) as http:
        for _ in range(22_000):
            assert http.get("/health").status_code == 200
        assert "holdfast_log_lines_dropped_total 0" not in http.get("/metrics").text
        assert server.stop() == 0
    os.close(log)
    os.close(output)


def test_short_lived_clients_in_memory_do_not_hang() -> None:
    command = [sys.executable, MEMORY_CLIENTS, "30"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
