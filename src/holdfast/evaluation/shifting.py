"""Dates inside a text, shifted by a number of days. Pure functions."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from holdfast.search.time_expressions import TimeRange, find_times
from holdfast.search.times.english_words import (
    MONTH_NUMBERS,
    MONTHS,
    SEASONS,
    SUFFIXES,
    WEEKDAY_NUMBERS,
    WEEKDAYS,
    YEARS,
)
from holdfast.search.times.periods import as_date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS_OF_WEEK = 7
MAX_DAY_DIGITS = 2
MONTHS_OF_QUARTER = 3
DATE_PARTS = 3
DAYS_BEFORE_SEASON = 45
"""From the first day of a season to its middle."""
SEASON_OF_QUARTER = ("winter", "spring", "summer", "autumn")
CHINESE_UNITS = {"年": "year", "月": "month", "日": "day", "号": "day", "號": "day"}

_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+")


def shift_dates(text: str, written_at: datetime, days: int) -> str:
    """Shift the days, months, seasons and years that a text names. Expressions relative to now stay as they are.

    >>> shift_dates("Since 30 December 2022, and in May, and yesterday", datetime(2023, 5, 8, tzinfo=UTC), 371)
    'Since 5 January 2024, and in May, and yesterday'
    """
    now = (written_at - EPOCH) // timedelta(microseconds=1)
    for found in reversed(find_times(text, now)):
        expression = text[found.start : found.end]
        text = text[: found.start] + _shift_expression(expression, found, now, days) + text[found.end :]
    return text


def _shift_expression(expression: str, found: TimeRange, now: int, days: int) -> str:
    """Rewrite the parts of a date in an expression: "the week before 9 June" has the date 9 June."""
    matches = list(_TOKEN.finditer(expression))
    begin = next((match.start() for match in matches if _may_begin_date(match[0].lower())), None)
    if begin is None:
        return expression
    inner = find_times(expression[begin:], now) if begin else [found]
    if not inner:
        return expression
    is_day = inner[0].first_day == inner[0].last_day
    old = as_date((inner[0].first_day + inner[0].last_day) // 2)
    roles = _roles(expression, matches, old)
    if "season" in roles:
        old -= timedelta(days=DAYS_BEFORE_SEASON)  # winter has the year of its December
    new = old + timedelta(days=days)
    pieces: list[str] = []
    end = 0
    for match, role in zip(matches, roles, strict=True):
        is_kept = match.start() < begin or (role == "day" and not is_day)
        pieces += [expression[end : match.start()], match[0] if is_kept else _rewritten(match[0], role, new, days)]
        end = match.end()
    return "".join([*pieces, expression[end:]])


def _may_begin_date(word: str) -> bool:
    is_name = word in MONTH_NUMBERS or word in WEEKDAY_NUMBERS or word in SEASONS or word in YEARS or word == "q"
    return is_name or (word.isdigit() and len(word) <= MAX_DAY_DIGITS)


def _roles(expression: str, matches: Sequence[re.Match[str]], old: date) -> list[str]:
    """Return what each word is: a year, a month, a day, its suffix, a weekday, a season, a quarter or nothing."""
    words = [match[0].lower() for match in matches]
    roles = [_role(word) for word in words]
    for index, match in enumerate(matches):
        following = expression[match.end() : match.end() + 1]
        if following in CHINESE_UNITS:
            roles[index] = CHINESE_UNITS[following]
        elif index and words[index - 1] == "q":
            roles[index] = "quarter"
        elif index and words[index] in SUFFIXES and roles[index - 1] == "day":
            roles[index] = "suffix"
    numbers = [index for index, word in enumerate(words) if word.isdigit()]
    is_numeric = len(numbers) == len(words) and len(numbers) in {2, DATE_PARTS} and "年" not in expression
    if is_numeric and words[0] in YEARS:
        return ["year", "ISO month", "ISO day"][: len(words)]
    if is_numeric and len(words) == DATE_PARTS:
        is_month_first = "." not in expression and int(words[0]) == old.month and int(words[1]) == old.day
        return ["month", "day", "year"] if is_month_first else ["day", "month", "year"]
    return roles


def _role(word: str) -> str:
    if word in YEARS:
        return "year"
    if word in MONTH_NUMBERS:
        return "month name"
    if word in WEEKDAY_NUMBERS:
        return "weekday"
    if word in SEASONS:
        return "season"
    return "day" if word.isdigit() and len(word) <= MAX_DAY_DIGITS else ""


def _rewritten(word: str, role: str, new: date, days: int) -> str:
    quarter = (new.month - 1) // MONTHS_OF_QUARTER + 1
    numbers = {"year": new.year, "month": new.month, "day": new.day, "quarter": quarter}
    if role in numbers:
        return f"{numbers[role]:02}" if word.startswith("0") else str(numbers[role])
    if role in {"ISO month", "ISO day"}:
        return f"{new.month if role == 'ISO month' else new.day:0{len(word)}}"
    if role == "suffix":
        return _suffix(new.day)
    return _in_case_of(word, _new_name(word.lower(), role, new, days)) if role else word


def _new_name(name: str, role: str, new: date, days: int) -> str:
    if role == "month name":
        month = MONTHS[new.month - 1]
        return month if name in MONTHS else month[:3]
    if role == "weekday":
        return WEEKDAYS[(WEEKDAY_NUMBERS[name] + days) % DAYS_OF_WEEK]
    season = SEASON_OF_QUARTER[(new + timedelta(days=DAYS_BEFORE_SEASON)).month % 12 // MONTHS_OF_QUARTER]
    return name if name == "fall" and season == "autumn" else season


def _suffix(day: int) -> str:
    return "th" if day in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _in_case_of(original: str, word: str) -> str:
    return word.title() if original[0].isupper() else word
