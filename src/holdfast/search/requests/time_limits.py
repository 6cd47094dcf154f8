"""The times that limit a search."""

import re
from datetime import UTC, date, datetime, timedelta

import msgspec

_LAST = datetime.max.replace(tzinfo=UTC)
_AGE = re.compile("([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


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
        if (parsed := _parse_date(text)) is not None:
            day = datetime.combine(parsed, datetime.min.time(), UTC)
            if is_end:
                return day + timedelta(days=1) if parsed < date.max else _LAST
            return day
        time = _parse_iso(text)
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        time.astimezone(UTC)  # raises OverflowError outside the years 1 to 9999
    except (OverflowError, ValueError, msgspec.ValidationError):  # also a time outside the years 1 to 9999
        raise ValueError(f"{text} is not a time") from None
    return time


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _parse_iso(text: str) -> datetime:
    """Parse ISO 8601, also without seconds, and in the forms of RFC 3339 that Python does not accept."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return msgspec.convert(text, datetime)
