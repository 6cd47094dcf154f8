"""Hostile files, made by code: damaged, encrypted, misnamed, binary, and made to take much time or memory.

`hostile_files` returns them by name, and `EXPECTED` says what is expected of each: words of the error, or nothing if
the file is read.
"""

import io
import random
import stat
import struct
import warnings
import zipfile
import zlib
from functools import cache

from sample_files import (
    make_docx,
    make_epub,
    make_pdf,
    make_pdf_file,
    make_png,
    make_pptx,
    make_sparse_xlsx,
    make_xlsx,
    make_zip,
)
from sample_files import replace_entry as replaced

_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">' for at in range(1, 10))
    + "]><x>&a9;</x>"
).encode()
_BOMB_BYTES = 32 << 20

EXPECTED: dict[str, str] = {
    "picture.md": "content is a PNG image",
    "program.pdf": "content is a program for Windows",
    "program.txt": "content is a program for Linux",
    "program": "is a program for Linux",
    "report.docx": "content is a PDF document",
    "encrypted.pdf": "encrypted with a password",
    "truncated.pdf": "damaged PDF",
    "garbage.pdf": "is not a PDF document",
    "text.pdf": "is not a PDF document",
    "empty.pdf": "is empty",
    "empty.docx": "is empty",
    "truncated.docx": "end is missing",
    "damaged entry.docx": "is damaged in its entry 'word/document.xml'",
    "wrong size.docx": "damaged",
    "other zip.docx": "zip archive without the contents of a Word document",
    "no document.docx": "is damaged",
    "password.docx": "is encrypted",
    "old.docx": "an Office file of the old format, or one with a password",
    "many entries.docx": "60000 entries, more than 50000",
    "deep.docx": "is damaged",
    "bomb.docx": "as a zip bomb does",
    "bomb.pptx": "as a zip bomb does",
    "bomb.xlsx": "as a zip bomb does",
    "bomb.epub": "as a zip bomb does",
    "declared bomb.xlsx": "bytes uncompressed, more than",
    "entities.docx": "XML entities in its entry 'word/document.xml'",
    "entities.pptx": "XML entities",
    "entities.xlsx": "XML entities",
    "entities.epub": "XML entities",
    "entities in UTF-16.docx": "XML entities",
    "entities.svg": "declares XML entities",
    "no book.epub": "damaged EPUB book",
    "huge.png": "60000 x 60000 pixels",
    "truncated.png": "is damaged",
    "damaged.jpg": "is damaged",
    "text.png": "is not a PNG image",
    "nul.txt": "NUL bytes",
    "binary.txt": "control characters",
    "no mark.txt": "NUL bytes",
    "broken.txt": "not valid",
    "giant.txt": "more than 20000000",
    "database.csv": "an SQLite database",
    "packed.json": "a gzip archive",
    "film.md": "a video",
    "archive.zip": "a zip archive",
    "not a mail.eml": "not an e-mail",
    "binary.eml": "not an e-mail",
    "parts.eml": "groups of parts",
    "latin.txt": "",
    "deep.json": "",
    "unclosed.json": "",
    "deep.html": "",
    "unclosed.html": "",
    "digits.html": "",
    "one line.csv": "",
    "open quote.csv": "",
    "fences.md": "",
    "parentheses.py": "",
    "sparse.xlsx": "",
    "../../escape.md": "",
}


@cache
def hostile_files() -> dict[str, bytes]:
    """Return the content of each hostile file."""
    files = {**_misnamed(), **_damaged(), **_bombs(), **_binary(), **_harmless()}
    assert files.keys() == EXPECTED.keys(), files.keys() ^ EXPECTED.keys()
    return files


def _misnamed() -> dict[str, bytes]:
    return {
        "picture.md": make_png(),
        "program.pdf": b"MZ\x90\x00" + bytes(200),
        "program.txt": b"\x7fELF\x02\x01" + bytes(200),
        "program": b"\x7fELF\x02\x01" + bytes(200),
        "report.docx": make_pdf(["A report."]),
        "text.pdf": b"This is not a PDF file.",
        "text.png": b"This is not an image.",
        "old.docx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "database.csv": b"SQLite format 3\x00" + bytes(200),
        "packed.json": b"\x1f\x8b\x08\x00" + bytes(50),
        "film.md": b"\x00\x00\x00\x20ftypisom" + bytes(50),
        "archive.zip": make_zip({"a.txt": b"a"}),
        "other zip.docx": make_zip({"a.txt": b"a"}),
        "not a mail.eml": b"Hello: this is a text without headers of an e-mail.\n\nReally.",
        "binary.eml": b"From: a\0b",
    }


