"""The `Range` of a download: one range of bytes. Other forms are ignored, as HTTP allows."""

import re

import msgspec

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class ByteRange(msgspec.Struct, frozen=True):
    """The bytes from `start` on, up to and including `last`; or the last `suffix` bytes."""

    start: int = 0
    last: int | None = None
    suffix: int | None = None

    def within(self, size: int) -> tuple[int, int] | None:
        """Return the first byte, and the end, of the range in a file of `size` bytes. None if there is none."""
        if self.suffix is not None:
            return (max(0, size - self.suffix), size) if self.suffix and size else None
        end = size if self.last is None else min(size, self.last + 1)
        return (self.start, end) if self.start < end else None


def parse_range(header: str) -> ByteRange | None:
    """Return the range that a header asks for, or None.

    >>> parse_range("bytes=10-19").within(15), parse_range("bytes=-5").within(15), parse_range("bytes=15-").within(15)
    ((10, 15), (10, 15), None)
    >>> parse_range("bytes=1-2,5-6")
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found[1], found[2]
    if not first:
        return ByteRange(suffix=int(last))
    if last and int(last) < int(first):
        return None
    return ByteRange(start=int(first), last=int(last) if last else None)
