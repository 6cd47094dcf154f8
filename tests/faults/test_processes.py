"""Several processes, each with several threads, on one database at a time."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import apsw

import holdfast
from holdfast.testing.faults.processes import writing
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Ledger
from holdfast.testing.faults.writer import Orders


def test_processes_that_begin_together_on_a_new_database_lose_and_double_nothing(target: str) -> None:
    ledger = Ledger()
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                writing(
                    ledger,
                    Orders(target=target, writer=name, sessions=["shared", name], count=16, threads=2, keyed=keyed),
                )
            )
            for name, keyed in (("a", True), ("b", False), ("c", True), ("d", False))
        ]
        for writer in writers:
            writer.finish()
    assert len(ledger.acknowledged) == 4 * 2 * 16
    verify(target, ledger)


def test_threads_that_begin_one_session_together_all_get_their_place(target: str) -> None:
    together = threading.Barrier(8)

    def begin(session_id: str, number: int) -> int:
        together.wait(60)
        return client.add_message(session_id, "user", str(number)).seq

    with holdfast.connect(target) as client, ThreadPoolExecutor(8) as threads:
        for round_ in range(40):
            seqs = threads.map(begin, [f"chat{round_}"] * 8, range(8))
            assert sorted(seqs) == list(range(1, 9))


def test_a_reader_beside_a_writing_process_never_sees_a_gap_or_half_a_batch(target: str) -> None:
    ledger = Ledger()
    orders = Orders(target=target, writer="a", sessions=["chat"], count=40, threads=2)
    with holdfast.connect(target) as client, writing(ledger, orders) as writer:
        client.create_session("chat")
        seen, looks = 0, 0
        while seen < 2 * (10 * (1 + 3 + 1 + 2)):
            messages = client.get_messages("chat").messages
            assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
            assert len(messages) >= seen
            seen, looks = len(messages), looks + 1
        writer.finish()
    assert looks > 2
    verify(target, ledger)


def test_a_neighbour_that_hardly_pauses_between_its_writes_starves_nobody(tmp_path: Path) -> None:
    writes, writing_now, stop = 0, threading.Event(), threading.Event()

    def keep_writing(file: str) -> None:
        nonlocal writes
        with closing(apsw.Connection(file)) as connection:
            connection.set_busy_timeout(10_000)
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                writing_now.set()
                time.sleep(0.02)
                writing_now.clear()
                connection.execute("COMMIT")
                writes += 1
                time.sleep(0.002)

    with holdfast.connect(tmp_path) as client:
        client.create_session("chat")
        neighbour = threading.Thread(target=keep_writing, args=(str(tmp_path / "holdfast.db"),))
        neighbour.start()
        waited = 0
        for number in range(20):
            assert writing_now.wait(60)
            before = writes
            client.add_message("chat", "user", str(number))
            waited += writes - before
        stop.set()
        neighbour.join()
    assert waited < 60
