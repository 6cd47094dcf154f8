"""Time expressions in English. Pure functions.

A text is split into words. Some words, such as "week" or "May", have a rule, which looks at a few words around them:
the time is linear in the length of the text.
"""

from collections.abc import Callable

from holdfast.search.times.english_dates import read_day_of_month, read_month, read_quarter, read_season, read_year
from holdfast.search.times.english_words import (
    BESIDE,
    DAY_WORDS,
    LAST,
    MONTH_NUMBERS,
    NEXT,
    NUMBERS,
    ORDINALS,
    PARTS,
    REPEATED,
    SEASONS,
    SUFFIXES,
    THIS,
    TIMES_OF_DAY,
    UNITS,
    WEEKDAY_ABBREVIATIONS,
    WEEKDAY_NUMBERS,
    YEARS,
)
from holdfast.search.times.periods import (
    Period,
    as_date,
    last_weekday,
    last_weekend,
    month_of,
    part_of,
    part_with_weekday,
    quarter_of,
    shift_months,
    third_of,
    week_of,
    weekend_of,
    year_of,
)
from holdfast.search.times.ranges import TimeRange
from holdfast.search.times.words import MAX_NUMBER_DIGITS, Found, Words

Rule = Callable[[Words, int], Found | None]


def find_times(text: str, today: int, limit: int | None) -> list[TimeRange]:
    """Return the times that a text names, relative to a day, in order and without overlap."""
    words = Words(text, today)
    found: list[TimeRange] = []
    for index, word in enumerate(words.words):
        rule = RULES.get(word)
        if rule is None or index < words.start:
            continue
        try:
            each = rule(words, index)
            each = each and _widened(words, each)
        except (ValueError, OverflowError):
            continue  # such as 31 June
        if each is None:
            continue
        words.start = each.last + 1
        found.append(TimeRange(*each.period, words.starts[each.first], words.ends[each.last]))
        if len(found) == limit:
            break
    return found


def _widened(words: Words, found: Found) -> Found:
    """Include what stands before a time: "the week before", "the first weekend of", "the end of", "early"."""
    word = words.before(found.first)
    if word in {"early", "mid", "late"} and found.period[1] > found.period[0]:
        return Found(third_of(found.period, PARTS[word]), found.first - 1, found.last)
    if word not in BESIDE:
        return found
    first = found.first - 2
    unit = words.before(first + 1)
    if word == "of" and unit in PARTS:
        return Found(third_of(found.period, PARTS[unit]), first, found.last)
    if unit not in UNITS and unit not in WEEKDAY_NUMBERS:
        return found
    ordinal = ORDINALS.get(words.before(first)) if word == "of" else None
    if ordinal is None:
        return Found(_beside(found.period, unit, word), first, found.last)
    return Found(_nth(found.period, ordinal, unit), first - 1, found.last)


def _nth(period: Period, ordinal: int, unit: str) -> Period:
    if unit in WEEKDAY_NUMBERS:
        return part_with_weekday(period, ordinal, WEEKDAY_NUMBERS[unit])
    return part_of(period, ordinal, UNITS[unit])


def _beside(period: Period, unit: str, preposition: str) -> Period:
    """Return the week, weekend, month or weekday of, before or after a period."""
    first, last = period
    if preposition == "of":
        return {"week": week_of, "weekend": weekend_of}.get(unit, lambda _: period)(first)
    if unit in WEEKDAY_NUMBERS:
        day = last_weekday(first, WEEKDAY_NUMBERS[unit]) if preposition == "before" else 0
        day = day or last_weekday(last + 1, WEEKDAY_NUMBERS[unit]) + 7
        return day, day
    if unit == "weekend":
        return last_weekend(first) if preposition == "before" else weekend_of(last + 1)
    days = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}.get(unit)
    if days is None:
        return period
    return (first - days, first - 1) if preposition == "before" else (last + 1, last + days)


def _day_word(words: Words, index: int) -> Found:
    day = words.today + DAY_WORDS[words.words[index]]
    return Found((day, day), index, index)


def _time_of_day(words: Words, index: int) -> Found | None:
    modifier = words.modifier(index)
    if modifier is None or modifier[0] > 0:
        return None
    day = words.today + modifier[0]
    return Found((day, day), modifier[1], index)


def _unit(words: Words, index: int) -> Found | None:
    unit = UNITS[words.words[index]]
    count = _count_before(words, index)
    following = words.after(index)
    if count is not None:
        return _counted(words, index, unit, count)
    pair = (following, words.after(index + 1)) if following in {"before", "after"} else None
    if pair in {("before", "last"), ("after", "next")}:
        return Found(_relative(words.today, unit, -2 if following == "before" else 2), index, index + 2)
    modifier = words.modifier(index) if following != "of" else None  # "the last week of school"
    if modifier is not None and unit not in {"minute", "hour", "day"}:
        return Found(_relative(words.today, unit, modifier[0]), modifier[1], index)
    if words.before(index) == "other" and unit == "day":
        return Found((words.today - 7, words.today - 1), index - 1, index)
    if words.before(index) == "the" and words.before(index - 1) == "over" and unit == "weekend":
        return Found(last_weekend(words.today + 1), index, index)
    return None


