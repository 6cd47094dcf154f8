"""Time expressions in Chinese. Pure functions."""

import re
from collections.abc import Iterator

from holdfast.search.times.periods import (
    Period,
    as_date,
    day_number,
    month_of,
    quarter_of,
    season_of,
    shift_months,
    week_of,
    weekend_of,
    year_of,
)
from holdfast.search.times.ranges import TimeRange

DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "後": 2, "大后": 3}
YEARS = {"大前": -3, "前": -2, "去": -1, "今": 0, "明": 1, "后": 2, "後": 2}
SHIFTS = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
NUMERALS = {character: number for number, character in enumerate("一二三四五六七八九十", 1)} | {"两": 2, "兩": 2}
SEASONS = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
WEEKDAYS = {character: number for number, character in enumerate("一二三四五六日")} | {"天": 6}
FEW = (2, 5)

_NUMBER = "[0-9]{1,3}|十[一二]?|[一二两兩三四五六七八九几幾]"
_EXPRESSION = re.compile(
    r"(?P<month_year>(?<![0-9])[0-9]{4}(?=年)|[去今明前](?=年))年(?:的?(?:"
    r"(?P<month>[0-9]{1,2}|十[一二]?|[一二三四五六七八九])月(?:份|(?P<day>[0-9]{1,2})[日号號])?"
    r"|(?P<season>[春夏秋冬])[天季]?|第(?P<quarter>[一二三四1-4])季度))?"
    r"|(?P<only_month>(?<![0-9])[0-9]{1,2})月(?P<only_day>[0-9]{1,2})[日号號]"
    r"|(?P<shift>上上|下下|[上这這本下])个?(?P<unit>周末|週末|(?:周|週|星期|礼拜)(?P<weekday>[一二三四五六日天])?|月|季度)"
    r"|(?P<ago>" + _NUMBER + r")个?(?P<ago_unit>天|日|周|週|星期|礼拜|月|年)(?:以前|之前|前)"
    r"|(?P<relative_day>大前|大后|[前昨今明后後])[天日晚早]"
    r"|(?<![每个])(?:周|星期|礼拜)(?P<bare_weekday>[一二三四五六日天])"
)
_TRIGGER = re.compile("[天日晚早周週期拜月年季]")


def find_times(text: str, today: int, limit: int | None) -> list[TimeRange]:
    """Return the times that a text names, relative to a day, in order."""
    found: list[TimeRange] = []
    if _TRIGGER.search(text) is None:
        return found
    for match in _EXPRESSION.finditer(text):
        try:
            period = _period(match, today)
        except (ValueError, OverflowError):
            continue  # such as month 13
        found.append(TimeRange(*period, match.start(), match.end()))
        if len(found) == limit:
            break
    return found


def _period(match: re.Match[str], today: int) -> Period:
    now = as_date(today)
    match match.lastgroup:
        case "month_year" | "month" | "day" | "season" | "quarter":
            return _named(match, now.year)
        case "only_day":
            month, day = int(match["only_month"]), int(match["only_day"])
            year = now.year - ((month, day) > (now.month, now.day))
            return (day_number(year, month, day),) * 2
        case "unit" | "weekday":
            return _relative(match, today, SHIFTS[match["shift"]])
        case "ago_unit":
            return _ago(match, today)
        case "relative_day":
            return (today + DAYS[match["relative_day"]],) * 2
        case _:
            day = week_of(today)[0] + WEEKDAYS[match["bare_weekday"]]
            return (day if day <= today else day - 7,) * 2


def _named(match: re.Match[str], this_year: int) -> Period:
    text = match["month_year"]
    year = int(text) if text.isdigit() else this_year + YEARS[text]
    if match["season"]:
        return season_of(year, SEASONS[match["season"]])
    if match["quarter"]:
        return quarter_of(year, next(_numbers(match["quarter"])))
    if not match["month"]:
        return year_of(year)
    month = next(_numbers(match["month"]))
    if match["day"]:
        return (day_number(year, month, int(match["day"])),) * 2
    if not 1 <= month <= 12:  # noqa: PLR2004
        raise ValueError("there is no such month")
    return month_of(year, month)


def _relative(match: re.Match[str], today: int, shift: int) -> Period:
    now, unit = as_date(today), match["unit"]
    if unit == "月":
        return month_of(now.year, now.month + shift)
    if unit == "季度":
        quarter = (now.month - 1) // 3 + shift
        return quarter_of(now.year + quarter // 4, quarter % 4 + 1)
    if unit in {"周末", "週末"}:
        return weekend_of(today + 7 * shift)
    if match["weekday"]:
        return (week_of(today + 7 * shift)[0] + WEEKDAYS[match["weekday"]],) * 2
    return week_of(today + 7 * shift)


def _ago(match: re.Match[str], today: int) -> Period:
    numbers = list(_numbers(match["ago"]))
    low, high = numbers[0], numbers[-1]
    match match["ago_unit"]:
        case "天" | "日":
            around = 0 if high <= 3 or low != high else max(1, high // 7)  # noqa: PLR2004 - so few days are counted
            return today - high - around, today - low + around
        case "月":
            return shift_months(today, -high) - 10, shift_months(today, -low) + 10
        case "年":
            year = as_date(today).year
            return year_of(year - high)[0], year_of(year - low)[1]
        case _:
            return today - 7 * high - 3, today - 7 * low + 3


def _numbers(text: str) -> Iterator[int]:
    """Return the number that a text names, or the least and the greatest of "a few"."""
    if text in {"几", "幾"}:
        yield from FEW
    elif text.isdigit():
        yield int(text)
    else:
        yield sum(NUMERALS[character] for character in text)
