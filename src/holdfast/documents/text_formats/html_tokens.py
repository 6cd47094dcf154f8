"""HTML as a sequence of texts and tags, in linear time and without a tree, so that any nesting is fine."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAME = re.compile(r"/?[a-zA-Z][^\s/>]{0,40}")
_TAG_END = re.compile(r"[\"'>]")
_RAW_ENDS = {
    name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "template", "noscript", "textarea")
}
"""Elements whose content is skipped."""


class Token(NamedTuple):
    tag: str
    """The name of the tag in lower case, with `/` before the name of a closing tag. Empty for a text."""
    text: str
    end: int
    """Where the token ends in the source."""


def tokens(source: str) -> Iterator[Token]:
    """Return the texts and tags of an HTML document. Comments, scripts and styles are left out.

    >>> [token[:2] for token in tokens("<p>a &amp; b<!-- c --></p>")]
    [('p', ''), ('', 'a & b'), ('/p', '')]
    """
    scan = _Scan(source)
    at = 0
    while at < len(source):
        opening = source.find("<", at)
        opening = len(source) if opening < 0 else opening
        if opening > at:
            yield Token("", unescape(source[at:opening]), opening)
        if opening == len(source):
            return
        name = _NAME.match(source, opening + 1)
        if name is None:
            at = scan.skip_declaration(opening)
            if at == opening + 1:
                yield Token("", "<", at)
            continue
        at = scan.tag_end(name.end())
        tag = name[0].lower()
        yield Token(tag, "", at)
        if tag in _RAW_ENDS:
            at = scan.raw_end(tag, at)


def unescape(text: str) -> str:
    """Replace character references. Python refuses numbers of thousands of digits; such a text stays as it is."""
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:
        return text


class _Scan:
    """Searches that are not repeated once they have found nothing, so that the whole scan is linear."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._missing: set[str] = set()

    def _find(self, mark: str, at: int) -> int:
        if mark in self._missing:
            return -1
        found = self._source.find(mark, at)
        if found < 0:
            self._missing.add(mark)
        return found

    def skip_declaration(self, at: int) -> int:
        """Return the end of a comment, a declaration or an instruction, or the position after a lone `<`."""
        source = self._source
        if source.startswith("<!--", at):
            end = self._find("-->", at + 4)
            return len(source) if end < 0 else end + 3
        if source.startswith("<![CDATA[", at):
            return at + len("<![CDATA[")
        if source.startswith(("<!", "<?", "</"), at):
            end = self._find(">", at)
            return len(source) if end < 0 else end + 1
        return at + 1

    def tag_end(self, at: int) -> int:
        """Return the position after the `>` of a tag. Quotes of attributes may contain a `>`."""
        while True:
            found = _TAG_END.search(self._source, at)
            if found is None:
                return len(self._source)
            if found[0] == ">":
                return found.end()
            closing = self._find(found[0], found.end())
            at = found.end() if closing < 0 else closing + 1

    def raw_end(self, tag: str, at: int) -> int:
        if tag in self._missing:
            return len(self._source)
        found = _RAW_ENDS[tag].search(self._source, at)
        if found is None:
            self._missing.add(tag)
            return len(self._source)
        return found.start()
