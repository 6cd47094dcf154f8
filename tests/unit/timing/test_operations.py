"""The CPU time of every operation grows at most as n log n on hostile input, and of every computation of a commit."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from holdfast.engine import Engine
from holdfast.ops.table import OPERATIONS
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.timing import operations
from holdfast.testing.timing.growth import growth_problem
from holdfast.testing.timing.hostile_values import CONVERSATIONS
from holdfast.testing.timing.operations import Call

SIZE = 6_000
"""Characters of the smallest hostile input. The largest has four times as many."""
FLOOR_SECONDS = 0.02
SUMMARY_FLOOR_SECONDS = 0.1
GROUPS = 4
NAMES = list(CONVERSATIONS)


@pytest.fixture
def new_engine() -> Iterator[Callable[[], Engine]]:
    opened: list[Engine] = []

    def open_another() -> Engine:
        opened.append(Engine(SqliteDatabase(":memory:")))
        return opened[-1]

    yield open_another
    for engine in opened:
        engine.close()


NEEDS_A_FAILURE = {"RetryArchive", "RetryTask"}


def test_every_operation_has_an_example_that_succeeds(new_engine: Callable[[], Engine]) -> None:
    """An operation without one is not measured; `testing/timing/operations` has the values of the examples."""
    message = {"role": "user", "parts": [{"type": "tool", "tool_id": "call_0", "tool_output": "a" * 9_000}]}
    calls = operations.calls_on_conversation(new_engine(), [message])
    succeeded = {label.partition("{")[0] for label, call in calls if operations.has_succeeded(call())}
    names = {cls.__name__ for cls in OPERATIONS.keys() - operations.WAITING}
    assert names - succeeded == NEEDS_A_FAILURE


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_field_of_an_operation_makes_it_slow(group: int, new_engine: Callable[[], Engine]) -> None:
    engine = new_engine()
    cases = list(operations.field_cases())[group::GROUPS]
    problems = [
        f"{cls.__name__}, {field} = {value}: {problem}"
        for cls, field, value in cases
        if (
            problem := growth_problem(
                partial(operations.call_with_field, engine, cls, field, value), SIZE, floor_seconds=FLOOR_SECONDS
            )
        )
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_stored_conversation_makes_an_operation_slow(group: int, new_engine: Callable[[], Engine]) -> None:
    def calls(name: str, size: int) -> dict[str, Call]:
        return dict(operations.calls_on_conversation(new_engine(), CONVERSATIONS[name](size)))

    assert not _problems(NAMES[group::GROUPS], calls, FLOOR_SECONDS)


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_conversation_makes_its_summary_slow(group: int, new_engine: Callable[[], Engine]) -> None:
    def calls(name: str, size: int) -> dict[str, Call]:
        engine = new_engine()
        operations.store(engine, CONVERSATIONS[name](size))
        return dict(operations.calls_on_summaries(operations.messages_to_summarise(engine)))

    assert not _problems(NAMES[group::GROUPS], calls, SUMMARY_FLOOR_SECONDS)


def _problems(names: list[str], calls: Callable[[str, int], dict[str, Call]], floor_seconds: float) -> list[str]:
    """Say which calls take too long. Smaller conversations are made only where the largest takes long enough."""
    problems: list[str] = []
    for name in names:
        for label, call in calls(name, 4 * SIZE).items():

            def prepare(size: int, name: str = name, label: str = label, call: Call = call) -> Call:
                return call if size == 4 * SIZE else calls(name, size)[label]

            problem = growth_problem(prepare, SIZE, floor_seconds=floor_seconds)
            problems += [f"{label} of {name}: {problem}"] if problem else []
    return problems
