"""The memory that large requests and responses share."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.http.memory.bodies import BodyMemory
from holdfast.http.memory.budget import MemoryBudget, MemoryReservation
from holdfast.model.identity import Principal

ALICE, BOB, CAROL = (Principal("acme", name, "user") for name in ("alice", "bob", "carol"))


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(limited())


async def reserve_later(reservation: MemoryReservation, size: int) -> "asyncio.Task[None]":
    task = asyncio.create_task(reservation.reserve(size))
    await asyncio.sleep(0)
    return task


def test_a_reservation_waits_until_memory_is_released() -> None:
    async def test() -> None:
        budget = MemoryBudget(100, 100)
        alice, bob = budget.new_reservation(ALICE), budget.new_reservation(BOB)
        await alice.reserve(80)
        assert not bob.try_reserve(30)
        waiting = await reserve_later(bob, 30)
        assert not waiting.done()
        alice.release()
        await waiting
        assert (bob.size, budget.used) == (30, 30)

    run(test)


def test_a_caller_holds_a_share_and_at_least_one_reservation_of_any_size() -> None:
    async def test() -> None:
        budget = MemoryBudget(100, 20)
        with (
            budget.new_reservation(ALICE) as first,
            budget.new_reservation(ALICE) as second,
            budget.new_reservation(BOB) as bob,
        ):
            await first.reserve(60)
            waiting = await reserve_later(second, 1)
            await bob.reserve(20)  # does not wait for alice, who is over her share
            assert not waiting.done()
            first.release()
            await waiting
            assert budget.used == 21
        assert budget.used == 0

    run(test)


def test_callers_get_memory_in_turn() -> None:
    async def test() -> None:
        budget = MemoryBudget(10, 10)
        held = budget.new_reservation(CAROL)
        await held.reserve(10)
        order: list[str] = []

        async def use(principal: Principal) -> None:
            with budget.new_reservation(principal) as reservation:
                await reservation.reserve(10)
                order.append(principal.user_id)

        async with asyncio.TaskGroup() as group:
            for principal in (ALICE, ALICE, ALICE, BOB):
                group.create_task(use(principal))
            await asyncio.sleep(0)
            held.release()
        assert order == ["alice", "bob", "alice", "alice"]

    run(test)


def test_a_large_reservation_is_not_overtaken_for_ever() -> None:
    async def test() -> None:
        budget = MemoryBudget(100, 100)
        first, large, small = budget.new_reservation(ALICE), budget.new_reservation(BOB), budget.new_reservation(CAROL)
        await first.reserve(50)
        waiting = await reserve_later(large, 100)
        assert not small.try_reserve(10)
        first.release()
        await waiting
        assert large.size == 100

    run(test)


def test_a_cancelled_reservation_holds_nothing() -> None:
    async def test() -> None:
        budget = MemoryBudget(10, 10)
        held, other = budget.new_reservation(ALICE), budget.new_reservation(BOB)
        await held.reserve(10)
        for released in (False, True):
            waiting = await reserve_later(other, 10)
            if released:
                held.release()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert budget.used == 0
        assert other.try_reserve(10)

    run(test)


def test_a_reservation_that_is_larger_than_the_memory_gets_all_of_it() -> None:
    async def test() -> None:
        budget = MemoryBudget(10, 5)
        with budget.new_reservation(ALICE) as reservation:
            await reservation.reserve(1_000)
            assert budget.used == 10
            reservation.adjust(3)
            assert budget.used == 3
            reservation.adjust(15)
            assert budget.used == 15
        assert budget.used == 0

    run(test)


def test_of_bodies_that_fill_the_memory_the_first_one_is_completed() -> None:
    async def test() -> None:
        memory = BodyMemory(100)
        with memory.buffer() as first:
            await first.hold(60)
            with memory.buffer() as second:
                waiting = asyncio.create_task(second.hold(50))
                await asyncio.sleep(0)
                assert not waiting.done()
                await first.hold(200)  # it began first
                memory.release(first)
                await waiting

    run(test)