def _count_before(words: Words, index: int) -> tuple[int, int, int] | None:
    """Return the least and the greatest number before a unit, and the index where it begins."""
    first = index - 1
    word = words.before(index)
    if word == "of" and words.before(first) == "couple":
        word, first = "couple", first - 1
    if word.isdigit() and len(word) <= MAX_NUMBER_DIGITS:
        return int(word), int(word), first
    if word not in NUMBERS:
        return None
    if word in {"couple", "few"} and words.before(first) == "a":
        first -= 1
    return (*NUMBERS[word], first)


def _counted(words: Words, index: int, unit: str, count: tuple[int, int, int]) -> Found | None:
    """Read "two weeks ago", "for two weeks now", "the past few days", "in three months"."""
    low, high, first = count
    following = words.after(index)
    if following in {"ago", "back", "earlier", "now"}:
        return Found(_distant(words.today, unit, -high, -low), first, index + 1)
    if following == "from" and words.after(index + 1) == "now":
        return Found(_distant(words.today, unit, low, high), first, index + 2)
    word = words.before(first)
    if word in LAST:
        return Found((_distant(words.today, unit, -high, -high, fuzz=False)[0], words.today), first - 1, index)
    if word in NEXT:
        return Found((words.today, _distant(words.today, unit, high, high, fuzz=False)[1]), first - 1, index)
    if word == "in" and unit in {"day", "week", "fortnight", "month"}:
        return Found(_distant(words.today, unit, low, high), first - 1, index)
    return None


def _distant(today: int, unit: str, low: int, high: int, *, fuzz: bool = True) -> Period:
    """Return the days from `low` to `high` units after today, or before it if they are negative."""
    count = max(abs(low), abs(high))
    match unit:
        case "minute" | "hour":
            return today, today
        case "weekend":
            return weekend_of(today + 7 * low)[0], weekend_of(today + 7 * high)[1]
        case "year":
            year = as_date(today).year
            return (year_of(year + low)[0], year_of(year + high)[1]) if fuzz else (shift_months(today, 12 * low),) * 2
        case "month" | "quarter":
            step, around = (1 if unit == "month" else 3), 10 if count == 1 else 15
            first, last = shift_months(today, low * step), shift_months(today, high * step)
        case "day":
            step, around = 1, 0 if count <= 3 else max(1, count // 7)  # noqa: PLR2004 - so few days are counted
            first, last = today + low, today + high
        case _:
            step, around = (7 if unit == "week" else 14), max(3, count)
            first, last = today + low * step, today + high * step
    return (first - around, last + around) if fuzz and low == high else (first, last)


def _relative(today: int, unit: str, shift: int) -> Period:
    """Return the week, weekend, month, quarter or year that is `shift` away from that of today."""
    now = as_date(today)
    match unit:
        case "week":
            return week_of(today + 7 * shift)
        case "fortnight":
            return today + 14 * min(shift, 0), today + 14 * max(shift, 0)
        case "weekend":
            return weekend_of(today + 7 * shift)
        case "month":
            return month_of(now.year, now.month + shift)
        case "quarter":
            quarter = (now.month - 1) // 3 + shift
            return quarter_of(now.year + quarter // 4, quarter % 4 + 1)
        case _:
            return year_of(now.year + shift)


def _is_date(word: str) -> bool:
    return word.isdigit() or word in MONTH_NUMBERS


def _weekday(words: Words, index: int) -> Found | None:
    name = words.words[index]
    wanted = WEEKDAY_NUMBERS.get(name, WEEKDAY_ABBREVIATIONS.get(name, 0))
    before, modifier, following = words.before(index), words.modifier(index), words.after(index, ",")
    if name not in WEEKDAY_NUMBERS and ((modifier is None and before != "on") or not words.is_capital(index)):
        return None
    if before in REPEATED or _is_date(following) or (following in BESIDE and _is_date(words.after(index + 1))):
        return None
    week = index + 2 if following == "of" else index + 1
    if words.after(week) == "week" and words.after(week - 1) in LAST | THIS | NEXT and following:
        shift = words.modifier(week + 1)
        monday = week_of(words.today)[0] + 7 * (shift[0] if shift else 0)
        return Found((monday + wanted,) * 2, index, week + 1)
    today, this = words.today, week_of(words.today)[0] + wanted
    shift_and_first = modifier or (None, index)
    match shift_and_first[0]:
        case -1:
            day = last_weekday(today, wanted)
        case 0:
            day = this
        case 1:  # some mean the day of this week, and others that of the next one
            return Found((this if this > today else this + 7, this + 7), shift_and_first[1], index)
        case _:
            day = last_weekday(today + 1, wanted)
            day += 7 if words.is_ahead(index) and day < today else 0
    return Found((day, day), shift_and_first[1], index)


RULES: dict[str, Rule] = {
    **dict.fromkeys(DAY_WORDS, _day_word),
    **dict.fromkeys(TIMES_OF_DAY, _time_of_day),
    **dict.fromkeys(UNITS, _unit),
    **dict.fromkeys(MONTH_NUMBERS, read_month),
    **dict.fromkeys([*WEEKDAY_ABBREVIATIONS, *WEEKDAY_NUMBERS], _weekday),
    **dict.fromkeys(SEASONS, read_season),
    **dict.fromkeys(YEARS, read_year),
    "q": read_quarter,
    **dict.fromkeys(SUFFIXES, read_day_of_month),
}
"""The rule of each word."""
