"""Tool calls and their results, in every form in which agents record them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from conversations import CONVERSATIONS, Conversation
from conversations.messages import as_messages, hash_vectors
from holdfast.model.messages import Message, Role
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.model.summaries import Line, Summary
from holdfast.summary import SummaryText, combine, fold, open_calls, render, render_rolling, summarise, update_earlier
from holdfast.summary.tools.pairing import pair_calls
from holdfast.text import tokens

Shape = Callable[[list[Message]], list[Message]]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def message(role: Role, *parts: Part | str) -> Message:
    message_parts = [TextPart(part) if isinstance(part, str) else part for part in parts]
    return Message("m", role, message_parts, NOW, 0, tokens.count_parts(message_parts))


def numbered(messages: list[Message]) -> list[Message]:
    return [
        Message(f"m{seq}", each.role, each.parts, NOW, seq, each.tokens) for seq, each in enumerate(messages, start=1)
    ]


def call(name: str, *, id: str = "", **arguments: object) -> ToolPart:
    return ToolPart(tool_id=id, tool_name=name, tool_input=arguments, tool_status="pending")


def result(output: object, *, id: str = "", name: str = "", success: bool = True) -> ToolPart:
    return ToolPart(tool_id=id, tool_name=name, output=output, success=success)


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def pending_lines(overview: str) -> list[str]:
    """Return the lines of an overview's section of pending tasks."""
    return overview.partition("## Pending Tasks\n")[2].split("\n\n", maxsplit=1)[0].splitlines()


def summarise_to_overview(*messages: Message) -> str:
    return render(summarise(numbered(list(messages)), hash_vectors), 1_500).overview


def one_part(messages: list[Message]) -> list[Message]:
    return messages


def separate_messages(messages: list[Message]) -> list[Message]:
    """Put calls into the assistant's message and each result into a message of its own, like OpenAI."""
    return _split(messages, lambda calls, results: [*calls, *results])


def separate_messages_without_ids(messages: list[Message]) -> list[Message]:
    without_ids = [_without_ids(each) for each in messages]
    return _split(without_ids, lambda calls, results: [*calls, *results])


def results_in_one_user_message(messages: list[Message]) -> list[Message]:
    """Put all results of a turn into one user message, like Anthropic."""
    return _split(
        messages,
        lambda calls, results: [*calls, message("user", *(part for each in results for part in each.parts))],
    )


def results_out_of_order(messages: list[Message]) -> list[Message]:
    return _split(messages, lambda calls, results: [*calls, *reversed(results)])


def updated_part(messages: list[Message]) -> list[Message]:
    """Record each call twice: first as pending, then with input and output."""
    converted: list[Message] = []
    for each in messages:
        tools = [part for part in each.parts if isinstance(part, ToolPart)]
        if tools:
            converted.append(message(each.role, *(_as_call(part) for part in tools)))
        converted.append(each)
    return numbered(converted)


SHAPES = [
    one_part,
    separate_messages,
    separate_messages_without_ids,
    results_in_one_user_message,
    results_out_of_order,
    updated_part,
]
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
EVERY_CONVERSATION = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)


def _split(messages: list[Message], order: Callable[[list[Message], list[Message]], list[Message]]) -> list[Message]:
    converted: list[Message] = []
    for number, each in enumerate(messages):
        tools = [
            _with_id(part, f"{part.tool_id}-{number}-{at}" if part.tool_id else "")
            for at, part in enumerate(each.parts)
            if isinstance(part, ToolPart)
        ]
        rest = [part for part in each.parts if not isinstance(part, ToolPart)]
        if not tools:
            converted.append(each)
            continue
        calls = [message("assistant", *rest, *(_as_call(part) for part in tools))]
        converted += order(calls, [message("tool", _as_result(part)) for part in tools])
    return numbered(converted)


def _with_id(part: ToolPart, tool_id: str) -> ToolPart:
    return ToolPart(
        tool_id=tool_id,
        tool_name=part.tool_name,
        tool_input=part.tool_input,
        tool_output=part.tool_output,
        tool_status=part.tool_status,
    )


def _without_ids(original: Message) -> Message:
    parts = [_with_id(part, "") if isinstance(part, ToolPart) else part for part in original.parts]
    return message(original.role, *parts)


def _as_call(part: ToolPart) -> ToolPart:
    return ToolPart(tool_id=part.tool_id, tool_name=part.tool_name, tool_input=part.tool_input, tool_status="pending")


def _as_result(part: ToolPart) -> ToolPart:
    return ToolPart(
        tool_id=part.tool_id, tool_name=part.tool_name, tool_output=part.tool_output, tool_status=part.tool_status
    )


