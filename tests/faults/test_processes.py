"""Several processes, each with several threads, on one database at the same time."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import apsw

import holdfast
from holdfast.testing.faults.processes import run_writer
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import APPEND_KINDS, AppendLog
from holdfast.testing.faults.writer import WriterOptions


def test_processes_that_create_a_database_together_lose_and_duplicate_nothing(
    target_without_tables: str,
) -> None:
    target, append_log = target_without_tables, AppendLog()
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                run_writer(
                    append_log,
                    WriterOptions(
                        target=target, writer=name, sessions=["shared", name], count=16, threads=2, keyed=keyed
                    ),
                )
            )
            for name, keyed in (("a", True), ("b", False), ("c", True), ("d", False))
        ]
        for writer in writers:
            writer.finish()
    assert len(append_log.acknowledged) == 4 * 2 * 16
    verify(target, append_log)


def test_threads_that_create_a_session_together_get_consecutive_sequence_numbers(target: str) -> None:
    together = threading.Barrier(8)

    def add_first(session_id: str, number: int) -> int:
        together.wait(60)
        return client.add_message(session_id, "user", str(number)).seq

    with holdfast.connect(target) as client, ThreadPoolExecutor(8) as threads:
        for round_ in range(40):
            seqs = threads.map(add_first, [f"chat{round_}"] * 8, range(8))
            assert sorted(seqs) == list(range(1, 9))


def test_a_reader_never_sees_a_gap_or_a_partial_batch_of_another_process(target: str) -> None:
    append_log = AppendLog()
    appends, threads = 40, 2
    messages_of_four_appends = sum(map(len, APPEND_KINDS))
    all_messages = threads * appends // len(APPEND_KINDS) * messages_of_four_appends
    options = WriterOptions(target=target, writer="a", sessions=["chat"], count=appends, threads=threads)
    with holdfast.connect(target) as client, run_writer(append_log, options) as writer:
        client.create_session("chat")
        count, reads = 0, 0
        while count < all_messages:
            messages = client.get_messages("chat").messages
            assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
            assert len(messages) >= count
            count, reads = len(messages), reads + 1
        writer.finish()
    assert reads > 2
    verify(target, append_log)


def test_another_process_that_writes_almost_continuously_does_not_starve_appends(tmp_path: Path) -> None:
    writes, is_writing, stop = 0, threading.Event(), threading.Event()

    def keep_writing(file: str) -> None:
        nonlocal writes
        with closing(apsw.Connection(file)) as connection:
            connection.set_busy_timeout(10_000)
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                is_writing.set()
                time.sleep(0.02)
                is_writing.clear()
                connection.execute("COMMIT")
                writes += 1
                time.sleep(0.002)

    with holdfast.connect(tmp_path) as client:
        client.create_session("chat")
        other_writer = threading.Thread(target=keep_writing, args=(str(tmp_path / "holdfast.db"),))
        other_writer.start()
        waited = 0
        for number in range(20):
            assert is_writing.wait(60)
            before = writes
            client.add_message("chat", "user", str(number))
            waited += writes - before
        stop.set()
        other_writer.join()
    assert waited < 60
