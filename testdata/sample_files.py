"""Small files of every format, made by code, so that no binary file is stored."""

import io
import zipfile
from collections.abc import Mapping, Sequence

import docx
import openpyxl
import pptx
from PIL import Image
from PIL.PngImagePlugin import PngInfo

_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
)


def make_pdf(
    pages: Sequence[str], title: str = "", *, bookmarks: Mapping[str, int] | None = None, encrypted: bool = False
) -> bytes:
    """Make a PDF file with a page for each text. Bookmarks have the numbers of their pages, from 1."""
    bookmarks = bookmarks or {}
    count = len(pages)
    first_mark = 5 + 2 * count
    objects = [
        b"<</Type/Catalog/Pages 2 0 R" + (b"/Outlines 4 0 R" if bookmarks else b"") + b">>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (count, b" ".join(b"%d 0 R" % (5 + 2 * at) for at in range(count))),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</First %d 0 R/Last %d 0 R/Count %d>>" % (first_mark, first_mark + len(bookmarks) - 1, len(bookmarks)),
    ]
    for at, text in enumerate(pages):
        content = _content(text)
        objects += (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (6 + 2 * at),
            b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        )
    for at, (name, page) in enumerate(bookmarks.items()):
        following = b"/Next %d 0 R" % (first_mark + at + 1) if at + 1 < len(bookmarks) else b""
        objects.append(
            b"<</Title(%b)/Parent 4 0 R/Dest[%d 0 R/Fit]%b>>" % (name.encode("latin-1"), 3 + 2 * page, following)
        )
    trailer = b""
    if title:
        objects.append(b"<</Title(%b)/Author(Ada)>>" % title.encode("latin-1"))
        trailer += b"/Info %d 0 R" % len(objects)
    if encrypted:
        objects.append(b"<</Filter/Standard/V 1/R 2/P -4/O<%b>/U<%b>>>" % (b"41" * 32, b"42" * 32))
        trailer += b"/Encrypt %d 0 R/ID[<00><00>]" % len(objects)
    return make_pdf_file(objects, trailer)


def _content(text: str) -> bytes:
    lines = [line.translate({ord("("): r"\(", ord(")"): r"\)", ord("\\"): r"\\"}) for line in text.split("\n")]
    shown = b"".join(b"(%b) Tj T*\n" % line.encode("latin-1") for line in lines)
    return b"BT /F1 10 Tf 12 TL 40 800 Td\n%bET" % shown


def make_pdf_file(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return data + b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
        len(objects) + 1,
        trailer,
        len(data),
    )


def make_docx() -> bytes:
    document = docx.Document()
    document.core_properties.title = ""
    document.add_heading("Operations manual", 0)
    document.add_paragraph("This manual is for the people on call.")
    document.add_heading("Restart", 1)
    document.add_paragraph("Restart the pods at night only. " * 10)
    document.add_heading("On Linux", 2)
    document.add_paragraph("Use systemctl. " * 30)
    document.add_paragraph("first step", style="List Number")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "region", "eu-west-1"
    return _saved(document)


def make_pptx() -> bytes:
    presentation = pptx.Presentation()
    for title, body in (("Roadmap", "Search in March"), ("Budget", "Two million euros")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    slide.notes_slide.notes_text_frame.text = "Do not show this to customers."
    return _saved(presentation)


def make_xlsx(rows: int = 200) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Orders"
    sheet.append(["order", "customer", "amount"])
    for number in range(1, rows + 1):
        sheet.append([f"A-{number}", f"customer {number}", number * 1.5])
    other = workbook.create_sheet("Regions")
    other.append(["region", "city"])
    other.append(["north", "Oslo"])
    return _saved(workbook)


def make_sparse_xlsx() -> bytes:
    """Make a workbook with two cells that are as far apart as possible."""
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "first"
    workbook.active.cell(1_048_576, 16_384, "last")
    return _saved(workbook)


def make_epub(extra: Mapping[str, bytes] | None = None) -> bytes:
    chapters = {
        "one.xhtml": "<html><body><h1>The sea</h1><p>It was a calm day.</p><h2>The ship</h2><p>Its name was Ada.</p>",
        "two.xhtml": "<html><body><h1>The storm</h1><p>Nobody slept that night.</p></body></html>",
    }
    items = "".join(f'<item id="c{at}" href="{name}"/>' for at, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>A voyage</dc:title><dc:creator>Ada</dc:creator></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>"
    )
    entries = {"mimetype": b"application/epub+zip", "META-INF/container.xml": _CONTAINER.encode()}
    entries |= {"OPS/book.opf": book.encode()} | {f"OPS/{name}": text.encode() for name, text in chapters.items()}
    return make_zip(entries | dict(extra or {}))


def make_png(width: int = 640, height: int = 480) -> bytes:
    info = PngInfo()
    info.add_text("Description", "The rack in room 4")
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "PNG", pnginfo=info)
    return buffer.getvalue()


def make_jpeg() -> bytes:
    image = Image.new("RGB", (320, 200))
    exif = Image.Exif()
    exif[0x010E], exif[0x0110], exif[0x0132] = "Harbour at dawn", "Camera 9", "2026:03:01 06:10:00"
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def make_zip(entries: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def replace_entry(package: bytes, name: str, data: bytes) -> bytes:
    """Return a zip file with another content of one entry."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    return make_zip(entries | {name: data})


def _saved(document: object) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]  # each of the three libraries has it
    return buffer.getvalue()


SAMPLE_MAIL = (
    b"From: Ada <ada@example.com>\r\nTo: ops@example.com\r\nSubject: =?utf-8?q?Z=C3=BCrich_is_down?=\r\n"
    b"Date: Sun, 1 Mar 2026 06:10:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=xyz\r\n\r\n"
    b"--xyz\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>The <b>gateway</b> does not answer.</p>\r\n"
    b"--xyz\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=report.pdf\r\n\r\n%PDF\r\n"
    b"--xyz--\r\n"
)
