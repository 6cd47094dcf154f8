"""LoCoMo and LongMemEval as data sets, and our own chats in LongMemEval's format."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from assistant_chats import load_chats
from assistant_chats import longmemeval_rows as rows_of_chats
from evaluation_data import locomo_samples, longmemeval_rows
from holdfast.errors import InvalidArgumentError
from holdfast.evaluation.datasets import locomo, longmemeval
from holdfast.evaluation.datasets.locomo import parse_evidence
from holdfast.search.analysis import terms_of
from holdfast.search.query import parse_query
from holdfast.search.stems import stem

MIN_QUESTIONS = 60
MIN_SHARE_WITHOUT_COMMON_WORDS = 1 / 3


@pytest.mark.parametrize(
    ("evidence", "turns"),
    [
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D:11:26"], ["D11:26"]),
        (["D30:05"], ["D30:5"]),
        (["D8:6 D9:17", "D8:6"], ["D8:6", "D9:17"]),
        ("D8:6", ["D8:6"]),
        (["D99:1", "D"], []),
        ([], []),
        (None, []),
    ],
)
def test_evidence_is_normalised_and_unknown_turns_are_dropped(evidence: Any, turns: list[str]) -> None:
    assert parse_evidence(evidence, {"D8:6", "D9:17", "D11:26", "D30:5"}) == turns


def test_a_sample_becomes_the_conversation_of_its_own_user() -> None:
    dataset = locomo.read_dataset(locomo_samples(2, sessions=4))
    assert [conversation.name for conversation in dataset.conversations] == ["conv-1", "conv-2"]
    question = dataset.conversations[0].questions[1]
    assert (question.turns, question.sessions) == (("D2:3",), ("conv-1-session_2",))


def test_a_question_is_asked_at_the_time_of_the_last_session() -> None:
    (conversation,) = locomo.read_dataset(locomo_samples(1)).conversations
    times = [record.created_at for record in conversation.sessions]
    assert conversation.questions[0].asked_at == times[-1] == max(time for time in times if time)


def test_adversarial_questions_are_not_asked_and_not_counted() -> None:
    dataset = locomo.read_dataset(locomo_samples(1))
    assert {question.category for question in dataset.conversations[0].questions} <= set(locomo.CATEGORIES.values())
    assert dataset.left_out == 1  # the one with an unknown turn


def test_a_blank_question_is_left_out_and_counted() -> None:
    samples, rows = locomo_samples(1), longmemeval_rows(3)
    whole = [locomo.read_dataset(samples), longmemeval.read_dataset(rows)]
    samples[0]["qa"][0]["question"] = " \n"
    rows[1]["question"] = ""
    for before, after in zip(whole, [locomo.read_dataset(samples), longmemeval.read_dataset(rows)], strict=True):
        assert after.left_out == before.left_out + 1
        assert all(question.text.strip() for each in after.conversations for question in each.questions)


@pytest.mark.parametrize("value", [{}, [{"conversation": {"session_1": []}}], ["x"], 7])
def test_other_json_is_not_locomo(value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        locomo.read_dataset(value)


def test_a_haystack_becomes_sessions_with_valid_ids_and_times() -> None:
    dataset = longmemeval.read_dataset(longmemeval_rows(3))
    conversation = dataset.conversations[0]
    assert [record.session_id for record in conversation.sessions] == ["noise-1", "answer_1"]
    assert conversation.sessions[1].created_at == datetime(2023, 5, 21, 10, tzinfo=UTC)
    messages = list(conversation.sessions[1].messages())
    assert [(message.id, message.role) for message in messages] == [("answer_1:1", "user"), ("answer_1:2", "assistant")]


def test_the_evidence_is_the_turns_with_the_answer_and_their_session() -> None:
    question = longmemeval.read_dataset(longmemeval_rows(1)).conversations[0].questions[0]
    assert (question.turns, question.sessions) == (("answer_1:1",), ("answer_1",))
    assert question.asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)


def test_abstention_questions_are_left_out() -> None:
    dataset = longmemeval.read_dataset(longmemeval_rows(2))
    assert [question.id for each in dataset.conversations for question in each.questions] == ["q1", "q2"]


def test_questions_with_the_same_haystack_share_a_conversation() -> None:
    row = longmemeval_rows(1)[0]
    unmarked = [[{**turn, "has_answer": False} for turn in session] for session in row["haystack_sessions"]]
    other = {**row, "question_id": "q9", "haystack_sessions": unmarked}
    (conversation,) = longmemeval.read_dataset([row, other]).conversations
    assert [(question.id, question.turns) for question in conversation.questions] == [
        ("q1", ("answer_1:1",)),
        ("q9", ()),
    ]


def test_a_repeated_session_id_is_made_unique() -> None:
    row = longmemeval_rows(1)[0] | {"haystack_session_ids": ["same", "same"], "answer_session_ids": ["same"]}
    (conversation,) = longmemeval.read_dataset([row]).conversations
    assert len({record.session_id for record in conversation.sessions}) == 2


@pytest.mark.parametrize(
    "change", [{"question": 7}, {"haystack_dates": []}, {"question_date": "soon"}, {"haystack_session_ids": []}]
)
def test_a_damaged_row_is_an_error_that_names_it(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[0\]|q1"):
        longmemeval.read_dataset([longmemeval_rows(1)[0] | change])


def test_our_chats_have_enough_questions_of_every_type() -> None:
    types = Counter(question.type for chat in load_chats() for question in chat.questions)
    assert types.total() >= MIN_QUESTIONS
    assert set(types) == {"single-fact", "preference", "time", "update", "multi-session", "identifier"}
    assert len(load_chats()) == 12


def test_a_third_of_our_questions_has_no_content_word_of_its_evidence() -> None:
    pairs = [(question, chat.evidence(question)) for chat in load_chats() for question in chat.questions]
    without = [
        question
        for question, evidence in pairs
        if {stem(word) for word in parse_query(question.text, 0).words}.isdisjoint(
            stem(word) for turn in evidence for word in terms_of(turn.text)
        )
    ]
    assert len(without) / len(pairs) >= MIN_SHARE_WITHOUT_COMMON_WORDS


def test_the_evidence_of_our_questions_is_in_short_turns_of_the_user() -> None:
    for chat in load_chats():
        assert len({question.text for question in chat.questions}) == len(chat.questions)
        assert [session.date for session in chat.sessions] == sorted(session.date for session in chat.sessions)
        for question in chat.questions:
            assert all(turn.role == "user" for turn in chat.evidence(question)), question.id
    lengths = [(turn.role, len(turn.text)) for chat in load_chats() for each in chat.sessions for turn in each.turns]
    user, assistant = ([size for role, size in lengths if role == wanted] for wanted in ("user", "assistant"))
    assert sum(assistant) / len(assistant) > 5 * sum(user) / len(user)


def test_our_chats_are_in_longmemevals_format() -> None:
    dataset = longmemeval.read_dataset(rows_of_chats())
    questions = [question for each in dataset.conversations for question in each.questions]
    assert dataset.left_out == 0
    assert all(question.turns and question.sessions for question in questions)
    for conversation in dataset.conversations:
        last = max(record.created_at for record in conversation.sessions if record.created_at is not None)
        assert all(question.asked_at is not None and question.asked_at >= last for question in conversation.questions)
