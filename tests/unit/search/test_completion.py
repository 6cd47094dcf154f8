"""A query is completed from the turns before it, unless it stands alone."""

import pytest

from holdfast.search.requests.completion import (
    MAX_ADDED,
    Turn,
    complete_by_rule,
    completion_prompt,
    parse_answer,
    stands_alone,
)

TAVERN = [
    Turn("user", "Can you book a table at the Taverna Kyra for Saturday?"),
    Turn("assistant", "The Taverna Kyra is full on Saturday. The Blue Door has room at 8 pm."),
]


@pytest.mark.parametrize(
    "query",
    [
        "When does the ferry to Naxos leave?",
        "ORD-4711",
        "hotel",
        "Casa Azul breakfast",
        "What did Caroline say about her mother?",
        "Is there a ferry on Sundays?",
        "the book that I read on the train",
        "Where is the old red car and who drives it?",
        "What kind of car does Tom drive?",
        "北京的天气怎么样",
        "🦊",
        "???",
    ],
)
def test_a_query_that_stands_alone_is_unchanged(query: str) -> None:
    assert stands_alone(query)
    assert complete_by_rule(query, TAVERN) == (query, [])


@pytest.mark.parametrize(
    "query",
    [
        "When does it open?",
        "And on Friday?",
        "what about Friday?",
        "and the other one?",
        "Friday?",
        "why?",
        "Does he like it?",
        "Which one?",
        "How long did that take?",
        "What is that?",
        "Who else came?",
        "What did we do there?",
        "那个呢？",
        "她住在哪里",
    ],
)
def test_a_query_with_an_open_reference_gets_words_of_the_turns_before(query: str) -> None:
    assert not stands_alone(query)
    completion = complete_by_rule(query, TAVERN)
    assert completion.searched == " ".join([query, *completion.added])
    assert {"Kyra", "Taverna"} <= set(completion.added)
    assert len(completion.added) <= MAX_ADDED


def test_names_and_identifiers_come_first_and_stop_words_never() -> None:
    turns = [
        Turn("user", "Please run deploy.sh for billing-api now"),
        Turn("assistant", "I did, and deploy.sh failed on the node eu-west-1."),
    ]
    added = complete_by_rule("Why did it fail?", turns).added
    assert added[0] == "deploy.sh"
    assert {"eu-west-1", "billing-api"} <= set(added)
    assert not {"the", "for", "and", "i", "please"} & {word.lower() for word in added}


def test_the_words_of_the_query_are_not_added_again() -> None:
    added = complete_by_rule("And the Taverna, what about it?", TAVERN).added
    assert "Taverna" not in added
    assert len({word.lower() for word in added}) == len(added)


def test_another_day_takes_the_place_of_the_day_before() -> None:
    assert "Saturday" not in complete_by_rule("What about Sunday?", TAVERN).added
    assert "Saturday" in complete_by_rule("And the other one?", TAVERN).added


def test_the_query_itself_is_not_one_of_the_turns_before_it() -> None:
    turns = [*TAVERN, Turn("user", "And the other one?")]
    assert complete_by_rule("And the other one?", turns) == complete_by_rule("And the other one?", TAVERN)


def test_without_turns_names_of_the_abstract_are_added() -> None:
    assert complete_by_rule("Where is it?", [], "They plan a trip to Lisbon with Marta.").added == ["Lisbon", "Marta"]
    assert complete_by_rule("Where is it?", []) == ("Where is it?", [])


def test_system_messages_and_tool_results_complete_nothing() -> None:
    turns = [Turn("system", "You are Robo of Acme Corp."), Turn("tool", "The Zebra Hotel")]
    assert complete_by_rule("Where is it?", turns).added == []


def test_a_prompt_has_the_turns_in_one_line_each_and_the_query_last() -> None:
    prompt = completion_prompt("And\nthe other one?", [*TAVERN, Turn("user", "line\nbreak", "Ann")], "A trip.")
    lines = prompt.user.splitlines()
    assert lines[-1] == "Query: And the other one?"
    assert "Ann: line break" in lines
    assert "A trip." in lines
    assert len(completion_prompt("x" * 10_000, [Turn("user", "y" * 90_000)] * 20).user) < 20_000


@pytest.mark.parametrize(
    ("answer", "completed"),
    [
        ("Is the Blue Door open on Sunday?", "Is the Blue Door open on Sunday?"),
        ('  "Is the Blue Door open?" ', "Is the Blue Door open?"),
        ("Query: Is the Blue Door open?", "Is the Blue Door open?"),
        ("", None),
        ("Sure! Here it is:\nIs the Blue Door open?", None),
        ("x" * 500, None),
        (
            "Is the Blue Door open \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645?",
            "Is the Blue Door open \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645?",
        ),
        *[
            (f"Is the Blue{char}Door open?", None)
            for char in "\x00\x1b\x7f\x85\u200b\u202e\u2028\u2066\ufeff\ud800\U000e0041"
        ],
        ("I cannot help you.", None),
    ],
)
def test_an_answer_of_a_model_is_used_only_if_it_is_a_query(answer: str, completed: str | None) -> None:
    assert parse_answer(answer, "And on Sunday?", [turn.text for turn in TAVERN]) == completed
