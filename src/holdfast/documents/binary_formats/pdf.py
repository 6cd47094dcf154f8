"""PDF: a section for each page."""

import re
import time
from itertools import islice
from typing import Any

from holdfast import lazy
from holdfast.documents.decoding import storable
from holdfast.documents.parsed import MAX_TEXT_CHARS, Extracted, Section, UnreadableError
from holdfast.forking import Lock
from holdfast.text.sentences import to_single_line

MAX_PAGES = 5_000
MAX_BOOKMARKS = 5_000
MAX_SECONDS = 30.0
"""After so much CPU time no further page is read: all pages may share a long content, and it is read for each."""
_MAX_DAMAGED_PAGES = 50
_HYPHEN = re.compile("[\x02\ufffe]\n?")
"""A hyphen at the end of a line, as PDFium marks it."""
_PASSWORD_ERROR = 4
_NOT_A_TITLE = re.compile(r"untitled\b|microsoft (?:word|powerpoint)\b", re.IGNORECASE)
_lock = Lock()
"""PDFium may be called by one thread at a time."""


def parse_pdf(data: bytes) -> Extracted:
    """Return the text of a PDF file, page by page."""
    pdfium = lazy.pypdfium2
    with _lock:
        try:
            document = pdfium.PdfDocument(data)
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) == _PASSWORD_ERROR:
                raise UnreadableError("is encrypted with a password; remove the password and add it again") from None
            raise UnreadableError("is a damaged PDF document; save it again with another program") from None
        try:
            return _read(pdfium, document)
        finally:
            document.close()


def _read(pdfium: Any, document: Any) -> Extracted:
    count = len(document)
    metadata = {key.lower(): value for key, value in document.get_metadata_dict(skip_empty=True).items()}
    notes: list[str] = []
    titles = _titles(pdfium, document)
    sections: list[Section] = []
    pieces: list[str] = []
    length = damaged = 0
    started_at = time.thread_time()
    for number in range(1, min(count, MAX_PAGES) + 1):
        try:
            text = _page_text(document, number)
        except pdfium.PdfiumError:
            damaged += 1
            if damaged > _MAX_DAMAGED_PAGES:
                break
            continue
        if length + len(text) > MAX_TEXT_CHARS or time.thread_time() - started_at > MAX_SECONDS:
            notes.append(f"Only the first {number - 1} of {count} pages were read: the document is too large.")
            break
        path = titles.get(number) or (f"Page {number}",)
        sections.append(Section(path, length, length + len(text) + 2, number))
        pieces += (text, "\n\n")
        length += len(text) + 2
    if count > MAX_PAGES:
        notes.append(f"Only the first {MAX_PAGES} of {count} pages were read.")
    if damaged and damaged >= count:
        raise UnreadableError("is a damaged PDF document: none of its pages can be read; save it again")
    if damaged:
        notes.append(f"{damaged} pages are damaged and were left out.")
    title = to_single_line(metadata.get("title", "")[:500])
    title = "" if _NOT_A_TITLE.match(title) else title
    text = "".join(pieces)
    if not text.strip():
        notes.append("The document has no text: its pages may be scanned images.")
        text = f"PDF document of {count} pages without text. {title}".strip()
        sections = [Section((), 0, len(text))]
    return Extracted(text, sections, title, {**metadata, "pages": count}, notes, merges=False)


def _page_text(document: Any, number: int) -> str:
    page = document[number - 1]
    try:
        text_page = page.get_textpage()
        try:
            text: str = text_page.get_text_range()
        finally:
            text_page.close()
    finally:
        page.close()
    return _HYPHEN.sub("", storable(text)).strip()


def _titles(pdfium: Any, document: Any) -> dict[int, tuple[str, ...]]:
    """Return the path of bookmarks for each page from the first bookmark on."""
    paths: dict[int, tuple[str, ...]] = {}
    path: list[str] = []
    try:
        for mark in islice(document.get_toc(), MAX_BOOKMARKS):
            path = [*path[: mark.level], to_single_line(storable(mark.get_title()[:300]))]
            target = mark.get_dest()
            page = target.get_index() if target else None
            if page is not None and page >= 0:
                paths.setdefault(page + 1, tuple(path))
    except pdfium.PdfiumError:
        return {}
    titles: dict[int, tuple[str, ...]] = {}
    current: tuple[str, ...] = ()
    for number in range(1, min(len(document), MAX_PAGES) + 1):
        current = paths.get(number, current)
        if current:
            titles[number] = current
    return titles