@EVERY_SHAPE
@EVERY_CONVERSATION
def test_no_finished_call_is_reported_as_open(conversation: Conversation, shape: Shape) -> None:
    messages = shape(as_messages(*conversation.messages))
    assert [each.name for each in pair_calls(messages, lambda: None) if each.is_open] == []
    text = render(summarise(messages, hash_vectors), 10_000).overview
    assert "no result yet" not in text
    assert "still running" not in text


@EVERY_SHAPE
@EVERY_CONVERSATION
def test_essential_facts_are_kept_in_every_shape(conversation: Conversation, shape: Shape) -> None:
    text = render(summarise(shape(as_messages(*conversation.messages)), hash_vectors), 1_500).overview
    assert [each for each in conversation.essentials if each not in text] == []


@pytest.mark.parametrize(
    "shape", [separate_messages, results_out_of_order, results_in_one_user_message], ids=lambda shape: shape.__name__
)
@EVERY_CONVERSATION
def test_values_do_not_depend_on_the_shape(conversation: Conversation, shape: Shape) -> None:
    def values(messages: list[Message]) -> set[str]:
        same_size = [msgspec.structs.replace(each, tokens=1) for each in messages]  # the detail depends on the size
        return {line.text for line in summarise(same_size, hash_vectors).values}

    messages = as_messages(*conversation.messages)
    assert values(shape(messages)) == values(messages)


def test_a_booking_is_reported_once_and_as_done() -> None:
    text = summarise_to_overview(
        message("user", "Book me a compact car for Friday."),
        message("assistant", call("book_car", id="call_1", day="Friday", **{"class": "compact"})),
        message("tool", result("booked: ref 8842", id="call_1")),
        message("assistant", "Your car is booked."),
    )
    assert "book_car(day=Friday, class=compact) → booked: ref 8842 [#2-3]" in text
    assert text.split("## ", maxsplit=1)[1].count("book_car") == 1
    assert pending_lines(text) == ["None."]


def test_a_call_without_a_result_is_pending() -> None:
    text = summarise_to_overview(
        message("user", "Book a car and a hotel."),
        message("assistant", call("book_car", id="a", day="Friday"), call("book_hotel", id="b", city="Oslo")),
        message("tool", result("booked: ref 8842", id="a")),
        message("user", "Are you there?"),
    )
    assert "- book_hotel(city=Oslo) → no result yet [#2]" in pending_lines(text)
    assert "book_car" not in "\n".join(pending_lines(text))


@pytest.mark.parametrize("count", [2, 30, 80])
def test_every_open_call_is_listed_even_if_there_are_many_and_the_overview_is_short(count: int) -> None:
    calls = [call("restart", id=f"c{at}", host=f"web-{at:03}") for at in range(count)]
    messages = [message("user", "Restart all hosts."), message("assistant", *calls)]
    summary = summarise(numbered(messages), hash_vectors)
    own = render(summary, 60)
    earlier = render_rolling(SummaryText("", "# Session Summary"), fold(None, summary, 60))
    for overview in (own.overview, earlier.overview):
        listed = [line for line in overview.splitlines() if line.endswith("→ no result yet [#2]")]
        assert [at for at in range(count) if f"(host=web-{at:03})" not in "\n".join(listed)] == []
        assert all(len(line) <= 300 for line in listed)


def test_calls_of_one_name_without_ids_are_answered_in_order_in_a_later_archive() -> None:
    first = summarise(numbered([message("assistant", call("get", o=1), call("get", o=2))]), hash_vectors)
    answers = [message("tool", result("shipped as A", name="get")), message("tool", result("shipped as B", name="get"))]
    earlier_open_calls = open_calls([first])
    second = summarise(numbered(answers[:1]), hash_vectors, earlier_open_calls=earlier_open_calls)
    assert "get(o=1) → shipped as A" in texts([*second.steps, *second.facts])
    assert texts(update_earlier(first, second).pending) == ["get(o=2) → no result yet"]
    third = summarise(numbered(answers), hash_vectors, earlier_open_calls=earlier_open_calls)
    assert "get(o=2) → shipped as B" in texts([*third.steps, *third.facts])


def test_a_text_beside_a_result_is_not_the_result_of_another_call() -> None:
    messages = numbered(
        [
            message("assistant", call("book_car", id="c1"), call("book_hotel", id="c2", day="Friday")),
            message("tool", "took 3 seconds", result("booked: ref 8842", id="c1")),
        ]
    )
    assert [(each.name, each.is_open) for each in pair_calls(messages, lambda: None)] == [
        ("book_car", False),
        ("book_hotel", True),
    ]


