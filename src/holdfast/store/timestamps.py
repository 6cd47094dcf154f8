"""Conversion between stored times (UTC microseconds) and aware datetimes."""

from datetime import UTC, datetime, timedelta

from holdfast.errors import InvalidArgumentError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(time: datetime) -> int:
    """Convert to microseconds. A datetime without a time zone is taken as UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def storable_micros(field: str, time: datetime) -> int:
    """Convert to microseconds, or raise an error that names `field` if the time cannot be converted back."""
    try:
        micros = to_micros(time)
        from_micros(micros)
    except (OverflowError, TypeError, ValueError):
        raise InvalidArgumentError(field, f"{time} lies outside the years 1 to 9999 in UTC") from None
    return micros


def from_micros(micros: int) -> datetime:
    return _EPOCH + _MICROSECOND * micros
