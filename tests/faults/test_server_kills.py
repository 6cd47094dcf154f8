"""A server that dies by SIGKILL again and again, while its clients go on."""

import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import holdfast
from holdfast.testing.faults.connections import lasting_port
from holdfast.testing.faults.processes import writing
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Append, Ledger, attempt
from holdfast.testing.faults.writer import Orders
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server


def kill_again_and_again(target: str, *, rounds: int, writers: int) -> Ledger:
    """Half of the writers give keys and try until they succeed; half leave both to the client, and give up."""
    ledger, port = Ledger(), lasting_port()
    orders = [
        Orders(
            target=f"http://127.0.0.1:{port}",
            writer=name,
            sessions=["shared", *(f"{name}{number}" for number in range(7))],
            first=3,  # the second append of everyone is a large one, and so many at once take their time
            threads=writers // 2,
            keyed=name == "careful",
        )
        for name in ("careful", "plain")
    ]
    with ExitStack() as stack:
        server = stack.enter_context(running_server(target, port=port))
        programs = [stack.enter_context(writing(ledger, order)) for order in orders]
        for seed in range(rounds):
            draw = random.Random(seed)
            for program in programs:
                program.wait_for_more(draw.randint(1, writers // 4))
            time.sleep(draw.uniform(0, 0.02))
            server.kill()
            server = stack.enter_context(running_server(target, port=port))
        for program in programs:
            program.wait_for_more(1)
            program.kill()
        assert server.stop() == 0
    return ledger


def test_ten_kills_of_the_server_under_64_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    target = str(tmp_path / "holdfast.db")
    verify(target, kill_again_and_again(target, rounds=10, writers=64))


def test_kills_of_the_server_before_postgresql_lose_and_double_nothing(postgres: PostgresServer) -> None:
    target = postgres.new_database()
    verify(target, kill_again_and_again(target, rounds=3, writers=16))


def test_eight_clients_of_a_server_share_a_session_without_a_gap(target: str) -> None:
    ledger, together = Ledger(), threading.Barrier(8)

    def write(url: str, writer: str) -> None:
        with holdfast.connect(url) as client:
            together.wait(30)
            for number in range(3, 15):
                attempt(client, Append("chat", writer, number), ledger.note)

    with running_server(target) as server:
        threads = [threading.Thread(target=write, args=(server.url, f"client{number}")) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.acknowledged) == 8 * 12
        assert server.stop() == 0
    verify(target, ledger)
