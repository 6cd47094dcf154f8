"""Forked children and their parents use the same client, each with connections of its own."""

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.faults.processes import running
from holdfast.testing.faults.verification import verify
from holdfast.testing.faults.workload import Ledger

FORKING = str(Path(__file__).with_name("programs") / "forking.py")
ASYNC = str(Path(__file__).with_name("programs") / "forking_async.py")
MIDWAY = str(Path(__file__).with_name("programs") / "forking_midway.py")


@pytest.mark.parametrize("way", ["fork", "multiprocessing"])
def test_parents_and_forked_children_lose_and_double_nothing(target: str, way: str) -> None:
    ledger = Ledger()
    with running([sys.executable, FORKING, target, way], ledger) as program:
        program.finish()
    writers = {append.writer for append in ledger.tried.values()}
    assert {f"child{number}x{side}" for number in range(9) for side in "ab"} <= writers
    assert not ledger.unanswered()
    verify(target, ledger)


@pytest.mark.parametrize(
    ("target", "lock"),
    [
        ("sqlite", "_transport.engine.db.group._mutex"),
        ("sqlite", "_transport.engine.db._readers._lock"),
        ("sqlite", "_transport.engine.ids._lock"),
        ("postgres", "_transport.engine.db._pool._lock"),
        ("postgres", "_transport.engine.db._pool._tasks.mutex"),
        ("postgres", "_transport.engine.db._opening"),
    ],
    indirect=["target"],
)
def test_a_child_is_not_held_up_by_locks_of_threads_that_it_does_not_have(target: str, lock: str) -> None:
    ledger = Ledger()
    with running([sys.executable, MIDWAY, target, lock], ledger) as program:
        program.finish()
    assert {append.writer for append in ledger.tried.values()} == {"before", "child", "parent"}
    assert not ledger.unanswered()
    verify(target, ledger)


def test_a_forked_child_may_use_the_asynchronous_client_of_its_parent(target: str) -> None:
    with running([sys.executable, "-W", "ignore::DeprecationWarning", ASYNC, target], Ledger()) as program:
        program.finish()
    with holdfast.connect(target) as client:
        texts = [message.text for message in client.session("chat").messages]
    assert sorted(texts) == sorted(
        f"{writer} {number}" for writer in ("before", "child", "after") for number in range(5)
    )
