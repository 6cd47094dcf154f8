"""References to messages by number: `12`, `12-18`, and citations such as `[#3, #12-18]`."""

import re
from collections.abc import Iterable

from holdfast.errors import InvalidArgumentError

_RANGE = re.compile(r"#?([0-9]{1,12})(?:-#?([0-9]{1,12}))?")


def parse_ranges(ref: str) -> list[tuple[int, int]] | None:
    """First and last number of each range, in order and apart from each other; None if it is no such reference.

    >>> parse_ranges("[#12-18, #3, #13-20]")
    [(3, 3), (12, 20)]
    """
    ref = ref.strip(" ")
    inner = ref[1:-1] if ref.startswith("[") and ref.endswith("]") else ref
    found = [_RANGE.fullmatch(piece.strip(" ")) for piece in inner.split(",")]
    ranges: list[tuple[int, int]] = []
    for match in found:
        if match is None:
            return None
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last < first:
            raise InvalidArgumentError("ref", f"{match[0]!r} ends before it begins; turn it round")
        ranges.append((first, last))
    return _merged(ranges)


def cited(seqs: Iterable[int], max_ranges: int = 3) -> str:
    """Messages by their numbers; more than `max_ranges` ranges as one from the first to the last.

    >>> cited([12, 13, 14, 20]), cited([7]), cited([1, 3, 5, 7])
    ('#12-14, #20', '#7', '#1-7')
    """
    ranges = _merged([(seq, seq) for seq in seqs])
    if len(ranges) > max_ranges:
        ranges = [(ranges[0][0], ranges[-1][1])]
    return ", ".join(f"#{first}" if first == last else f"#{first}-{last}" for first, last in ranges)


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def after(ranges: list[tuple[int, int]], seq: int) -> str | None:
    """A reference to what of `ranges` comes after `seq`.

    >>> after([(3, 3), (12, 20)], 14)
    '15-20'
    """
    rest = [f"{max(first, seq + 1)}-{last}" for first, last in ranges if last > seq]
    return ",".join(rest) or None
