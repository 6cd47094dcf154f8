"""References to messages by sequence number: `12`, `12-18`, and citations such as `[#3, #12-18]`."""

import re
from collections.abc import Iterable

from holdfast.errors import InvalidArgumentError

_RANGE = re.compile(r"#?([0-9]{1,12})(?:-#?([0-9]{1,12}))?")


def parse_ranges(ref: str) -> list[tuple[int, int]] | None:
    """Return the first and last number of each range, sorted and without overlaps; None if `ref` is not a reference.

    >>> parse_ranges("[#12-18, #3, #13-20]")
    [(3, 3), (12, 20)]
    """
    ref = ref.strip(" ")
    inner = ref[1:-1] if ref.startswith("[") and ref.endswith("]") else ref
    ranges: list[tuple[int, int]] = []
    for piece in inner.split(","):
        match = _RANGE.fullmatch(piece.strip(" "))
        if match is None:
            return None
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first:
            raise InvalidArgumentError("ref", f"{match[0]!r} ends before it begins; put the smaller number first")
        ranges.append((first, last))
    return _merge(ranges)


def format_citation(seqs: Iterable[int], max_ranges: int = 3) -> str:
    """Return a reference to messages. More than `max_ranges` ranges become one, from the first to the last message.

    >>> format_citation([12, 13, 14, 20]), format_citation([7]), format_citation([1, 3, 5, 7])
    ('#12-14, #20', '#7', '#1-7')
    """
    ranges = _merge([(seq, seq) for seq in seqs])
    if len(ranges) > max_ranges:
        ranges = [(ranges[0][0], ranges[-1][1])]
    return ", ".join(f"#{first}" if first == last else f"#{first}-{last}" for first, last in ranges)


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def ranges_after(ranges: list[tuple[int, int]], seq: int) -> str | None:
    """Return a reference to the part of `ranges` after `seq`, or None if there is none.

    >>> ranges_after([(3, 3), (12, 20)], 14)
    '15-20'
    """
    rest = [f"{max(first, seq + 1)}-{last}" for first, last in ranges if last > seq]
    return ",".join(rest) or None
