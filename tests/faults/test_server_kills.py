"""A server that is repeatedly killed with SIGKILL while its clients continue."""

import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import holdfast
from holdfast.testing.faults.connections import find_stable_port
from holdfast.testing.faults.processes import run_writer
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, AppendLog, attempt
from holdfast.testing.faults.writer import WriterOptions
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server


def kill_repeatedly(target: str, *, rounds: int, writers: int) -> AppendLog:
    """Kill the server `rounds` times. Half of the writers use their own keys and retry; half rely on the client."""
    append_log, port = AppendLog(), find_stable_port()
    options = [
        WriterOptions(
            target=f"http://127.0.0.1:{port}",
            writer=name,
            sessions=["shared", *(f"{name}{number}" for number in range(7))],
            first=3,  # append 2 is very large, and too slow with so many writers at once
            threads=writers // 2,
            keyed=name == "careful",
        )
        for name in ("careful", "plain")
    ]
    with ExitStack() as stack:
        server = stack.enter_context(running_server(target, port=port))
        programs = [stack.enter_context(run_writer(append_log, option)) for option in options]
        for seed in range(rounds):
            rng = random.Random(seed)
            for program in programs:
                program.wait_for_more(rng.randint(1, writers // 4))
            time.sleep(rng.uniform(0, 0.02))
            server.kill()
            server = stack.enter_context(running_server(target, port=port))
        for program in programs:
            program.wait_for_more(1)
            program.kill()
        assert server.stop() == 0
    return append_log


def test_ten_server_kills_with_64_writers_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    verify(target, kill_repeatedly(target, rounds=10, writers=64))


def test_server_kills_on_postgresql_lose_and_duplicate_nothing(postgres: PostgresServer) -> None:
    target = postgres.new_database()
    verify(target, kill_repeatedly(target, rounds=3, writers=16))


def test_eight_clients_append_to_one_session_without_gaps(target: str) -> None:
    append_log, together = AppendLog(), threading.Barrier(8)

    def write(url: str, writer: str) -> None:
        with holdfast.connect(url) as client:
            together.wait(30)
            for number in range(3, 15):
                attempt(client, Append("chat", writer, number), append_log.record)

    with running_server(target) as server:
        threads = [threading.Thread(target=write, args=(server.url, f"client{number}")) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(append_log.acknowledged) == 8 * 12
        assert server.stop() == 0
    verify(target, append_log)
