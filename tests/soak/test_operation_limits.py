"""Every operation on hostile input at the default limits: at most one second of CPU time."""

import sys
import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.json_documents import has_too_many_values
from holdfast.ops.table import OPERATIONS
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.timing import operations
from holdfast.testing.timing.growth import best_time
from holdfast.testing.timing.hostile_values import CONVERSATIONS, JSON_VALUES, TEXTS, make_within
from holdfast.testing.timing.operations import Call
from holdfast.testing.timing.patterns import find_patterns, slow_texts

MAX_SECONDS = 1.0
LIMITS = Settings()
OTHER_FIELDS_BYTES = 2_000
QUERY_CHARS = 60_000
PATTERN_CHARS = 12_000
SHOWN = 5
VALUES = TEXTS | JSON_VALUES
Measure = Callable[[str, Call], None]


@pytest.fixture
def engine() -> Iterator[Engine]:
    opened = Engine(SqliteDatabase(":memory:"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def all_times() -> Iterator[list[tuple[float, str]]]:
    times: list[tuple[float, str]] = []
    yield times
    slowest = sorted(times, reverse=True)[:SHOWN]
    sys.stderr.write("".join(f"\n{seconds:.2f} s CPU: {label}" for seconds, label in slowest))


@pytest.fixture
def measure(all_times: list[tuple[float, str]]) -> Iterator[Measure]:
    """Return a function that measures a call. The test fails at its end if one took too long."""
    times: list[tuple[float, str]] = []
    yield lambda label, call: times.append((best_time(call, time.thread_time, enough=MAX_SECONDS), label))
    all_times += times
    slow = [f"{label}: {seconds:.2f} s" for seconds, label in times if seconds > MAX_SECONDS]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize("name", VALUES)
def test_no_field_takes_more_than_a_second(name: str, engine: Engine, measure: Measure) -> None:
    bodies = _largest_values(name)
    in_query = msgspec.json.encode(VALUES[name](QUERY_CHARS))
    for cls in OPERATIONS:
        encoded_values = [in_query] if OPERATIONS[cls].verb in {"GET", "DELETE"} else bodies
        for field in cls.__struct_fields__:
            for encoded in encoded_values:
                label = f"{cls.__name__}, {field} = {name}, {len(encoded)} bytes"
                measure(label, operations.call_with_value(engine, cls, field, encoded))


def _largest_values(name: str) -> list[bytes]:
    """Return a value as large as a body may be and, if it has too many JSON values, one that is accepted."""
    make, size = VALUES[name], LIMITS.max_body_bytes - OTHER_FIELDS_BYTES
    encoded = [msgspec.json.encode(make_within(make, size))]
    while has_too_many_values(encoded[-1]):
        size = size * 3 // 4
        encoded = [encoded[0], msgspec.json.encode(make(size))]
    return encoded


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_no_operation_on_a_conversation_takes_more_than_a_second(name: str, engine: Engine, measure: Measure) -> None:
    for label, call in operations.calls_on_conversation(engine, _largest_conversation(name)):
        measure(f"{label} of {name}", call)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_no_computation_of_a_commit_takes_more_than_a_second(name: str, engine: Engine, measure: Measure) -> None:
    operations.store(engine, _largest_conversation(name))
    for label, call in operations.calls_on_summaries(operations.messages_to_summarise(engine)):
        measure(f"{label} of {name}", call)


def _largest_conversation(name: str) -> list[dict[str, object]]:
    """Return one message of the largest size, or several messages with as many bytes as a response may have."""
    make = CONVERSATIONS[name]
    is_one_message = len(make(1_000_000)) == 1
    max_bytes = LIMITS.max_message_bytes if is_one_message else LIMITS.max_response_bytes
    messages: list[dict[str, object]] = make_within(make, max_bytes)
    while not operations.are_accepted(messages):
        max_bytes = max_bytes * 3 // 4
        messages = make_within(make, max_bytes)
    return messages


def test_no_pattern_takes_more_than_linear_time_on_long_texts() -> None:
    problems = [problem for each in find_patterns() if (problem := next(slow_texts(each, PATTERN_CHARS), None))]
    assert not problems, "\n".join(problems)