def test_parallel_calls_of_one_tool_without_ids_are_answered_in_order() -> None:
    messages = numbered(
        [
            message("assistant", call("price", item="a"), call("price", item="b"), call("stock", item="a")),
            message("tool", result("10", name="price")),
            message("tool", result("3", name="stock")),
            message("tool", result("20", name="price")),
        ]
    )
    calls = pair_calls(messages, lambda: None)
    assert [(each.name, each.input["item"], each.output) for each in calls] == [
        ("price", "a", "10"),
        ("price", "b", "20"),
        ("stock", "a", "3"),
    ]


def test_the_text_of_a_tool_message_is_the_result_of_the_open_call() -> None:
    (paired,) = pair_calls(
        numbered([message("assistant", call("price", item="a")), message("tool", "costs 10 EUR")]), lambda: None
    )
    assert (paired.output, paired.is_open) == ("costs 10 EUR", False)


def test_an_id_can_be_used_again_after_its_result() -> None:
    messages = numbered(
        [
            message("assistant", call("search", id="x", q="one")),
            message("tool", result("first", id="x")),
            message("assistant", call("search", id="x", q="two")),
            message("tool", result("second", id="x")),
            message("assistant", call("search", id="x", q="three")),
        ]
    )
    calls = pair_calls(messages, lambda: None)
    assert [(each.input["q"], each.output, each.is_open) for each in calls] == [
        ("one", "first", False),
        ("two", "second", False),
        ("three", "", True),
    ]


def test_a_running_call_stays_open_until_it_ends() -> None:
    running = ToolPart(tool_id="x", tool_name="build", tool_status="running", tool_output="40 %")
    started = [message("assistant", call("build", id="x", target="all")), message("tool", running)]
    assert pair_calls(numbered(started), lambda: None)[0].is_open
    ended = [*started, message("tool", result("built in 41 s", id="x"))]
    (paired,) = pair_calls(numbered(ended), lambda: None)
    assert (paired.is_open, paired.output) == (False, "built in 41 s")


def test_a_status_update_is_not_a_second_call() -> None:
    running = ToolPart(tool_id="x", tool_name="book", tool_status="running")
    messages = [
        message("assistant", call("book", id="x", day=1)),
        message("assistant", running),
        message("tool", result("ok", id="x")),
    ]
    (paired,) = pair_calls(numbered(messages), lambda: None)
    assert (paired.input, paired.output, paired.is_open) == ({"day": 1}, "ok", False)


def test_equal_calls_of_two_archives_are_two_open_calls() -> None:
    first = summarise(numbered([message("assistant", call("remind", id="a", to="alice"))]), hash_vectors)
    second = summarise(numbered([message("assistant", call("remind", id="b", to="alice"))]), hash_vectors)
    both = combine([first, second])
    assert [line.call for line in both.pending] == ["a", "b"]
    third = summarise(
        numbered([message("tool", result("sent", id="b"))]), hash_vectors, earlier_open_calls=open_calls([both])
    )
    assert [line.call for line in combine([both, third]).pending] == ["a"]


@pytest.mark.parametrize(
    ("call_part", "result_part"),
    [
        (call("f", id="c1", x=1), result("done it", name="f")),
        (call("f", x=1), result("done it")),
        (call("f", x=1), result("done it", id="c9", name="f")),
        (call("f", id="c1", x=1), result("done it", id="c1")),
    ],
    ids=["id, then name", "name, then nothing", "name, then another id", "id, then id"],
)
def test_a_result_in_a_later_archive_is_paired_with_its_call_in_every_shape(
    call_part: ToolPart, result_part: ToolPart
) -> None:
    first = summarise(numbered([message("user", "Go."), message("assistant", call_part)]), hash_vectors)
    second = summarise(numbered([message("tool", result_part)]), hash_vectors, earlier_open_calls=open_calls([first]))
    assert combine([first, second]).pending == [line for line in first.pending if not line.call]
    assert "f(x=1) → done it" in texts([*second.steps, *second.facts])


def test_a_failed_call_is_reported_with_its_arguments_and_its_error() -> None:
    text = summarise_to_overview(
        message("user", "Run the import."),
        message("assistant", call("run_import", id="x", file="/data/orders.csv")),
        message("tool", result("Error: row 5113 has 7 columns", id="x")),
    )
    assert "run_import(file=/data/orders.csv) → error: Error: row 5113 has 7 columns" in text


def test_a_result_in_a_later_archive_closes_the_call_of_an_earlier_one() -> None:
    def summary(*messages: Message) -> Summary:
        return summarise(numbered(list(messages)), hash_vectors)

    first = summary(message("user", "Build it."), message("assistant", call("build", id="x", target="all")))
    second = summary(
        message("tool", result("built in 41 s", id="x", name="build")), message("assistant", "It is built.")
    )
    assert "build(target=all) → no result yet" in texts(first.pending)
    assert texts(combine([first, second]).pending) == []
    assert texts(update_earlier(first, second).pending) == []
