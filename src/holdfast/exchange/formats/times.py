"""Parse times in the formats of other programs."""

from datetime import UTC, datetime
from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr

MIN_MILLISECONDS = 1e11
"""A number of at least this is in milliseconds: in seconds it would be after the year 5000."""


def read_time(where: str, value: Any) -> datetime | None:
    """Parse seconds or milliseconds since 1970, as a number or a string, or ISO 8601, in UTC if it has no time zone.

    >>> read_time("created_at", 1683554160)
    datetime.datetime(2023, 5, 8, 13, 56, tzinfo=datetime.timezone.utc)
    >>> read_time("created_at", "2023-05-08T13:56:00Z") == read_time("created_at", "1683554160000")
    True
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and not _is_number(value):
            parsed = datetime.fromisoformat(value)
            return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            number = float(value)
            return datetime.fromtimestamp(number / 1_000 if abs(number) >= MIN_MILLISECONDS else number, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidArgumentError(
        where, f"{short_repr(value)} is not a time; use seconds since 1970 or ISO 8601, such as 2026-03-24T09:10:11Z"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
