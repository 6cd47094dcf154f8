"""English dates: days, months, seasons, quarters and years that are named. Pure functions."""

from holdfast.search.times.english_words import (
    MONTH_NUMBERS,
    MONTHS,
    MONTHS_WITH_OTHER_MEANINGS,
    PREPOSITIONS,
    SEASONS_WITH_OTHER_MEANINGS,
    VERBS_LIKE_MONTHS,
    YEARS,
)
from holdfast.search.times.periods import Period, as_date, day_number, month_of, quarter_of, season_of, year_of
from holdfast.search.times.words import Found, Words


def read_month(words: Words, index: int) -> Found | None:
    name = words.words[index]
    month = MONTH_NUMBERS[name]
    before, last = words.number_before(index), index
    dot = "." if name not in MONTHS else ""
    following = words.after(index, "," + dot)
    year: int | None = None
    day, first = before or (None, index)
    if following in YEARS:
        year, last = YEARS[following], index + 1
    elif following == "of" and words.after(index + 1) in YEARS:
        year, last = YEARS[words.words[index + 2]], index + 2
    elif before is None and following.isdigit() and len(following) <= 2 and "," not in (words.gap(index) or ""):  # noqa: PLR2004
        last = words.suffix(index + 1)
        day = int(following)
        year = YEARS.get(words.after(last, ",")) or (
            YEARS.get(words.words[last + 2]) if _of_year(words, last) else None
        )
        last += 0 if year is None else 1 if words.words[last + 1] in YEARS else 2
    if day is not None and not 1 <= day <= 31:  # noqa: PLR2004
        return None
    if day is None and year is None:
        return _month_alone(words, index)
    if year is None:
        year = _year_of_day(words, month, day or 1, first)
    period = month_of(year, month) if day is None else (day_number(year, month, day),) * 2
    return Found(period, first, last)


def read_day_of_month(words: Words, index: int) -> Found | None:
    """Read "on the 15th": the last one, or the next one."""
    number = words.words[index - 1] if index > words.start and words.gap(index - 1) == "" else ""
    is_day = words.before(index - 1) == "the" and words.before(index - 2) in {"on", "by", "since", "until"}
    if not is_day or not number.isdigit() or len(number) > 2 or words.after(index) == "of":  # noqa: PLR2004
        return None
    now, day = as_date(words.today), int(number)
    is_ahead = words.is_ahead(index)
    month = now.month + (day < now.day) if is_ahead else now.month - (day > now.day)
    first, last = month_of(now.year, month)
    if not 1 <= day <= last - first + 1:
        return None
    return Found((first + day - 1,) * 2, index - 1, index)


def _of_year(words: Words, index: int) -> bool:
    return words.after(index) == "of" and words.after(index + 1) in YEARS


def _year_of_day(words: Words, month: int, day: int, first: int) -> int:
    """Return the year in which a day is the last one before today, or the next one after it."""
    now = as_date(words.today)
    if words.is_ahead(first):
        return now.year + ((month, day) < (now.month, now.day))
    return now.year - ((month, day) > (now.month, now.day))


def _month_alone(words: Words, index: int) -> Found | None:
    name, month, now = words.words[index], MONTH_NUMBERS[words.words[index]], as_date(words.today)
    modifier = words.modifier(index)
    if modifier is not None:
        shift, first = modifier
        is_over, is_ahead = month < now.month, month > now.month
        year = now.year if shift == 0 else now.year - (not is_over) if shift < 0 else now.year + (not is_ahead)
        return Found(month_of(year, month), first, index)
    has_preposition = words.before(index) in PREPOSITIONS
    if not has_preposition and (name in MONTHS_WITH_OTHER_MEANINGS or name not in MONTHS):
        return None
    if not words.is_capital(index) and name in VERBS_LIKE_MONTHS and words.before(index) not in {"in", "since", "of"}:
        return None
    year = now.year + (month < now.month) if words.is_ahead(index) else now.year - (month > now.month)
    return Found(month_of(year, month), index, index)