def _damaged() -> dict[str, bytes]:
    document = make_docx()
    at = document.index(b"word/document.xml") + 60
    wrong_size = bytearray(document)
    entry = document.rindex(b"PK\x01\x02", 0, document.rindex(b"word/document.xml"))
    struct.pack_into("<I", wrong_size, entry + 24, 200)
    encrypted = bytearray(document)
    for header, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(header) + offset] |= 1
    return {
        "encrypted.pdf": make_pdf(["Secret."], encrypted=True),
        "truncated.pdf": make_pdf(["A report."])[:60],
        "garbage.pdf": random.Random(1).randbytes(5_000),
        "empty.pdf": b"",
        "empty.docx": b"",
        "truncated.docx": document[: len(document) // 2],
        "damaged entry.docx": document[:at] + b"\xff" * 40 + document[at + 40 :],
        "wrong size.docx": bytes(wrong_size),
        "no document.docx": make_zip({"word/other.xml": b"<x/>"}),
        "password.docx": bytes(encrypted),
        "deep.docx": replaced(document, "word/document.xml", b"<a>" * 100_000 + b"</a>" * 100_000),
        "no book.epub": make_zip({"META-INF/container.xml": b"<container/>"}),
        "truncated.png": make_png()[:12],
        "damaged.jpg": b"\xff\xd8\xff\xe0" + bytes(40),
    }


def _bombs() -> dict[str, bytes]:
    spaces = b" " * _BOMB_BYTES
    size = 20_000_001
    declared = bytearray(make_xlsx(3))
    entry = declared.index(b"PK\x01\x02")
    struct.pack_into("<I", declared, entry + 24, 4_000_000_000)
    return {
        "many entries.docx": make_zip({f"word/{number}": b"" for number in range(60_000)}),
        "bomb.docx": replaced(make_docx(), "word/document.xml", spaces),
        "bomb.pptx": replaced(make_pptx(), "ppt/presentation.xml", spaces),
        "bomb.xlsx": replaced(make_xlsx(3), "xl/worksheets/sheet1.xml", spaces),
        "bomb.epub": make_epub({"OPS/one.xhtml": spaces}),
        "declared bomb.xlsx": bytes(declared),
        "entities.docx": replaced(make_docx(), "word/document.xml", _LAUGHS),
        "entities.pptx": replaced(make_pptx(), "ppt/presentation.xml", _LAUGHS),
        "entities.xlsx": replaced(make_xlsx(3), "xl/sharedStrings.xml", _LAUGHS),
        "entities.epub": make_epub({"OPS/book.opf": _LAUGHS}),
        "entities in UTF-16.docx": replaced(make_docx(), "word/document.xml", _LAUGHS.decode().encode("utf-16")),
        "entities.svg": _LAUGHS,
        "huge.png": _png_header(60_000, 60_000),
        "giant.txt": b"a" * size,
        "parts.eml": b"From: a@b.c\n" + b"".join(map(_nested_parts, range(300))),
    }


def _binary() -> dict[str, bytes]:
    generator = random.Random(2)
    return {
        "nul.txt": b"some text\0and more",
        "binary.txt": bytes(generator.choice(range(1, 256)) for _ in range(5_000)),
        "no mark.txt": "a text in UTF-16".encode("utf-16-le"),
        "broken.txt": b"\xff\xfe" + b"\x00\xd8" * 3,
    }


def _harmless() -> dict[str, bytes]:
    return {
        "latin.txt": "Zürich, Köln und Málaga".encode("latin-1"),
        "deep.json": b"[" * 200_000 + b"]" * 200_000,
        "unclosed.json": b'{"a": "' + b'\\"' * 100_000,
        "deep.html": b"<div><b><a>" * 50_000 + b"deep",
        "unclosed.html": b"<a href='" * 50_000 + b"<!--" * 50_000 + b"<script>" * 1_000,
        "digits.html": b"<p>&#" + b"9" * 6_000 + b";</p>",
        "one line.csv": b"name,city\n" + b"a," * 1_000_000,
        "open quote.csv": b'name,city\n"' + b"a,b\n" * 100_000,
        "fences.md": b"```\n# no heading\n" * 20_000,
        "parentheses.py": b"(" * 200_000,
        "sparse.xlsx": make_sparse_xlsx(),
        "../../escape.md": b"# Up\n\nThe name of a file is never used as a path.",
    }


def make_endless_pdf() -> bytes:
    """Make a PDF file whose page draws a form that draws ten forms, and so on: reading it takes years."""
    levels = 20
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</F 5 0 R>>>>/Contents 4 0 R>>",
        b"<</Length 5>>stream\n/F Do\nendstream",
    ]
    for level in range(levels):
        content = b"/F Do " * 10 if level < levels - 1 else b"q Q"
        objects.append(
            b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F %d 0 R>>>>/Length %d>>stream\n%b\n"
            b"endstream" % (6 + level, len(content), content)
        )
    return make_pdf_file(objects)


def _nested_parts(number: int) -> bytes:
    return b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (number, number)


def _png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


ARCHIVE_PROBLEMS: dict[str, str] = {
    "../outside.txt": "'..'",
    "a/../../outside.txt": "'..'",
    "/etc/passwd": "absolute path",
    "C:/windows/win.ini": "absolute path",
    "..\\outside.txt": "path of another system",
    "a//b.txt": "empty name",
    "./here.txt": "'.'",
    "link": "symbolic link",
    "device": "device file",
    "pipe": "named pipe",
    "bomb.txt": "zip bomb",
    "secret.txt": "encrypted",
    "packed.txt": "compressed by method 14",
    "good.txt": "same path as another entry",
    "good.txt/below.txt": "same path as a file",
    "new\nline.txt": "control characters",
    "n" * 300: "more than 255 bytes",
    "d/" * 40 + "deep.txt": "in 40 folders",
}
"""The bad entries of `hostile_archive`, with words of their problems."""


def hostile_archive() -> bytes:
    """Return a zip file with good entries, and with bad ones of every kind."""
    buffer = io.BytesIO()
    kinds = {"link": stat.S_IFLNK, "device": stat.S_IFCHR, "pipe": stat.S_IFIFO}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings(action="ignore"):
        archive.writestr("good.txt", "good")
        archive.writestr("folder/", "")
        archive.writestr("folder/höher.md", "# Good too")
        for name in ARCHIVE_PROBLEMS:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_LZMA if name == "packed.txt" else zipfile.ZIP_DEFLATED
            if name in kinds:
                info.external_attr = (kinds[name] | 0o777) << 16
            archive.writestr(info, b"0" * (_BOMB_BYTES if name == "bomb.txt" else 10))
        archive.writestr("last.txt", "last")
    data = bytearray(buffer.getvalue())
    data[data.rindex(b"PK\x01\x02", 0, data.rindex(b"secret.txt")) + 8] |= 1
    return bytes(data)
