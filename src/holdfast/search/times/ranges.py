"""A period that a text names."""

from typing import NamedTuple


class TimeRange(NamedTuple):
    first_day: int
    """Days since 1970, in UTC."""
    last_day: int
    start: int
    """Where the expression begins in the text, and where it ends."""
    end: int
