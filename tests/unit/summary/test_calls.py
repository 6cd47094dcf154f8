"""Tool calls and their results, in every shape in which agents write them down."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from conversations import CONVERSATIONS, Conversation
from conversations.spoken import hashed, spoken
from holdfast.model.messages import Message, Role
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.model.summaries import Line, Summary
from holdfast.summary import Rendered, as_of, combine, fold, open_calls, render, render_rolling, summarise
from holdfast.summary.tools.pairing import pair
from holdfast.text import tokens

Shape = Callable[[list[Message]], list[Message]]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def said(role: Role, *parts: Part | str) -> Message:
    made = [TextPart(part) if isinstance(part, str) else part for part in parts]
    return Message("m", role, made, NOW, 0, tokens.of_parts(made))


def numbered(messages: list[Message]) -> list[Message]:
    return [
        Message(f"m{seq}", each.role, each.parts, NOW, seq, each.tokens) for seq, each in enumerate(messages, start=1)
    ]


def call(name: str, *, id: str = "", **given: object) -> ToolPart:
    return ToolPart(tool_id=id, tool_name=name, tool_input=given, tool_status="pending")


def result(output: object, *, id: str = "", name: str = "", success: bool = True) -> ToolPart:
    return ToolPart(tool_id=id, tool_name=name, output=output, success=success)


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def pending(text: str) -> list[str]:
    """The lines of an overview that say what is still to be done."""
    return text.partition("## Pending Tasks\n")[2].split("\n\n", maxsplit=1)[0].splitlines()


def overview_of(*messages: Message) -> str:
    return render(summarise(numbered(list(messages)), hashed), 1_500).overview


def one_part(messages: list[Message]) -> list[Message]:
    return messages


def apart(messages: list[Message]) -> list[Message]:
    """Calls in the assistant's message, each result in a message of its own, as OpenAI has them."""
    return _split(messages, lambda calls, results: [*calls, *results])


def apart_without_ids(messages: list[Message]) -> list[Message]:
    bare = [_without_ids(each) for each in messages]
    return _split(bare, lambda calls, results: [*calls, *results])


def results_in_one_user_message(messages: list[Message]) -> list[Message]:
    """As Anthropic has them."""
    return _split(
        messages,
        lambda calls, results: [*calls, said("user", *(part for each in results for part in each.parts))],
    )


def results_out_of_order(messages: list[Message]) -> list[Message]:
    return _split(messages, lambda calls, results: [*calls, *reversed(results)])


def a_part_that_is_updated(messages: list[Message]) -> list[Message]:
    """First pending, then again with input and output."""
    found: list[Message] = []
    for each in messages:
        tools = [part for part in each.parts if isinstance(part, ToolPart)]
        if tools:
            found.append(said(each.role, *(_as_call(part) for part in tools)))
        found.append(each)
    return numbered(found)


SHAPES = [one_part, apart, apart_without_ids, results_in_one_user_message, results_out_of_order, a_part_that_is_updated]
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda each: each.__name__)
EVERY_CONVERSATION = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.name)


def _split(messages: list[Message], order: Callable[[list[Message], list[Message]], list[Message]]) -> list[Message]:
    found: list[Message] = []
    for number, each in enumerate(messages):
        tools = [
            _with_id(part, f"{part.tool_id}-{number}-{at}" if part.tool_id else "")
            for at, part in enumerate(each.parts)
            if isinstance(part, ToolPart)
        ]
        rest = [part for part in each.parts if not isinstance(part, ToolPart)]
        if not tools:
            found.append(each)
            continue
        calls = [said("assistant", *rest, *(_as_call(part) for part in tools))]
        found += order(calls, [said("tool", _as_result(part)) for part in tools])
    return numbered(found)


def _with_id(part: ToolPart, tool_id: str) -> ToolPart:
    return ToolPart(
        tool_id=tool_id,
        tool_name=part.tool_name,
        tool_input=part.tool_input,
        tool_output=part.tool_output,
        tool_status=part.tool_status,
    )


def _without_ids(message: Message) -> Message:
    bare = [_with_id(part, "") if isinstance(part, ToolPart) else part for part in message.parts]
    return said(message.role, *bare)


def _as_call(part: ToolPart) -> ToolPart:
    return ToolPart(tool_id=part.tool_id, tool_name=part.tool_name, tool_input=part.tool_input, tool_status="pending")


def _as_result(part: ToolPart) -> ToolPart:
    return ToolPart(
        tool_id=part.tool_id, tool_name=part.tool_name, tool_output=part.tool_output, tool_status=part.tool_status
    )


