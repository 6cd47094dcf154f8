"""Times that texts name, in English and in Chinese."""

import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.analysis import MAX_DATES, analyse
from holdfast.search.time_expressions import TRIGGERS, asks_for_time, find_times
from holdfast.search.times.english_words import MONTHS, WEEKDAYS
from holdfast.testing.timing.growth import best_time, growth_problem

NOW = datetime(2023, 5, 10, 12, tzinfo=UTC)  # a Wednesday
EPOCH = date(1970, 1, 1)
DATES = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def micros(now: datetime) -> int:
    return (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def periods(text: str, now: datetime = NOW) -> list[str]:
    """Return the periods that a text names, as "2023-05-07" or "2023-05-01..2023-05-07"."""
    found = []
    for each in find_times(text, micros(now)):
        first, last = (str(EPOCH + timedelta(day)) for day in (each.first_day, each.last_day))
        found.append(first if first == last else f"{first}..{last}")
    return found


def expressions(text: str, now: datetime = NOW) -> list[str]:
    return [text[each.start : each.end] for each in find_times(text, micros(now))]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("yesterday", "2023-05-09"),
        ("What did I eat today?", "2023-05-10"),
        ("Tonight we sing.", "2023-05-10"),
        ("See you tomorrow!", "2023-05-11"),
        ("last night's show", "2023-05-09"),
        ("this morning", "2023-05-10"),
        ("the day before yesterday", "2023-05-08"),
        ("the day after tomorrow", "2023-05-12"),
        ("the other day", "2023-05-03..2023-05-09"),
        ("five minutes ago", "2023-05-10"),
        ("3 days ago", "2023-05-07"),
        ("I've been playing for three months now.", "2023-01-26..2023-02-25"),
        ("six days ago", "2023-05-03..2023-05-05"),
        ("two weeks ago", "2023-04-23..2023-04-29"),
        ("two\nweeks ago", "2023-04-23..2023-04-29"),
        ("a month ago", "2023-03-31..2023-04-20"),
        ("twelve years ago", "2011-01-01..2011-12-31"),
        ("a few days ago", "2023-05-05..2023-05-08"),
        ("a couple of weeks ago", "2023-04-19..2023-04-26"),
        ("a couple weeks ago", "2023-04-19..2023-04-26"),
        ("several months ago", "2022-10-10..2023-02-10"),
        ("two weekends ago", "2023-04-29..2023-04-30"),
        ("in two weeks", "2023-05-21..2023-05-27"),
        ("three days from now", "2023-05-13"),
        ("for the past two weeks", "2023-04-26..2023-05-10"),
        ("over the last few days", "2023-05-05..2023-05-10"),
        ("in the next three months", "2023-05-10..2023-08-10"),
        ("last week", "2023-05-01..2023-05-07"),
        ("this week", "2023-05-08..2023-05-14"),
        ("next week", "2023-05-15..2023-05-21"),
        ("the week before last", "2023-04-24..2023-04-30"),
        ("last month", "2023-04-01..2023-04-30"),
        ("this month", "2023-05-01..2023-05-31"),
        ("next month", "2023-06-01..2023-06-30"),
        ("last year", "2022-01-01..2022-12-31"),
        ("next year", "2024-01-01..2024-12-31"),
        ("last weekend", "2023-05-06..2023-05-07"),
        ("this past weekend", "2023-05-06..2023-05-07"),
        ("over the weekend", "2023-05-06..2023-05-07"),
        ("this weekend", "2023-05-13..2023-05-14"),
        ("next weekend", "2023-05-20..2023-05-21"),
        ("last quarter", "2023-01-01..2023-03-31"),
    ],
)
def test_a_relative_expression_is_resolved_against_now(text: str, period: str) -> None:
    assert periods(text) == [period]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("last May", "2022-05-01..2022-05-31"),
        ("last April", "2023-04-01..2023-04-30"),
        ("last June", "2022-06-01..2022-06-30"),
        ("this May", "2023-05-01..2023-05-31"),
        ("next May", "2024-05-01..2024-05-31"),
        ("next June", "2023-06-01..2023-06-30"),
        ("in June", "2022-06-01..2022-06-30"),
        ("in may", "2023-05-01..2023-05-31"),
        ("It was cold in January.", "2023-01-01..2023-01-31"),
        ("I'll move there in August", "2023-08-01..2023-08-31"),
        ("We moved there in August", "2022-08-01..2022-08-31"),
        ("last Friday", "2023-05-05"),
        ("last Wednesday", "2023-05-03"),
        ("on Friday", "2023-05-05"),
        ("on Wednesday", "2023-05-10"),
        ("We're going there on Friday", "2023-05-12"),
        ("this Friday", "2023-05-12"),
        ("next Friday", "2023-05-12..2023-05-19"),
        ("Friday of last week", "2023-05-05"),
        ("Tuesday next week", "2023-05-16"),
        ("on Mon", "2023-05-08"),
        ("last summer", "2022-06-01..2022-08-31"),
        ("this summer", "2023-06-01..2023-08-31"),
        ("in the fall", "2022-09-01..2022-11-30"),
        ("last winter", "2022-12-01..2023-02-28"),
        ("next spring", "2024-03-01..2024-05-31"),
        ("7 May", "2023-05-07"),
        ("7 June", "2022-06-07"),
        ("We'll meet on June 7", "2023-06-07"),
        ("next Monday", "2023-05-15"),
        ("We met on the 4th.", "2023-05-04"),
        ("We met on the 15th.", "2023-04-15"),
        ("We'll meet on the 15th.", "2023-05-15"),
        ("Q1", "2023-01-01..2023-03-31"),
        ("Q4", "2022-10-01..2022-12-31"),
    ],
)
def test_a_name_without_a_year_is_the_nearest_one(text: str, period: str) -> None:
    assert periods(text) == [period]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("in 2023", "2023-01-01..2023-12-31"),
        ("In 2023, we moved.", "2023-01-01..2023-12-31"),
        ("the year 1999", "1999-01-01..1999-12-31"),
        ("in the 1990s", "1990-01-01..1999-12-31"),
        ("mid-2022", "2022-05-02..2022-08-31"),
        ("in May 2023", "2023-05-01..2023-05-31"),
        ("May 2023", "2023-05-01..2023-05-31"),
        ("june of 2021", "2021-06-01..2021-06-30"),
        ("late July 2022", "2022-07-21..2022-07-31"),
        ("the end of May 2023", "2023-05-21..2023-05-31"),
        ("7 May 2023", "2023-05-07"),
        ("the 7th of May, 2022", "2022-05-07"),
        ("May 7th, 2023", "2023-05-07"),
        ("may 7 2023", "2023-05-07"),
        ("Dec. 24, 2022", "2022-12-24"),
        ("Friday, 5 May 2023", "2023-05-05"),
        ("2023-05-07", "2023-05-07"),
        ("2023-05-07T10:11:12Z", "2023-05-07"),
        ("2023/5/7", "2023-05-07"),
        ("2023-05", "2023-05-01..2023-05-31"),
        ("logs/2023-05-07.txt", "2023-05-07"),
        ("5/7/2023", "2023-05-07"),
        ("25/7/2023", "2023-07-25"),
        ("7.5.2023", "2023-05-07"),
        ("summer 2022", "2022-06-01..2022-08-31"),
        ("the winter of 2021", "2021-12-01..2022-02-28"),
        ("Q2 2023", "2023-04-01..2023-06-30"),
        ("the second quarter of 2022", "2022-04-01..2022-06-30"),
        ("the week of 9 June 2023", "2023-06-05..2023-06-11"),
        ("the week before 9 June 2023", "2023-06-02..2023-06-08"),
        ("the week after June 9, 2023", "2023-06-10..2023-06-16"),
        ("the weekend before 15 July 2023", "2023-07-08..2023-07-09"),
        ("the Friday before 15 July 2023", "2023-07-14"),
        ("the sunday after 15 July 2023", "2023-07-16"),
        ("the first weekend of August 2023", "2023-08-05..2023-08-06"),
        ("the last weekend of August 2023", "2023-08-26..2023-08-27"),
        ("the third week of May 2022", "2022-05-15..2022-05-21"),
        ("the second Tuesday of May 2022", "2022-05-10"),
    ],
)
def test_a_date_with_a_year_does_not_depend_on_now(text: str, period: str) -> None:
    assert periods(text) == periods(text, NOW + timedelta(days=400)) == [period]


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("我昨天去了医院", "2023-05-09"),
        ("今天", "2023-05-10"),
        ("昨晚没睡好", "2023-05-09"),
        ("前天", "2023-05-08"),
        ("大前天", "2023-05-07"),
        ("明天开会", "2023-05-11"),
        ("后天", "2023-05-12"),
        ("上周", "2023-05-01..2023-05-07"),
        ("上个星期三", "2023-05-03"),
        ("上周五的会议", "2023-05-05"),
        ("下周末", "2023-05-20..2023-05-21"),
        ("周五", "2023-05-05"),
        ("上个月", "2023-04-01..2023-04-30"),
        ("本月", "2023-05-01..2023-05-31"),
        ("去年", "2022-01-01..2022-12-31"),
        ("前年", "2021-01-01..2021-12-31"),
        ("去年夏天", "2022-06-01..2022-08-31"),
        ("去年十一月", "2022-11-01..2022-11-30"),
        ("2023年", "2023-01-01..2023-12-31"),
        ("2023年5月", "2023-05-01..2023-05-31"),
        ("2023年5月7日", "2023-05-07"),
        ("2023年第三季度", "2023-07-01..2023-09-30"),
        ("12月25日", "2022-12-25"),
        ("5月7号", "2023-05-07"),
        ("三天前", "2023-05-07"),
        ("几天前", "2023-05-05..2023-05-08"),
        ("两周前", "2023-04-23..2023-04-29"),
        ("三个月以前", "2023-01-31..2023-02-20"),
        ("两年前", "2021-01-01..2021-12-31"),
    ],
)
def test_chinese_expressions_are_resolved(text: str, period: str) -> None:
    assert periods(text) == [period]


