"""Every operation on large hostile input: at most one second of CPU time."""

import time
from collections.abc import Iterator

import pytest

from holdfast.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.ops.table import OPERATIONS
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.timing import operations
from holdfast.testing.timing.growth import best_time
from holdfast.testing.timing.hostile_values import CONVERSATIONS
from holdfast.testing.timing.patterns import find_patterns, slow_texts

MAX_SECONDS = 1.0
BODY_CHARS = 2_000_000
QUERY_CHARS = 60_000
CONVERSATION_CHARS = 1_000_000
PATTERN_CHARS = 12_000
GROUPS = 4


@pytest.fixture
def engine() -> Iterator[Engine]:
    opened = Engine(SqliteDatabase(":memory:"))
    yield opened
    opened.close()


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_field_takes_more_than_a_second(group: int, engine: Engine) -> None:
    slow: list[str] = []
    for cls, field, value in list(operations.field_cases())[group::GROUPS]:
        chars = QUERY_CHARS if OPERATIONS[cls].verb in {"GET", "DELETE"} else BODY_CHARS
        call = operations.call_with_field(engine, cls, field, value, chars)
        seconds = best_time(call, time.thread_time, enough=MAX_SECONDS)
        slow += [f"{cls.__name__}, {field} = {value}: {seconds:.2f} s"] if seconds > MAX_SECONDS else []
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_no_operation_on_a_conversation_takes_more_than_a_second(name: str, engine: Engine) -> None:
    try:
        calls = list(operations.calls_on_conversation(engine, CONVERSATIONS[name](CONVERSATION_CHARS)))
    except HoldfastError as error:
        pytest.skip(f"the conversation is refused: {error.message[:80]}")
    slow = [
        f"{label}: {seconds:.2f} s"
        for label, call in calls
        if (seconds := best_time(call, time.thread_time, enough=MAX_SECONDS)) > MAX_SECONDS
    ]
    assert not slow, "\n".join(slow)


def test_no_pattern_takes_more_than_linear_time_on_long_texts() -> None:
    problems = [problem for each in find_patterns() if (problem := next(slow_texts(each, PATTERN_CHARS), None))]
    assert not problems, "\n".join(problems)