@EVERY_SHAPE
@EVERY_CONVERSATION
def test_no_finished_call_is_reported_as_open(conversation: Conversation, shape: Shape) -> None:
    messages = shape(spoken(*conversation.messages))
    assert [each.name for each in pair(messages, lambda: None) if each.is_open] == []
    text = render(summarise(messages, hashed), 10_000).overview
    assert "no result yet" not in text
    assert "still running" not in text


@EVERY_SHAPE
@EVERY_CONVERSATION
def test_what_nobody_may_forget_is_kept_in_every_shape(conversation: Conversation, shape: Shape) -> None:
    text = render(summarise(shape(spoken(*conversation.messages)), hashed), 1_500).overview
    assert [each for each in conversation.essentials if each not in text] == []


@pytest.mark.parametrize(
    "shape", [apart, results_out_of_order, results_in_one_user_message], ids=lambda it: it.__name__
)
@EVERY_CONVERSATION
def test_values_do_not_depend_on_the_shape(conversation: Conversation, shape: Shape) -> None:
    def values(messages: list[Message]) -> set[str]:
        alike = [msgspec.structs.replace(message, tokens=1) for message in messages]  # detail depends on the size
        return {line.text for line in summarise(alike, hashed).values}

    whole = spoken(*conversation.messages)
    assert values(shape(whole)) == values(whole)


def test_a_booking_is_reported_once_and_as_done() -> None:
    text = overview_of(
        said("user", "Book me a compact car for Friday."),
        said("assistant", call("book_car", id="call_1", day="Friday", **{"class": "compact"})),
        said("tool", result("booked: ref 8842", id="call_1")),
        said("assistant", "Your car is booked."),
    )
    assert "book_car(day=Friday, class=compact) → booked: ref 8842 [#2-3]" in text
    assert text.split("## ", maxsplit=1)[1].count("book_car") == 1
    assert pending(text) == ["None."]


def test_a_call_whose_result_never_comes_is_pending() -> None:
    text = overview_of(
        said("user", "Book a car and a hotel."),
        said("assistant", call("book_car", id="a", day="Friday"), call("book_hotel", id="b", city="Oslo")),
        said("tool", result("booked: ref 8842", id="a")),
        said("user", "Are you there?"),
    )
    assert "- book_hotel(city=Oslo) → no result yet [#2]" in pending(text)
    assert "book_car" not in "\n".join(pending(text))


@pytest.mark.parametrize("count", [2, 30, 80])
def test_every_open_call_is_listed_however_many_and_however_short_the_overview(count: int) -> None:
    calls = [call("restart", id=f"c{at}", host=f"web-{at:03}") for at in range(count)]
    talk = [said("user", "Restart all hosts."), said("assistant", *calls)]
    summary = summarise(numbered(talk), hashed)
    own = render(summary, 60)
    earlier = render_rolling(Rendered("", "# Session Summary"), fold(None, summary, 60))
    for overview in (own.overview, earlier.overview):
        listed = [line for line in overview.splitlines() if line.endswith("→ no result yet [#2]")]
        assert [at for at in range(count) if f"(host=web-{at:03})" not in "\n".join(listed)] == []
        assert all(len(line) <= 300 for line in listed)


def test_calls_of_one_name_without_ids_are_answered_in_order_in_a_later_archive() -> None:
    first = summarise(numbered([said("assistant", call("get", o=1), call("get", o=2))]), hashed)
    answers = [said("tool", result("shipped as A", name="get")), said("tool", result("shipped as B", name="get"))]
    waiting = open_calls([first])
    second = summarise(numbered(answers[:1]), hashed, waiting=waiting)
    assert "get(o=1) → shipped as A" in texts([*second.steps, *second.facts])
    assert texts(as_of(first, second).pending) == ["get(o=2) → no result yet"]
    third = summarise(numbered(answers), hashed, waiting=waiting)
    assert "get(o=2) → shipped as B" in texts([*third.steps, *third.facts])


def test_a_text_beside_a_result_answers_no_other_call() -> None:
    messages = numbered(
        [
            said("assistant", call("book_car", id="c1"), call("book_hotel", id="c2", day="Friday")),
            said("tool", "took 3 seconds", result("booked: ref 8842", id="c1")),
        ]
    )
    assert [(each.name, each.is_open) for each in pair(messages, lambda: None)] == [
        ("book_car", False),
        ("book_hotel", True),
    ]


