"""Ids sort by time and never repeat."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.engine import Engine
from holdfast.engine.gate.ids import Ids, system_clock
from holdfast.model.identity import Principal
from holdfast.ops.sessions import AddMessage, CreateSession, ForkSession, GetMessages
from holdfast.store.database import Database


def test_later_ids_sort_later_when_the_clock_stands_still() -> None:
    ids = Ids(lambda: 1_700_000_000_000_000)
    created = [ids.new("msg") for _ in range(1_000)]
    assert created == sorted(created)
    assert len(set(created)) == 1_000


def test_later_ids_sort_later_when_the_clock_goes_back() -> None:
    times = iter([5_000_000, 4_000_000, 3_000_000])
    ids = Ids(lambda: next(times))
    created = [ids.new("msg") for _ in range(3)]
    assert created == sorted(created)


def test_an_id_has_its_prefix_and_32_digits() -> None:
    name, digits = Ids(system_clock).new("msg").split("_")
    assert (name, len(digits)) == ("msg", 32)
    milliseconds = int(digits, 16) >> 80  # the first 48 of 128 bits
    assert abs(milliseconds - system_clock() // 1_000) < 1_000


def test_log_ids_fit_a_database_integer_sort_and_never_repeat() -> None:
    ids = Ids(lambda: 1_700_000_000_000_000)
    created = [ids.log_id() for _ in range(1_000)]
    assert created == sorted(set(created))
    assert created[-1] < 2**63


def test_threads_never_get_the_same_id() -> None:
    ids = Ids(lambda: 1)
    with ThreadPoolExecutor(8) as threads:
        created = list(threads.map(lambda _: ids.new("x"), range(4_000)))
    assert len(set(created)) == 4_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_and_its_parent_make_different_ids() -> None:
    """The clock stands still, so only the random bits differ."""
    ids = Ids(lambda: 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, f"{ids.new('x')} {ids.random_48_bits()} {ids.log_id()}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    child_ids = os.read(read, 1_000).decode().split()
    os.close(read)
    os.close(write)
    parent_ids = [ids.new("x"), str(ids.random_48_bits()), str(ids.log_id())]
    assert all(one != other for one, other in zip(parent_ids, child_ids, strict=True))


def test_two_processes_that_generate_the_same_log_id_get_separate_logs(database: Database) -> None:
    """Both use 7 as their first random number, in the same millisecond."""

    def ids_with_random_numbers_from(start: int) -> Ids:
        numbers = iter([7, *range(start, start + 50)])
        return Ids(lambda: 1, lambda _bits: next(numbers))

    engines = [Engine(database, ids=ids_with_random_numbers_from(start)) for start in (100, 200)]
    principal = Principal("acme", "alice", "root")
    created = [engine.call(principal, CreateSession(session_id=f"s{number}")) for number, engine in enumerate(engines)]
    engines[1].call(principal, AddMessage(session_id="s1", role="user", content="mine"))
    assert [info.session_id for info in created] == ["s0", "s1"]
    assert engines[0].call(principal, GetMessages(session_id="s0")).messages == []


def test_message_ids_sort_in_order_when_the_clock_goes_back_also_in_a_forked_session(database: Database) -> None:
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
