"""Regular expressions that take linear time, whatever the pattern and the text."""

from collections.abc import Iterator
from typing import Any

from holdfast import lazy
from holdfast.errors import InvalidArgumentError, short_repr

MAX_MEMORY = 2 * 1024 * 1024
"""What a compiled expression and its caches may use. A pattern that needs more, such as one with huge repetitions, is
refused."""
STEPS_AT_ONCE = 50_000_000
"""How many steps one call of the engine takes at most: the size of the expression times the bytes of the text."""
MIN_SLICE = 4 * 1024
MAX_SLICE = 1024 * 1024
UNSUPPORTED = ("(?=", "(?!", "(?<")
"""How look-around begins."""


class Expression:
    """A compiled expression. It never matches across lines."""

    def __init__(self, compiled: Any) -> None:
        self._search = compiled.search
        steps_per_byte = max(1, compiled.programsize)
        self._slice = max(MIN_SLICE, min(MAX_SLICE, STEPS_AT_ONCE // steps_per_byte))

    def spans(self, data: bytes, first: int = 0) -> Iterator[tuple[int, int] | None]:
        """Yield where the first match of each line begins and ends, and None after each slice of the text.

        A caller can stop after any of them. A line that is longer than a slice is searched in several.
        """
        position = first
        while position < len(data):
            end = self._slice_end(data, position)
            found = self._search(data, position, end)
            if found is None:
                position = end
                yield None
                continue
            start, stop = found.span()
            if start == len(data) and data[-1:] == b"\n":
                return  # an empty match after the last line
            yield start, stop
            newline = data.find(b"\n", start)
            position = len(data) if newline < 0 else newline + 1

    def _slice_end(self, data: bytes, position: int) -> int:
        end = position + self._slice
        if end >= len(data):
            return len(data)
        newline = data.rfind(b"\n", position, end)
        return end if newline < 0 else newline + 1


def compile_expression(pattern: str, *, ignore_case: bool = False) -> Expression:
    """Compile a regular expression that a caller wrote. `^` and `$` match at each line."""
    options = lazy.re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True  # only the place of a match is needed, which is faster
    options.case_sensitive = not ignore_case
    try:
        return Expression(lazy.re2.compile(f"(?m){pattern}".encode(), options))
    except lazy.re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "unknown"
        raise InvalidArgumentError("pattern", f"{short_repr(pattern)} {_advice(pattern, reason)}") from None


def _advice(pattern: str, reason: str) -> str:
    if "too large" in reason or "repetition size" in reason:
        return f"needs too much memory ({reason}); use smaller repetitions, such as + instead of {{1000}}"
    if any(sign in pattern for sign in UNSUPPORTED) and "perl operator" in reason:
        return f"has look-around, which cannot run in linear time ({reason}); search for the text itself"
    if "escape sequence" in reason and reason.rstrip()[-1:].isdigit():
        return f"has a backreference, which cannot run in linear time ({reason}); write the text out"
    return f"is not a regular expression ({reason}); put a \\ before signs such as ( [ * + ? to search for them"
