"""The lines that a search finds, and its limits of time, of bytes that it reads, and of bytes that it returns."""

import time
from collections.abc import Iterator

from holdfast.engine.tree.patterns.expressions import Expression
from holdfast.model.tree.patterns import GrepMatch, GrepResult
from holdfast.ops.tree.patterns import Grep

MAX_CPU_SECONDS = 5.0
MAX_SECONDS = 15.0
MAX_BYTES = 1_000_000_000
MAX_VIEWS = 10_000
"""How many nodes of views one search opens."""
MAX_ANSWER_BYTES = 4_000_000
MAX_LINE_BYTES = 1_000
"""A longer line is cut around the match."""
BYTES_BEFORE_MATCH = 300
CUT = "…"
_OVERHEAD_BYTES = 60


class MatchList:
    """Collects matches until a limit is reached."""

    def __init__(self, op: Grep, expression: Expression, excluded: str | None, answer_bytes: int) -> None:
        self.tags = frozenset([op.tags] if isinstance(op.tags, str) else op.tags or ())
        self.include_tags = op.include_tags
        self.is_full = False
        self._op = op
        self._expression = expression
        self._excluded = excluded
        self._matches: list[GrepMatch] = []
        self._files = 0
        self._views = 0
        self._bytes_left = MAX_BYTES
        self._answer_left = min(MAX_ANSWER_BYTES, answer_bytes)
        self._hint = ""
        self._names_returns = "\\r" in op.pattern or "\r" in op.pattern
        self._cpu_end = time.thread_time() + MAX_CPU_SECONDS
        self._end = time.monotonic() + MAX_SECONDS

    def is_excluded(self, uri: str) -> bool:
        return self._excluded is not None and (uri == self._excluded or uri.startswith(f"{self._excluded}/"))

    def visit(self) -> bool:
        """Count a node of a view. Return False if there are too many."""
        self._views += 1
        if self._views > MAX_VIEWS:
            self._stop("", f"{MAX_VIEWS:,} files and folders of sessions were searched")
        return not self.is_full

    def search(self, uri: str, pieces: Iterator[bytes], tags: list[str]) -> None:
        """Search one file. Pieces may end inside of a line."""
        self._files += 1
        first_line, rest = 1, b""
        for piece in pieces:
            data = rest + piece
            end = data.rfind(b"\n") + 1
            if not end or len(piece) < len(data) - end:
                end = len(data)  # a line that is longer than a piece is searched in several
            rest = data[end:]
            whole = data[:end] if rest else data
            self._search_lines(uri, whole, first_line, tags)
            if self.is_full:
                return
            first_line += whole.count(b"\n")
        if rest:
            self._search_lines(uri, rest, first_line, tags)

    def _search_lines(self, uri: str, data: bytes, first_line: int, tags: list[str]) -> None:
        line, counted = first_line, 0
        self._bytes_left -= len(data)
        if not self._names_returns and b"\r\n" in data:
            data = data.replace(b"\r\n", b"\n")  # so that `$` matches at the end of these lines, too
        for span in self._expression.spans(data):
            if time.thread_time() > self._cpu_end or time.monotonic() > self._end:
                self._stop(uri, "the time for one search ended")
            if self.is_full:
                return
            if span is None:
                continue
            if len(self._matches) == self._op.node_limit:
                self._stop(uri, f"{self._op.node_limit:,} matches were found (node_limit)")
                return
            line, counted = line + data.count(b"\n", counted, span[0]), span[0]
            self._add(uri, data, span, line, tags)
        if self._bytes_left <= 0:
            self._stop(uri, f"{MAX_BYTES:,} bytes were searched")

    def _add(self, uri: str, data: bytes, span: tuple[int, int], line: int, tags: list[str]) -> None:
        start = data.rfind(b"\n", 0, span[0]) + 1
        newline = data.find(b"\n", span[0])
        end = len(data) if newline < 0 else newline
        match = GrepMatch(
            uri=uri,
            line=line,
            content=_cut(data, start, end, span[0]),
            before=_lines_before(data, start, self._op.before_context),
            after=_lines_after(data, end, self._op.after_context),
            tags=tags,
        )
        texts = [match.content, *match.before, *match.after]
        self._answer_left -= _OVERHEAD_BYTES + 3 * (len(uri) + sum(map(len, texts)))
        if self._answer_left < 0 and self._matches:
            self._stop(uri, "the answer is as long as one may be")
            return
        self._matches.append(match)

    def _stop(self, uri: str, reason: str) -> None:
        self.is_full = True
        place = f" in {uri}" if uri else ""
        self._hint = f"{reason}{place}; search a folder in {self._op.uri}, or use a pattern with fewer matches"

    def result(self) -> GrepResult:
        return GrepResult(
            matches=self._matches,
            count=len(self._matches),
            match_count=len(self._matches),
            files_scanned=self._files,
            truncated=self.is_full,
            hint=self._hint,
        )


def _lines_before(data: bytes, start: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and start > 0:
        end, start = start - 1, data.rfind(b"\n", 0, start - 1) + 1
        lines.append(_cut(data, start, end, start))
    return lines[::-1]


def _lines_after(data: bytes, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and end + 1 < len(data):
        start = end + 1
        newline = data.find(b"\n", start)
        end = len(data) if newline < 0 else newline
        lines.append(_cut(data, start, end, start))
    return lines


def _cut(data: bytes, start: int, end: int, position: int) -> str:
    """Return a line as text; of a long one, what is around a position."""
    if end - start <= MAX_LINE_BYTES:
        return data[start:end].decode("utf-8", "replace").removesuffix("\r")
    first = max(start, position - BYTES_BEFORE_MATCH)
    last = min(end, first + MAX_LINE_BYTES)
    text = data[first:last].decode("utf-8", "ignore")  # a character may be cut
    return f"{CUT if first > start else ''}{text}{CUT if last < end else ''}"