def read_season(words: Words, index: int) -> Found | None:
    name = words.words[index]
    following, modifier = words.after(index, ","), words.modifier(index)
    if following in YEARS:
        return Found(season_of(YEARS[following], name), index, index + 1)
    if _of_year(words, index):
        return Found(season_of(YEARS[words.words[index + 2]], name), index, index + 2)
    if modifier is None:
        is_named = words.before(index) == "the" and words.before(index - 1) in PREPOSITIONS
        if not is_named and (name in SEASONS_WITH_OTHER_MEANINGS or words.before(index) not in PREPOSITIONS):
            return None
    shift, first = modifier or (1 if words.is_ahead(index) else None, index)
    return Found(_nearest_season(words.today, name, shift), first, index)


def _nearest_season(today: int, name: str, shift: int | None) -> Period:
    """Return the last season that is over (-1), the next (1), this year's (0), or the last one that has begun."""
    this_year = as_date(today).year
    seasons = [season_of(year, name) for year in range(this_year - 2, this_year + 2)]
    if shift is None:
        return [season for season in seasons if season[0] <= today][-1]
    if shift < 0:
        return [season for season in seasons if season[1] < today][-1]
    if shift > 0:
        return next(season for season in seasons if season[0] > today)
    return seasons[1] if seasons[1][1] >= today else seasons[2]


def read_year(words: Words, index: int) -> Found | None:
    year, gap = YEARS[words.words[index]], words.gap(index)
    if gap in {"-", "/", "."}:
        return _year_first(words, index, gap)
    before = words.gap(index - 1) if index > words.start else None
    if before in {"-", "/", "."} and index - 1 > words.start and words.gap(index - 2) == before:
        return _year_last(words, index, before)
    is_decade = gap == "" and words.words[index + 1] == "s" and year % 10 == 0
    if is_decade:
        return Found((year_of(year)[0], year_of(year + 9)[1]), index, index + 1)
    return Found(year_of(year), index, index) if gap != "" and words.before(index) in PREPOSITIONS | {"year"} else None


def _year_first(words: Words, index: int, gap: str) -> Found | None:
    """Read 2023-05-07, 2023/5/7 and 2023-05."""
    year, month = YEARS[words.words[index]], words.words[index + 1]
    if not month.isdigit() or len(month) > 2 or words.text[words.starts[index] - 1 : words.starts[index]] == "-":  # noqa: PLR2004
        return _year_alone(words, index, gap)
    day = words.words[index + 2] if words.gap(index + 1) == gap else ""
    if day.isdigit() and len(day) <= 2:  # noqa: PLR2004
        return Found((day_number(year, int(month), int(day)),) * 2, index, index + 2)
    return Found(month_of(year, int(month)), index, index + 1) if gap == "-" and 1 <= int(month) <= 12 else None  # noqa: PLR2004


def _year_alone(words: Words, index: int, gap: str) -> Found | None:
    is_named = words.before(index) in PREPOSITIONS and gap != "." and not words.words[index + 1].isdigit()
    return Found(year_of(YEARS[words.words[index]]), index, index) if is_named else None


def _year_last(words: Words, index: int, gap: str) -> Found | None:
    """Read 5/7/2023, month first unless that is impossible, and 7.5.2023, day first."""
    one, other = words.words[index - 2], words.words[index - 1]
    if not (one.isdigit() and other.isdigit() and len(one) <= 2 and len(other) <= 2):  # noqa: PLR2004
        return None
    month, day = (int(other), int(one)) if gap == "." else (int(one), int(other))
    if month > 12:  # noqa: PLR2004
        month, day = day, month
    return Found((day_number(YEARS[words.words[index]], month, day),) * 2, index - 2, index)


def read_quarter(words: Words, index: int) -> Found | None:
    """Read "Q2", "Q2 2023" and "Q2 of 2023"."""
    number = words.words[index + 1] if words.gap(index) == "" else ""
    if number not in {"1", "2", "3", "4"} or not words.is_capital(index):
        return None
    following = words.after(index + 1, ",")
    if following in YEARS:
        return Found(quarter_of(YEARS[following], int(number)), index, index + 2)
    if _of_year(words, index + 1):
        return Found(quarter_of(YEARS[words.words[index + 3]], int(number)), index, index + 3)
    period = quarter_of(as_date(words.today).year, int(number))
    is_ahead = period[0] > words.today and not words.is_ahead(index)
    return Found(quarter_of(as_date(words.today).year - is_ahead, int(number)), index, index + 1)