@pytest.mark.parametrize(
    "text",
    [
        "recently",
        "I have been tired lately.",
        "I may march on",
        "May is my sister, April my aunt",
        "every Friday",
        "The sun sat low",
        "spring water will fall",
        "a great day",
        "the 4th floor",
        "on the 31st",
        "on the 15th of the month",
        "three years of work",
        "ORD-2023-4711",
        "v2023.1",
        "2023 people",
        "31 June 2023",
        "2023-13-07",
        "the last week of school",
        "99999999 years ago",
        "2023年13月",
        "一天一个苹果",
        "",
        "\ud800 day \udfff",
    ],
)
def test_a_text_without_a_definite_time_has_none(text: str) -> None:
    assert periods(text) == []


@pytest.mark.parametrize("text", ["900 years ago", "in the last 900 months", "去年"])
def test_a_time_before_the_first_year_is_left_out(text: str) -> None:
    assert periods(text, NOW.replace(year=1)) == []


def test_several_times_are_found_in_order_with_their_places() -> None:
    text = "Yesterday I found the ticket of 7 May 2022; 我昨天 paid, and next week we fly."
    assert expressions(text) == ["Yesterday", "7 May 2022", "昨天", "next week"]


def test_words_on_both_sides_of_a_full_stop_are_not_joined() -> None:
    assert expressions("It rained in May. 7 people came. That was last. Week by week it grew.") == ["May"]