def test_parallel_calls_of_one_tool_without_ids_are_answered_in_order() -> None:
    messages = numbered(
        [
            said("assistant", call("price", item="a"), call("price", item="b"), call("stock", item="a")),
            said("tool", result("10", name="price")),
            said("tool", result("3", name="stock")),
            said("tool", result("20", name="price")),
        ]
    )
    found = pair(messages, lambda: None)
    assert [(each.name, each.input["item"], each.output) for each in found] == [
        ("price", "a", "10"),
        ("price", "b", "20"),
        ("stock", "a", "3"),
    ]


def test_a_text_of_a_tool_without_id_and_name_answers_the_call_that_waits() -> None:
    (found,) = pair(numbered([said("assistant", call("price", item="a")), said("tool", "costs 10 EUR")]), lambda: None)
    assert (found.output, found.is_open) == ("costs 10 EUR", False)


def test_an_id_that_was_answered_can_be_used_again() -> None:
    messages = numbered(
        [
            said("assistant", call("search", id="x", q="one")),
            said("tool", result("first", id="x")),
            said("assistant", call("search", id="x", q="two")),
            said("tool", result("second", id="x")),
            said("assistant", call("search", id="x", q="three")),
        ]
    )
    found = pair(messages, lambda: None)
    assert [(each.input["q"], each.output, each.is_open) for each in found] == [
        ("one", "first", False),
        ("two", "second", False),
        ("three", "", True),
    ]


def test_a_call_that_runs_stays_open_until_it_ends() -> None:
    runs = ToolPart(tool_id="x", tool_name="build", tool_status="running", tool_output="40 %")
    begun = [said("assistant", call("build", id="x", target="all")), said("tool", runs)]
    assert pair(numbered(begun), lambda: None)[0].is_open
    ended = [*begun, said("tool", result("built in 41 s", id="x"))]
    (found,) = pair(numbered(ended), lambda: None)
    assert (found.is_open, found.output) == (False, "built in 41 s")


def test_a_status_without_output_is_no_second_call() -> None:
    runs = ToolPart(tool_id="x", tool_name="book", tool_status="running")
    talk = [said("assistant", call("book", id="x", day=1)), said("assistant", runs), said("tool", result("ok", id="x"))]
    (found,) = pair(numbered(talk), lambda: None)
    assert (found.input, found.output, found.is_open) == ({"day": 1}, "ok", False)


def test_equal_calls_of_two_archives_are_two_open_calls() -> None:
    first = summarise(numbered([said("assistant", call("remind", id="a", to="alice"))]), hashed)
    second = summarise(numbered([said("assistant", call("remind", id="b", to="alice"))]), hashed)
    both = combine([first, second])
    assert [line.call for line in both.pending] == ["a", "b"]
    third = summarise(numbered([said("tool", result("sent", id="b"))]), hashed, waiting=open_calls([both]))
    assert [line.call for line in combine([both, third]).pending] == ["a"]


@pytest.mark.parametrize(
    ("made", "answered"),
    [
        (call("f", id="c1", x=1), result("done it", name="f")),
        (call("f", x=1), result("done it")),
        (call("f", x=1), result("done it", id="c9", name="f")),
        (call("f", id="c1", x=1), result("done it", id="c1")),
    ],
    ids=["id, then name", "name, then nothing", "name, then another id", "id, then id"],
)
def test_a_result_in_a_later_archive_finds_its_call_in_every_shape(made: ToolPart, answered: ToolPart) -> None:
    first = summarise(numbered([said("user", "Go."), said("assistant", made)]), hashed)
    second = summarise(numbered([said("tool", answered)]), hashed, waiting=open_calls([first]))
    assert combine([first, second]).pending == [line for line in first.pending if not line.call]
    assert "f(x=1) → done it" in texts([*second.steps, *second.facts])


def test_a_failed_call_is_reported_with_its_arguments_and_its_error() -> None:
    text = overview_of(
        said("user", "Run the import."),
        said("assistant", call("run_import", id="x", file="/data/orders.csv")),
        said("tool", result("Error: row 5113 has 7 columns", id="x")),
    )
    assert "run_import(file=/data/orders.csv) → error: Error: row 5113 has 7 columns" in text


def test_a_result_in_a_later_archive_closes_the_call_of_an_earlier_one() -> None:
    def summary(*messages: Message) -> Summary:
        return summarise(numbered(list(messages)), hashed)

    first = summary(said("user", "Build it."), said("assistant", call("build", id="x", target="all")))
    second = summary(said("tool", result("built in 41 s", id="x", name="build")), said("assistant", "It is built."))
    assert "build(target=all) → no result yet" in texts(first.pending)
    assert texts(combine([first, second]).pending) == []
    assert texts(as_of(first, second).pending) == []
