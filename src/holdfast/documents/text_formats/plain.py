"""Texts without structure: sections by paragraphs."""

from holdfast.documents.parsed import Extracted, Section, UnreadableError


def parse_plain(text: str, _extension: str) -> Extracted:
    return Extracted(text, [Section((), 0, len(text))])


def parse_svg(text: str, _extension: str) -> Extracted:
    """Keep an SVG image as its source. Entities are refused, because a viewer would expand them."""
    if "<!ENTITY" in text:
        raise UnreadableError("declares XML entities, which can expand without limit; remove them")
    return parse_plain(text, _extension)