def test_a_period_follows_now_over_the_end_of_a_year() -> None:
    new_year = datetime(2024, 1, 1, tzinfo=UTC)
    assert periods("last month, last week, last weekend, last quarter", new_year) == [
        "2023-12-01..2023-12-31",
        "2023-12-25..2023-12-31",
        "2023-12-30..2023-12-31",
        "2023-10-01..2023-12-31",
    ]
    assert periods("this winter", new_year) == ["2023-12-01..2024-02-29"]


def test_a_month_ago_from_a_long_month_ends_in_the_short_one() -> None:
    assert periods("a month ago", datetime(2023, 3, 31, tzinfo=UTC)) == ["2023-02-18..2023-03-10"]


@pytest.mark.parametrize("now", [-(10**30), -1, 0, 253_402_300_799_000_000, 10**30])
def test_any_time_of_writing_is_accepted(now: int) -> None:
    find_times("yesterday, last year, next May, two years ago, 7 May, this summer, 去年, 上个月, 上周五, 三年前", now)


@given(DATES)
def test_a_full_date_is_that_day_in_every_notation(day: date) -> None:
    name = MONTHS[day.month - 1]
    for text in (
        f"{day.day} {name.title()} {day.year}",
        f"{name.title()} {day.day}, {day.year}",
        f"{name[:3].title()} {day.day} {day.year}",
        day.isoformat(),
        f"{day.month}/{day.day}/{day.year}",
        f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        assert periods(f"It was on {text}, I think.") == [str(day)], text


@given(DATES, st.sampled_from(WEEKDAYS))
def test_the_last_weekday_is_in_the_seven_days_before(day: date, name: str) -> None:
    now = datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC)
    found = date.fromisoformat(periods(f"last {name.title()}", now)[0])
    assert 1 <= (day - found).days <= 7
    assert found.weekday() == WEEKDAYS.index(name)


