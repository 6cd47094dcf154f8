"""HTML: the text without tags, with sections by headings."""

from holdfast.documents.decoding import storable
from holdfast.documents.lines import MAX_SECTIONS
from holdfast.documents.parsed import Extracted
from holdfast.documents.sections import sections_from_starts
from holdfast.documents.text_formats.html_tokens import tokens
from holdfast.text.sentences import to_single_line

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = {"br": "\n", "hr": "\n", "li": "\n- ", "tr": "\n", "td": " | ", "th": " | ", "dt": "\n", "dd": "\n  "}
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "details",
        "dialog",
        "div",
        "dl",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "ul",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "title",
    ]
)
MAX_HEADING_CHARS = 300
_MAX_PIECES = 50_000
"""So many pieces of text are joined to one."""


def parse_html(source: str, _extension: str) -> Extracted:
    """Return the text of an HTML document. Scripts, styles and comments are left out."""
    text = HtmlText()
    text.add(source)
    return text.extracted()


class HtmlText:
    """Collects the text and the headings of one or more HTML documents."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._pieces: list[str] = []
        self._length = 0
        self._ending = "\n"
        """The last characters of the text."""
        self._starts: list[tuple[int, tuple[str, ...], int]] = []
        self._headings: list[tuple[int, str]] = []
        self.title = ""

    def add(self, source: str) -> None:
        """Add a document."""
        heading: tuple[str, int, int] | None = None  # the tag, its position and the number of pieces before it
        title_at = -1
        preformatted = 0
        for tag, text, _ in tokens(source):
            if len(self._pieces) > _MAX_PIECES and heading is None and title_at < 0:
                self._finished.append("".join(self._pieces))
                self._pieces.clear()
            if not tag:
                self._add_text(text, keeps_spaces=preformatted > 0)
                continue
            name = tag.removeprefix("/")
            if name == "title":
                title_at = self._take_title(tag, title_at)
            elif name == "pre":
                preformatted = max(0, preformatted + (1 if tag == name else -1))
            self._add_break(tag, name)
            if name not in _HEADINGS or title_at >= 0:
                continue
            if tag == name:
                heading = (tag, self._length, len(self._pieces))
            elif heading is not None and heading[0] == name:
                self._add_heading(*heading)
                heading = None
        self._add_break("p", "p")

    def length(self) -> int:
        return self._length

    def begin_section(self, title: str) -> None:
        """Begin a section, such as a chapter, above all headings that follow."""
        self._headings = [(0, title)]
        self._starts.append((self._length, (title,), self._length))

    def extracted(self) -> Extracted:
        text = storable("".join([*self._finished, *self._pieces]))
        first = next((path[0] for _, path, _ in self._starts if path), "")
        return Extracted(text, sections_from_starts(text, self._starts), self.title or first)

    def _take_title(self, tag: str, title_at: int) -> int:
        """Take the text between the tags of the title out of the text."""
        if tag == "title":
            return len(self._pieces)
        if title_at >= 0 and not self.title:
            self.title = to_single_line("".join(self._pieces[title_at:])[:MAX_HEADING_CHARS])
            self._length -= sum(map(len, self._pieces[title_at:]))
            del self._pieces[title_at:]
        return -1

    def _add_heading(self, tag: str, start: int, pieces: int) -> None:
        title = to_single_line("".join(self._pieces[pieces : pieces + 50])[:MAX_HEADING_CHARS])
        if not title or len(self._starts) >= MAX_SECTIONS:
            return
        level = _HEADINGS[tag]
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title))
        self._starts.append((start, tuple(name for _, name in self._headings), self._length))

    def _add_text(self, text: str, *, keeps_spaces: bool) -> None:
        if not keeps_spaces:
            words = " ".join(text.split())
            if not words:
                text = " " if text and not self._ending[-1].isspace() else ""
            else:
                before = " " if text[0].isspace() and not self._ending[-1].isspace() else ""
                text = f"{before}{words}{' ' if text[-1].isspace() else ''}"
        self._append(text.replace("\r\n", "\n").replace("\r", "\n"))

    def _add_break(self, tag: str, name: str) -> None:
        if name in _BLOCKS:
            missing = 2 - (len(self._ending) - len(self._ending.rstrip("\n")))
            self._append("\n" * max(0, min(2, missing)) if self._length else "")
        elif tag in _BREAKS:
            text = _BREAKS[tag]
            starts_line = self._ending.endswith("\n") or (name in {"td", "th"} and self._ending.endswith("\n"))
            self._append(text.lstrip("\n |") if starts_line and tag != "br" else text)

    def _append(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._length += len(text)
            self._ending = (self._ending + text[-2:])[-2:]
