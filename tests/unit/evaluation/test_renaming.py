"""Data sets with other names and dates."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation_data import locomo_samples
from holdfast.evaluation.datasets import locomo
from holdfast.evaluation.model import Conversation
from holdfast.evaluation.renaming import name_table, rename_and_shift, replace_names
from holdfast.evaluation.shifting import shift_dates
from holdfast.search.time_expressions import find_times

WRITTEN = datetime(2023, 5, 8, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "shifted"),
    [
        ("30 December 2022", "5 January 2024"),
        ("Dec 30th, 2022", "Jan 5th, 2024"),
        ("on December 25th", "on December 31st"),
        ("2022-12-30", "2024-01-05"),
        ("05/05/2023", "05/10/2024"),
        ("30.12.2022", "5.1.2024"),
        ("in 2022", "in 2023"),
        ("in May 2023", "in May 2024"),
        ("summer of 2022", "summer of 2023"),
        ("winter 2022", "winter 2023"),
        ("Q4 2022", "Q4 2023"),
        ("the week before 9 June 2023", "the week before 14 June 2024"),
        ("2022年12月30日", "2024年1月5日"),
        ("last Friday, two weeks ago, yesterday", "last Friday, two weeks ago, yesterday"),
        ("ORD-2023-4711 costs 12 euros", "ORD-2023-4711 costs 12 euros"),
    ],
)
def test_dates_in_a_text_are_shifted_and_relative_times_are_kept(text: str, shifted: str) -> None:
    assert shift_dates(text, WRITTEN, 371) == shifted


def test_weekdays_are_shifted_by_less_than_a_week() -> None:
    assert shift_dates("on Friday", WRITTEN, 3) == "on Monday"


@given(st.dates(date(1950, 1, 1), date(2050, 12, 31)), st.integers(-3_000, 3_000))
def test_a_shifted_date_is_that_many_days_later(day: date, days: int) -> None:
    for text in (f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}", day.isoformat()):
        found = find_times(shift_dates(text, WRITTEN, days), micros(WRITTEN))
        assert [time.first_day for time in found] == [(day - date(1970, 1, 1)).days + days]


@given(st.text(max_size=100))
def test_any_text_can_be_shifted(text: str) -> None:
    shift_dates(text, WRITTEN, 371)


def texts(conversation: Conversation) -> list[str]:
    return [part.text for record in conversation.sessions for each in record.messages() for part in each.parts or []]


def test_names_are_replaced_the_same_way_in_turns_and_questions() -> None:
    dataset = locomo.read_dataset(locomo_samples(1))
    (before,), (after,) = dataset.conversations, rename_and_shift(dataset, rename=True, days=0).conversations
    table = name_table(before)
    assert set(table) >= {"Laura", "Tim"}
    assert after.questions[0].text == replace_names(before.questions[0].text, table)
    assert not {"Laura", "Tim"} & set(" ".join([after.questions[0].text, *texts(after)]).split())
    speakers = {message.peer_id for record in after.sessions for message in record.messages()}
    assert speakers == {table["Laura"], table["Tim"]}


def test_evidence_and_ids_stay_the_same() -> None:
    dataset = locomo.read_dataset(locomo_samples(2))
    changed = rename_and_shift(dataset, rename=True, days=371)
    for before, after in zip(dataset.conversations, changed.conversations, strict=True):
        assert [question.turns for question in after.questions] == [question.turns for question in before.questions]
        assert [record.session_id for record in after.sessions] == [record.session_id for record in before.sessions]


def test_all_times_are_shifted_by_the_same_number_of_days() -> None:
    dataset = locomo.read_dataset(locomo_samples(1))
    (before,), (after,) = dataset.conversations, rename_and_shift(dataset, rename=False, days=7).conversations
    assert texts(after) == texts(before)  # they have relative times only
    for one, other in zip(before.sessions, after.sessions, strict=True):
        assert one.created_at is not None
        assert other.created_at == one.created_at + 7 * DAY
        assert all(message.created_at == other.created_at for message in other.messages())
    asked_at = before.questions[0].asked_at
    assert asked_at is not None
    assert after.questions[0].asked_at == asked_at + 7 * DAY


def test_a_word_that_also_occurs_in_lower_case_is_no_name() -> None:
    samples = locomo_samples(1)
    samples[0]["conversation"]["session_1"][0]["text"] = "Max met Rob and Mark. I will mark it, to the max."
    table = name_table(locomo.read_dataset(samples).conversations[0])
    assert "Rob" in table
    assert "Max" not in table
    assert "Mark" not in table


def test_the_short_form_of_a_speaker_is_replaced_by_a_short_form() -> None:
    samples = locomo_samples(1)
    samples[0]["conversation"]["session_1"][0]["text"] = "Hey Lau, how are you?"
    table = name_table(locomo.read_dataset(samples).conversations[0])
    assert table["Lau"] == table["Laura"][:3]


def test_the_name_of_the_changed_data_says_what_was_changed() -> None:
    dataset = locomo.read_dataset(locomo_samples(1))
    assert rename_and_shift(dataset, rename=True, days=371).name == "locomo (renamed, shifted by 371 days)"
    assert rename_and_shift(dataset, rename=False, days=0).name == "locomo"
