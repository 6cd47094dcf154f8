"""Ids sort by time and never repeat."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.engine import Engine
from holdfast.engine.gate.ids import Ids, system_clock
from holdfast.model.identity import Principal
from holdfast.ops.sessions import AddMessage, CreateSession, ForkSession, GetMessages
from holdfast.store.database import Database


def test_ids_made_later_sort_later_even_when_the_clock_stands_still() -> None:
    ids = Ids(lambda: 1_700_000_000_000_000)
    made = [ids.new("msg") for _ in range(1_000)]
    assert made == sorted(made)
    assert len(set(made)) == 1_000


def test_ids_made_later_sort_later_even_when_the_clock_goes_back() -> None:
    times = iter([5_000_000, 4_000_000, 3_000_000])
    ids = Ids(lambda: next(times))
    made = [ids.new("msg") for _ in range(3)]
    assert made == sorted(made)


def test_an_id_has_its_prefix_and_32_digits() -> None:
    name, digits = Ids(system_clock).new("msg").split("_")
    assert (name, len(digits)) == ("msg", 32)
    assert abs((int(digits, 16) >> 80) - system_clock() // 1_000) < 1_000


def test_log_ids_fit_a_database_integer_sort_and_never_repeat() -> None:
    ids = Ids(lambda: 1_700_000_000_000_000)
    made = [ids.log_id() for _ in range(1_000)]
    assert made == sorted(set(made))
    assert made[-1] < 2**63


def test_threads_never_get_the_same_id() -> None:
    ids = Ids(lambda: 1)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: ids.new("x"), range(4_000)))
    assert len(set(made)) == 4_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    """With a clock that stands still, only chance tells them apart."""
    ids = Ids(lambda: 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, f"{ids.new('x')} {ids.chance()} {ids.log_id()}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 1_000).decode().split()
    os.close(read)
    os.close(write)
    mine = [ids.new("x"), str(ids.chance()), str(ids.log_id())]
    assert all(one != other for one, other in zip(mine, theirs, strict=True))


def test_log_ids_that_two_processes_drew_alike_do_not_get_in_each_others_way(database: Database) -> None:
    """Both draw 7 first, in the same millisecond."""

    def drawing(start: int) -> Ids:
        draws = iter([7, *range(start, start + 50)])
        return Ids(lambda: 1, lambda _bits: next(draws))

    engines = [Engine(database, ids=drawing(start)) for start in (100, 200)]
    principal = Principal("acme", "alice", "root")
    made = [engine.call(principal, CreateSession(session_id=f"s{number}")) for number, engine in enumerate(engines)]
    engines[1].call(principal, AddMessage(session_id="s1", role="user", content="mine"))
    assert [info.session_id for info in made] == ["s0", "s1"]
    assert engines[0].call(principal, GetMessages(session_id="s0")).messages == []


def test_message_ids_sort_in_order_though_the_clock_goes_back_also_across_a_fork(database: Database) -> None:
    times = iter(range(9_000_000_000, 0, -1_000_000))
    engine = Engine(database, clock=lambda: next(times))
    principal = Principal("acme", "alice", "root")
    for _ in range(3):
        engine.call(principal, AddMessage(session_id="parent", role="user", content="hi"))
    engine.call(principal, ForkSession(session_id="parent", at=2, new_session_id="child"))
    for _ in range(2):
        engine.call(principal, AddMessage(session_id="child", role="user", content="hi"))
    ids = [message.id for message in engine.call(principal, GetMessages(session_id="child")).messages]
    assert len(ids) == 4
    assert ids == sorted(ids)