OTHER_WORDS = [
    "last",
    "next",
    "this",
    "ago",
    "the",
    "a",
    "of",
    "in",
    "7",
    "12",
    "th",
    "before",
    ".",
    "/",
    "上",
    "个",
    "前",
]
WORDS = st.sampled_from([*sorted(TRIGGERS), *OTHER_WORDS])


@given(st.lists(WORDS, max_size=12), st.sampled_from([" ", "", "-", "/"]), DATES)
def test_any_words_give_ordered_ranges_inside_the_text(words: list[str], separator: str, day: date) -> None:
    text = separator.join(words)
    end = 0
    for found in find_times(text, micros(datetime(day.year, day.month, day.day, tzinfo=UTC))):
        assert end <= found.start < found.end <= len(text)
        assert found.first_day <= found.last_day
        end = found.end


@given(st.text(max_size=200), st.integers())
def test_any_text_is_read(text: str, now: int) -> None:
    find_times(text, now)


@given(st.lists(WORDS, max_size=12), st.integers(1, 3))
def test_a_limit_keeps_the_first_times(words: list[str], limit: int) -> None:
    text = " ".join(words)
    assert find_times(text, 0, limit) == find_times(text, 0)[:limit]


@pytest.mark.parametrize(
    "query", ["When did Anna move?", "and when is it?", "What date was it?", "how long ago was it"]
)
def test_a_question_for_a_time_is_recognised(query: str) -> None:
    assert asks_for_time(query)


@pytest.mark.parametrize(
    "query", ["In which year was it?", "what month", "since when?", "她什么时候搬家", "哪天去的", "几月"]
)
def test_a_question_for_a_part_of_a_date_is_recognised(query: str) -> None:
    assert asks_for_time(query)


@pytest.mark.parametrize(
    "query", ["How did she feel when they moved?", "What did he do yesterday?", "whenever", "天气"]
)
def test_a_question_for_something_else_is_not(query: str) -> None:
    assert not asks_for_time(query)


def test_a_document_has_its_dates() -> None:
    analysis = analyse("We met yesterday and in 2021.", micros(NOW))
    assert analysis.dates == [(19486, 19486), (18628, 18992)]


def test_a_document_has_a_limited_number_of_dates() -> None:
    assert len(analyse("yesterday " * 1_000, micros(NOW)).dates) == MAX_DATES


@pytest.mark.parametrize("repeated", ["day ", "7 May ", "2023-", "the week of ", "last ", "上个月", "1年", "a few "])
def test_the_time_is_linear_in_the_length(repeated: str) -> None:
    def prepare(size: int) -> object:
        text = repeated * (size // len(repeated))
        return lambda: find_times(text, micros(NOW))

    assert growth_problem(prepare, 20_000, floor_seconds=0.002) is None  # type: ignore[arg-type]


def test_a_usual_message_takes_microseconds() -> None:
    without = "That sounds wonderful, I'm so glad it worked out for you! What kind of food did they serve at the party?"
    with_times = "Hey! I went to the museum last Friday with the kids, and on 7 May we saw the new exhibition together."

    def calls(text: str) -> float:
        return best_time(lambda: [find_times(text, micros(NOW)) for _ in range(1_000)], time.thread_time) / 1_000

    assert calls(without) < 3e-6 * SLOW_MACHINE
    assert calls(with_times) < 40e-6 * SLOW_MACHINE


SLOW_MACHINE = 3
"""How much longer it may take than measured on an idle machine."""
