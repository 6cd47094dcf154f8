"""The times that limit a search."""

import re
from datetime import UTC, date, datetime, timedelta

import msgspec

_LAST = datetime.max.replace(tzinfo=UTC)
_AGE = re.compile("([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].{1,40}")


def parse_time(text: str, now: datetime, *, is_end: bool = False) -> datetime:
    """Return the time that a text means: an age, a date or ISO 8601. Without a time zone it is UTC.

    A date is its beginning; with `is_end`, its end. Raise ValueError if the text is none of these.

    >>> now = datetime(2026, 3, 24, 9, tzinfo=UTC)
    >>> str(parse_time("7d", now)), str(parse_time("2026-03-01", now, is_end=True))
    ('2026-03-17 09:00:00+00:00', '2026-03-02 00:00:00+00:00')
    >>> str(parse_time("2026-03-01T10:00:00+02:00", now))
    '2026-03-01 10:00:00+02:00'
    """
    try:
        if age := _AGE.fullmatch(text):
            return now - int(age[1]) * _UNITS[age[2]]
        if _DATE.fullmatch(text):
            day = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
            if is_end:
                return day + timedelta(days=1) if day.date() < date.max else _LAST
            return day
        if _TIME.fullmatch(text):
            time = _parse_iso(text)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            time.astimezone(UTC)  # raises OverflowError outside the years 1 to 9999
            return time
    except (OverflowError, ValueError, msgspec.ValidationError):  # also a time outside the years 1 to 9999
        pass
    raise ValueError(f"{text} is not a time")


def _parse_iso(text: str) -> datetime:
    """Parse ISO 8601, also without seconds, and in the forms of RFC 3339 that Python does not accept."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return msgspec.convert(text, datetime)
