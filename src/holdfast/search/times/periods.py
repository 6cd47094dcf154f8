"""Days, weeks, months, seasons and years as ranges of days since 1970. Pure functions.

Each raises ValueError or OverflowError for a time outside the years 1 to 9999.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date

MICROSECONDS_PER_DAY = 86_400_000_000
EPOCH = date(1970, 1, 1).toordinal()
SATURDAY = 5
SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

Period = tuple[int, int]
"""The first and the last day."""


def day_at(time: int) -> int:
    """Return the day of a time in microseconds since 1970."""
    return time // MICROSECONDS_PER_DAY


def as_date(day: int) -> date:
    return date.fromordinal(day + EPOCH)


def day_number(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - EPOCH


def weekday(day: int) -> int:
    """Return the day of the week; Monday is 0."""
    return (day + 3) % 7


def week_of(day: int) -> Period:
    """Return the week from Monday to Sunday."""
    monday = day - weekday(day)
    return monday, monday + 6


def month_of(year: int, month: int) -> Period:
    """Return a month; month 13 is January of the next year, and month 0 December of the last one."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    first = day_number(year, month, 1)
    return first, first + monthrange(year, month)[1] - 1


def months_from(year: int, month: int, count: int) -> Period:
    return month_of(year, month)[0], month_of(year, month + count - 1)[1]


def year_of(year: int) -> Period:
    return day_number(year, 1, 1), day_number(year, 12, 31)


def quarter_of(year: int, number: int) -> Period:
    return months_from(year, 3 * number - 2, 3)


def season_of(year: int, name: str) -> Period:
    """Return a season of the northern hemisphere; winter ends in the next year."""
    return months_from(year, SEASON_STARTS[name], 3)


def weekend_of(day: int) -> Period:
    """Return the Saturday and Sunday of the week of a day."""
    saturday = week_of(day)[0] + SATURDAY
    return saturday, saturday + 1


def last_weekend(day: int) -> Period:
    """Return the last weekend that ended before a day."""
    return weekend_of(day - 7)


def shift_months(day: int, months: int) -> int:
    """Return the same day of another month, or its last day if it is shorter."""
    now = as_date(day)
    first, last = month_of(now.year, now.month + months)
    return min(first + now.day - 1, last)


def last_weekday(day: int, wanted: int) -> int:
    """Return the last day before `day` that is a Monday (0), ..., Sunday (6)."""
    return day - 1 - (weekday(day - 1) - wanted) % 7


def part_of(period: Period, number: int, unit: str) -> Period:
    """Return the n-th day, week, weekend, month or quarter of a period; -1 is the last one.

    >>> part_of(month_of(2023, 8), 1, "weekend") == (day_number(2023, 8, 5), day_number(2023, 8, 6))
    True
    """
    parts = _parts(period, unit)
    if number > len(parts):
        raise ValueError(f"there is no {unit} {number}")
    return parts[number - 1] if number > 0 else parts[number]


def part_with_weekday(period: Period, number: int, wanted: int) -> Period:
    """Return the n-th Monday (0), ..., Sunday (6) of a period; -1 is the last one."""
    first = last_weekday(period[0], wanted) + 7
    day = first + 7 * (number - 1) if number > 0 else last_weekday(period[1] + 1, wanted)
    if not period[0] <= day <= period[1]:
        raise ValueError("there is no such day")
    return day, day


def third_of(period: Period, number: int) -> Period:
    """Return the first (0), second or third part of a period."""
    first, last = period
    days = last - first + 1
    return first + days * number // 3, first + max(days * (number + 1) // 3 - 1, 0)


def _parts(period: Period, unit: str) -> Sequence[Period]:
    first, last = period
    now = as_date(first)
    match unit:
        case "day":
            return [(day, day) for day in range(first, last + 1)]
        case "week":
            return [(day, min(day + 6, last)) for day in range(first, last + 1, 7)]
        case "weekend":
            saturday = last_weekday(first, SATURDAY) + 7
            return [(day, day + 1) for day in range(saturday, last + 1, 7)]
        case "month" | "quarter":
            step = 1 if unit == "month" else 3
            each = [months_from(now.year, month, step) for month in range(now.month, 13, step)]
            return [part for part in each if part[1] <= last]
        case _:
            raise ValueError(unit)
