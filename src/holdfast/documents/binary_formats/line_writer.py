"""Lines of text in sections, as the parsers of Office files write them."""

from holdfast.documents.decoding import storable
from holdfast.documents.parsed import MAX_TEXT_CHARS, Section


class LineWriter:
    """Collects lines in sections, up to the longest text that a document may have."""

    def __init__(self) -> None:
        self.length = 0
        self.is_full = False
        self.notes: list[str] = []
        self._pieces: list[str] = []
        self._starts: list[tuple[int, tuple[str, ...], int | None, str]] = [(0, (), None, "")]
        self._bodies: dict[int, int] = {}

    def add(self, line: str) -> None:
        line = storable(line)
        if self.length + len(line) > MAX_TEXT_CHARS:
            if not self.is_full:
                self.notes.append(f"Only the first {self.length} characters were read: the text is too long.")
            self.is_full = True
            return
        self._pieces += (line, "\n")
        self.length += len(line) + 1

    def begin(self, path: tuple[str, ...], page: int | None = None, abstract: str = "") -> None:
        """Begin a section at the end of the text so far."""
        self._starts.append((self.length, tuple(storable(name)[:300] for name in path), page, storable(abstract)))

    def begin_body(self) -> None:
        """Mark the end of the heading of the section."""
        self._bodies[len(self._starts) - 1] = self.length

    def finish(self) -> tuple[str, list[Section]]:
        text = "".join(self._pieces)
        ends = [start for start, _, _, _ in self._starts[1:]] + [len(text)]
        sections = [
            Section(path, start, end, page, self._bodies.get(number, -1), abstract)
            for number, ((start, path, page, abstract), end) in enumerate(zip(self._starts, ends, strict=True))
        ]
        return text, [section for section in sections if section.end > section.start]
