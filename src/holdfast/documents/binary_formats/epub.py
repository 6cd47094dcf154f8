"""EPUB books: sections by chapters and their headings."""

import posixpath
import zipfile
from xml.etree import ElementTree as ET

from holdfast.documents.decoding import decode
from holdfast.documents.packages import open_package
from holdfast.documents.parsed import MAX_TEXT_CHARS, Extracted, UnreadableError
from holdfast.documents.text_formats.html import HtmlText
from holdfast.documents.text_formats.html_tokens import unescape
from holdfast.text.sentences import to_single_line

MAX_CHAPTERS = 2_000
_CONTAINER = "META-INF/container.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"


def parse_epub(data: bytes) -> Extracted:
    """Return the text of a book in the order of its chapters."""
    with open_package(data) as package:
        root = _xml(package, _CONTAINER).find(".//{*}rootfile")
        path = root.get("full-path", "") if root is not None else ""
        content = _xml(package, path)
        text = HtmlText()
        notes: list[str] = []
        for number, chapter in enumerate(_chapters(content, posixpath.dirname(path)), 1):
            if number > MAX_CHAPTERS or text.length() > MAX_TEXT_CHARS:
                notes.append(f"Only the first {number - 1} chapters were read.")
                break
            try:
                source = decode(package.read(chapter)).text
            except KeyError:
                notes.append(f"The chapter {chapter[:100]!r} is missing.")
                continue
            text.begin_section(_title(source) or f"Chapter {number}")
            text.add(source)
    extracted = text.extracted()
    values = {name: (content.findtext(f".//{_DC}{name}") or "")[:2_000] for name in ("title", "creator", "description")}
    if "<" in values["description"]:
        described = HtmlText()
        described.add(unescape(values["description"]))
        values["description"] = described.extracted().text.strip()
    return Extracted(extracted.text, extracted.sections, values["title"] or extracted.title, dict(values), notes)


def _xml(package: zipfile.ZipFile, path: str) -> ET.Element:
    try:
        return ET.fromstring(package.read(path))  # noqa: S314 - the package refuses entities
    except (KeyError, ET.ParseError, ValueError, LookupError):
        raise UnreadableError(f"is a damaged EPUB book: its entry {path!r:.100} is missing or no XML") from None


def _chapters(content: ET.Element, folder: str) -> list[str]:
    """Return the paths of the chapters in reading order."""
    items = {item.get("id"): item.get("href", "") for item in content.iterfind(".//{*}manifest/{*}item")}
    spine = [items.get(reference.get("idref"), "") for reference in content.iterfind(".//{*}spine/{*}itemref")]
    return [posixpath.normpath(posixpath.join(folder, href.partition("#")[0])) for href in dict.fromkeys(spine) if href]


def _title(source: str) -> str:
    """Return the text of the first heading of a chapter, or else of its title."""
    chapter = HtmlText()
    chapter.add(source[:20_000])
    sections = chapter.extracted().sections
    named = next((section.path[0] for section in sections if section.path), "")
    return to_single_line(named or chapter.title)
