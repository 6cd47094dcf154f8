"""The English words of time expressions."""

MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS, 1)}
MONTH_NUMBERS |= {name[:3]: number for name, number in MONTH_NUMBERS.items()} | {"sept": 9}
MONTHS_WITH_OTHER_MEANINGS = {"april", "may", "june", "august", "march", "mar", "jan", "dec", "sep", "jun"}
"""Names, and words of other meanings: alone they are no month."""
VERBS_LIKE_MONTHS = {"may", "march", "mar"}
"""In lower case they need a word such as "in", a day or a year beside them."""

WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
WEEKDAY_NUMBERS = {name: number for number, name in enumerate(WEEKDAYS)}
WEEKDAY_ABBREVIATIONS = {
    **{name[:3]: number for number, name in enumerate(WEEKDAYS)},
    "tues": 1,
    "weds": 2,
    "thur": 3,
    "thurs": 3,
}
"""They are days only after a word such as "on" or "last"."""

UNITS = {
    form: unit
    for unit in ("minute", "hour", "day", "week", "weekend", "fortnight", "month", "quarter", "year")
    for form in (unit, f"{unit}s")
}
DAY_WORDS = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
TIMES_OF_DAY = {"morning", "afternoon", "evening", "night"}

LAST = {"last", "past", "previous"}
THIS = {"this", "current"}
NEXT = {"next", "coming", "upcoming"}
PREPOSITIONS = frozenset(
    [
        "in",
        "on",
        "since",
        "during",
        "of",
        "by",
        "until",
        "till",
        "from",
        "before",
        "after",
        "around",
        "between",
        "early",
        "late",
        "mid",
        "through",
        "throughout",
        "for",
    ]
)
BESIDE = {"of", "before", "after"}
"""Between a unit and a date, as in "the week before 9 June"."""
REPEATED = {"every", "each", "most", "all", "per"}
FUTURE = frozenset(
    [
        "will",
        "ll",
        "going",
        "gonna",
        "plan",
        "planning",
        "upcoming",
        "scheduled",
        "booked",
        "hope",
        "hoping",
        "soon",
        "next",
    ]
)
"""A month or a weekday after one of them is ahead."""
MAX_FUTURE_WORDS = 12
"""How many words before an expression are read for it."""

NUMBERS = {
    word: (number, number)
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
}
NUMBERS |= {"a": (1, 1), "an": (1, 1), "couple": (2, 3), "few": (2, 5), "several": (3, 7)}
"""Counts as ranges."""
ORDINALS = {
    word: number
    for number, word in enumerate(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"], 1
    )
} | {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "last": -1}
PARTS = {"beginning": 0, "start": 0, "early": 0, "middle": 1, "mid": 1, "end": 2, "late": 2}
SUFFIXES = {"st", "nd", "rd", "th"}
SEASONS = {"spring", "summer", "autumn", "fall", "winter"}
SEASONS_WITH_OTHER_MEANINGS = {"spring", "fall"}

MIN_YEAR = 1900
MAX_YEAR = 2100
YEARS = {str(year): year for year in range(MIN_YEAR, MAX_YEAR + 1)}
