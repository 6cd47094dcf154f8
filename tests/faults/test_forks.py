"""A parent and its forked children use the same client; each process has its own connections."""

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.faults.processes import run_forked_program, run_program
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import AppendLog

FORKING = str(Path(__file__).with_name("programs") / "forking.py")
ASYNC = str(Path(__file__).with_name("programs") / "forking_async.py")
HELD_LOCK = str(Path(__file__).with_name("programs") / "forking_with_held_lock.py")


@pytest.mark.parametrize("method", ["fork", "multiprocessing"])
def test_parents_and_forked_children_lose_and_duplicate_nothing(target: str, method: str) -> None:
    append_log = AppendLog()
    with run_forked_program(FORKING, [target, method], append_log) as program:
        program.finish()
    writers = {append.writer for append in append_log.attempted.values()}
    assert {f"child{number}x{side}" for number in range(9) for side in "ab"} <= writers
    assert not append_log.unacknowledged()
    verify(target, append_log)


@pytest.mark.parametrize(
    ("target", "lock"),
    [
        ("sqlite", "_transport.engine.db.group._mutex"),
        ("sqlite", "_transport.engine.db._readers._lock"),
        ("sqlite", "_transport.engine.ids._lock"),
        ("postgres", "_transport.engine.db._pool._lock"),
        ("postgres", "_transport.engine.db._lanes._lock"),
        ("postgres", "_transport.engine.db._lock"),
    ],
    indirect=["target"],
)
def test_a_lock_held_during_a_fork_does_not_block_the_child(target: str, lock: str) -> None:
    append_log = AppendLog()
    with run_forked_program(HELD_LOCK, [target, lock], append_log) as program:
        program.finish()
    assert {append.writer for append in append_log.attempted.values()} == {"before", "child", "parent"}
    assert not append_log.unacknowledged()
    verify(target, append_log)


def test_a_forked_child_can_use_the_asynchronous_client_of_its_parent(target: str) -> None:
    with run_program([sys.executable, "-W", "ignore::DeprecationWarning", ASYNC, target], AppendLog()) as program:
        program.finish()
    with holdfast.connect(target) as client:
        texts = [message.text for message in client.session("chat").messages]
    assert sorted(texts) == sorted(
        f"{writer} {number}" for writer in ("before", "child", "after") for number in range(5)
    )
