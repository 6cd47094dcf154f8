"""Input that took seconds of CPU time takes milliseconds, or is refused with a clear error."""

import gc
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.computing import protocol
from holdfast.computing.summaries import EarlierSummaries, MessagesToSummarise
from holdfast.errors import InvalidArgumentError
from holdfast.http.endpoint import parse_body
from holdfast.json_documents import MAX_VALUES, decode_at_once, decode_json, has_too_many_values
from holdfast.storable import storable_json
from holdfast.summary import extract_verbatim
from holdfast.summary.rules import extract_rules
from holdfast.summary.rules.withdrawals import parse_withdrawal
from holdfast.text.substrings import find_ignoring_case
from holdfast.text.words import split_words

MAX_SECONDS = 0.5


@pytest.fixture
def client() -> Iterator[holdfast.Client]:
    with holdfast.connect(":memory:") as client:
        yield client


def seconds(function: Callable[[], Any]) -> float:
    started_at = time.thread_time()
    function()
    return time.thread_time() - started_at


def test_a_search_in_a_repetitive_tool_output_is_fast() -> None:
    assert seconds(lambda: list(find_ignoring_case("a" * 2_000_000, "a" * 990 + "b"))) < MAX_SECONDS


@pytest.mark.parametrize(
    ("text", "searched", "offsets"),
    [("One ONE oNe", "one", [0, 4, 8]), ("aaaa", "AA", [0, 2]), ("xİx", "i", [1]), ("ΣΑΣ", "σας", [0]), ("ﬀ", "f", [])],
)
def test_a_search_ignores_case_and_keeps_positions(text: str, searched: str, offsets: list[int]) -> None:
    assert list(find_ignoring_case(text, searched)) == offsets


def test_floats_that_are_slow_to_parse_are_decoded_fast() -> None:
    body = b'{"k":[' + b"1e308," * 90_000 + b"1]}"
    assert seconds(lambda: parse_body(body)) < MAX_SECONDS / 5


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b'"a"', b"[[1]]"])
def test_a_body_with_too_many_values_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="more than 100000 JSON values"):
        parse_body(b'{"k":[%b]}' % b",".join([value] * (MAX_VALUES + 1)))


@pytest.mark.parametrize("text", ["," * 200_000, '",' * 100_000, '\\",[' * 100_000, "\\" * 200_001 + ","])
def test_commas_and_brackets_in_strings_are_not_values(text: str) -> None:
    assert not has_too_many_values(msgspec.json.encode({"k": [text, text]}))


def test_a_message_with_too_many_values_is_refused(client: holdfast.Client) -> None:
    with pytest.raises(InvalidArgumentError, match="give large data as a string"):
        client.add_message("chat", "user", "hello", metadata={"k": [[]] * (MAX_VALUES + 1)})


def test_a_long_run_of_accents_is_split_fast() -> None:
    assert seconds(lambda: split_words("é" + "\u0301\u0316" * 50_000)) < MAX_SECONDS


def test_a_long_key_over_a_long_list_is_checked_fast() -> None:
    assert seconds(lambda: storable_json("metadata", {"k" * 1_500_000: [0] * 90_000})) < MAX_SECONDS


def test_the_error_of_a_nested_value_names_its_path() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        storable_json("metadata", {"a": [1, {"b": "\0"}]})
    assert raised.value.details["field"] == "metadata.a[1].b"
    with pytest.raises(InvalidArgumentError) as raised:
        storable_json("metadata", {"k" * 1_000: [float("nan")]})
    assert raised.value.details["field"] == f"metadata.{'k' * 80}[0]"


def test_a_search_with_too_many_words_is_refused(client: holdfast.Client) -> None:
    client.add_message("chat", "user", "hello")
    with pytest.raises(InvalidArgumentError, match="101 different words; give at most 100"):
        client.get_messages("chat", q=" ".join(f"w{number}" for number in range(101)))
    assert len(client.get_messages("chat", q="hello " * 150).messages) == 1


def test_a_search_of_many_words_over_large_new_messages_is_fast(client: holdfast.Client) -> None:
    for _ in range(20):
        client.add_message("chat", "user", "一二三四五 " * 16_000)
    query = " ".join([*(f"w{number}" for number in range(90)), "一"])
    assert seconds(lambda: client.get_messages("chat", q=query)) < MAX_SECONDS
    assert len(client.get_messages("chat", q="一二").messages) == 20


def test_messages_are_the_same_in_pages(client: holdfast.Client) -> None:
    for number in range(7):
        texts = [f"{number} {at}" * (40_000 if at == number else 1) for at in range(100)]
        client.batch_add_messages("chat", [{"role": "user", "content": text} for text in texts])
    messages = client.get_messages("chat", limit=1_000).messages
    assert [message.seq for message in messages] == list(range(1, 701))
    assert [message.text[:4] for message in messages[::101]] == ["0 00", "1 11", "2 22", "3 33", "4 44", "5 55", "6 66"]
    job_input = MessagesToSummarise(messages, EarlierSummaries(abstract="é"))
    encoded = protocol.encode_in_pages(job_input)
    assert encoded == msgspec.json.encode(job_input)
    document = msgspec.Raw(msgspec.json.encode(messages))
    assert protocol.decode_in_pages(document, list[holdfast.Message]) == messages


def test_a_summary_of_very_many_short_messages_takes_limited_time() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    messages = [
        holdfast.Message(f"m{seq}", "user", [holdfast.TextPart(f"message {seq}: never mind")], now, seq, 6)
        for seq in range(1, 60_001)
    ]
    assert seconds(lambda: extract_verbatim(messages)) < 2 * MAX_SECONDS


@pytest.mark.parametrize("text", ["「『“«" * 6_000, "不要" * 12_000])
def test_rules_are_read_fast_in_quotes_that_do_not_end_and_in_chinese(text: str) -> None:
    message = holdfast.Message("m1", "user", [holdfast.TextPart(text)], datetime(2026, 3, 1, tzinfo=UTC), 1, 6_000)
    assert seconds(lambda: extract_rules([message] * 20, lambda: None)) < MAX_SECONDS


@pytest.mark.parametrize("before", ["", "今天我们看了报告，" * 20])
@pytest.mark.parametrize(
    ("sentence", "withdrawal"), [("缩进的规则作废了", "缩进"), ("不用再写注释", "写注释"), ("可以重新用表格了", "表格")]
)
def test_a_chinese_withdrawal_is_found_in_a_sentence_of_any_length(before: str, sentence: str, withdrawal: str) -> None:
    found = parse_withdrawal(f"{before}{sentence}", frozenset(), "")
    assert found is not None
    assert withdrawal in found


def test_a_large_document_is_decoded_without_the_garbage_collector_which_then_continues() -> None:
    states: list[bool] = []
    decode_at_once(lambda _: states.append(gc.isenabled()), "[]")
    with pytest.raises(msgspec.DecodeError):
        decode_at_once(decode_json, "[")
    assert (states, gc.isenabled()) == ([False], True)
    gc.disable()
    try:
        decode_at_once(decode_json, "[]")
        assert not gc.isenabled()
    finally:
        gc.enable()
