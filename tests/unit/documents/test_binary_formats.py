"""Text is extracted from PDF and Office files, e-mail, books and images, with pages and headings."""

import resource
import sys
import time

import pytest

from holdfast import lazy
from holdfast.documents import parse
from holdfast.errors import DocumentError
from sample_files import (
    SAMPLE_MAIL,
    make_docx,
    make_epub,
    make_jpeg,
    make_pdf,
    make_png,
    make_pptx,
    make_xlsx,
)


def test_the_parts_of_a_pdf_are_its_pages() -> None:
    pages = ["Restart (all) pods at night.", "Ask the team first.", "Then write a report."]
    document = parse("manual.pdf", make_pdf(pages, "Manual", bookmarks={"Restart": 1, "Report": 3}))
    assert [(part.page, part.title, part.abstract) for part in document.parts] == [
        (1, "Restart", "Restart (all) pods at night."),
        (2, "Restart", "Ask the team first."),
        (3, "Report", "Then write a report."),
    ]
    assert (document.title, document.media_type) == ("Manual", "application/pdf")
    assert (document.metadata["author"], document.metadata["pages"]) == ("Ada", 3)
    assert [part.title for part in parse("x.pdf", make_pdf(["One."])).parts] == ["Page 1"]


def test_a_pdf_without_text_is_described_with_a_note() -> None:
    document = parse("scan.pdf", make_pdf(["", ""]))
    assert document.text == "PDF document of 2 pages without text."
    assert "scanned" in document.notes[0]


def test_a_pdf_of_300_pages_takes_little_time_and_memory() -> None:
    line = "The gateway in region east restarts after a deployment and writes a report."
    data = make_pdf(["\n".join([f"Page {number}", *[line] * 55]) for number in range(300)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started_at = time.process_time()
    document = parse("manual.pdf", data)
    assert time.process_time() - started_at < 5
    assert (document.parts[-1].page, document.metadata["pages"]) == (300, 300)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10


def test_a_word_document_is_split_by_headings() -> None:
    document = parse("manual.docx", make_docx())
    assert [part.title for part in document.parts] == ["Restart", "Restart > On Linux"]
    assert document.title == "Operations manual"
    assert "## On Linux\n" in document.text
    assert "- first step" in document.text
    assert "region | eu-west-1" in document.text


def test_the_parts_of_a_presentation_are_its_slides() -> None:
    document = parse("plan.pptx", make_pptx())
    assert [(part.page, part.title) for part in document.parts] == [(1, "Roadmap"), (2, "Budget")]
    assert document.parts[0].abstract == "Search in March"
    assert "Notes: Do not show this to customers." in document.text


def test_a_workbook_is_split_by_sheets_and_rows_and_each_part_names_the_columns() -> None:
    document = parse("orders.xlsx", make_xlsx())
    assert document.parts[0].title == "Orders > order, customer, amount"
    assert document.parts[1].title.startswith("Orders > order, customer, amount, rows from ")
    assert document.parts[-1].title == "Regions > region, city"
    assert "A-200 | customer 200 | 300" in document.text
    assert document.metadata["description"] == "Workbook with the sheets Orders, Regions."


def test_a_book_is_split_by_chapters() -> None:
    document = parse("voyage.epub", make_epub())
    assert document.title == "A voyage"
    assert "The storm" in document.parts[-1].title
    assert "Its name was Ada." in document.text
    assert document.metadata["creator"] == "Ada"


def test_an_email_has_its_headers_body_and_the_names_of_attachments() -> None:
    document = parse("down.eml", SAMPLE_MAIL)
    assert document.title == "Zürich is down"
    assert "From: Ada <ada@example.com>\n" in document.text
    assert "The gateway does not answer." in document.text
    assert document.metadata["attachments"] == ["report.pdf"]
    assert document.text.endswith("- report.pdf\n")


def test_an_image_is_described_by_its_size_and_metadata() -> None:
    png, jpeg = parse("rack.png", make_png()), parse("harbour.jpg", make_jpeg())
    assert png.text == "PNG image of 640 x 480 pixels.\nDescription: The rack in room 4\n"
    assert (jpeg.metadata["width"], jpeg.metadata["camera"]) == (320, "Camera 9")
    assert "Harbour at dawn" in jpeg.text
    assert parse("really a png.jpg", make_png()).media_type == "image/png"


def test_a_missing_library_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(lazy), "pypdfium2", raising=False)
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(DocumentError, match=r"'a\.pdf' needs the library pypdfium2; install holdfast\[documents\]"):
        parse("a.pdf", make_pdf(["One."]))
