"""The table of formats: the names and the contents of files, and the functions that read them."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.documents.binary_formats.docx import parse_docx
from holdfast.documents.binary_formats.epub import parse_epub
from holdfast.documents.binary_formats.images import parse_image
from holdfast.documents.binary_formats.mail import parse_mail
from holdfast.documents.binary_formats.pdf import parse_pdf
from holdfast.documents.binary_formats.pptx import parse_pptx
from holdfast.documents.binary_formats.xlsx import parse_xlsx
from holdfast.documents.parsed import Extracted, UnreadableError
from holdfast.documents.text_formats.code import parse_code
from holdfast.documents.text_formats.delimited import parse_delimited
from holdfast.documents.text_formats.html import parse_html
from holdfast.documents.text_formats.json_texts import parse_json
from holdfast.documents.text_formats.markdown import parse_markdown
from holdfast.documents.text_formats.plain import parse_plain, parse_svg


class Format(msgspec.Struct, frozen=True):
    name: str
    """What errors call a file of this format, with its article."""
    media_type: str
    extensions: tuple[str, ...]
    read_text: Callable[[str, str], Extracted] | None = None
    """Reads a decoded text. The second argument is the extension of the file."""
    read_bytes: Callable[[bytes], Extracted] | None = None
    signatures: tuple[bytes, ...] = ()
    """How the content begins. A file of a format with signatures must have one of them."""
    marker: str = ""
    """The entry that distinguishes this kind of zip file."""
    changes_text: bool = False
    """Whether the text is not the content of the file as it is."""


_OFFICE = "application/vnd.openxmlformats-officedocument"
_ZIP = (b"PK\x03\x04",)


def _image(name: str, kind: str, extensions: tuple[str, ...], *signatures: bytes) -> Format:
    return Format(name, f"image/{kind}", extensions, read_bytes=parse_image, signatures=signatures)


def _code(media_type: str, *extensions: str) -> Format:
    return Format("a source file", media_type, extensions, parse_code)


PLAIN = Format(
    "a text file",
    "text/plain",
    (
        *("txt", "text", "log", "rst", "adoc", "org", "tex", "ini", "cfg", "conf", "toml", "yaml", "yml", "env"),
        *("properties", "diff", "patch", "srt", "vtt", "css", "scss", "less", "graphql", "proto", "tf", "mk", "cmake"),
    ),
    parse_plain,
)

FORMATS: tuple[Format, ...] = (
    Format("a Markdown file", "text/markdown", ("md", "markdown", "mdown", "mkd", "mdx"), parse_markdown),
    PLAIN,
    _code("text/x-python", "py", "pyi", "pyw"),
    _code("text/javascript", "js", "mjs", "cjs", "jsx"),
    _code("text/x-typescript", "ts", "mts", "cts", "tsx"),
    _code("text/x-c", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "m", "mm"),
    _code("text/x-java", "java"),
    _code("text/x-csharp", "cs"),
    _code("text/x-go", "go"),
    _code("text/x-rust", "rs"),
    _code("text/x-ruby", "rb"),
    _code("text/x-php", "php"),
    _code("text/x-shellscript", "sh", "bash", "zsh", "ps1", "bat"),
    _code("text/x-sql", "sql"),
    _code(
        "text/x-source",
        *("swift", "kt", "kts", "scala", "pl", "pm", "lua", "r", "dart", "ex", "exs", "erl", "hs", "ml", "vue", "jl"),
        *("groovy", "gradle", "clj", "zig", "nim", "fs", "vb", "svelte", "sol", "asm", "s"),
    ),
    Format("an HTML page", "text/html", ("html", "htm", "xhtml"), parse_html, changes_text=True),
    Format("a JSON file", "application/json", ("json", "geojson", "ipynb"), parse_json),
    Format("a JSON lines file", "application/x-ndjson", ("jsonl", "ndjson"), parse_json),
    Format("a CSV table", "text/csv", ("csv",), parse_delimited),
    Format("a TSV table", "text/tab-separated-values", ("tsv",), parse_delimited),
    Format(
        "an XML file", "application/xml", ("xml", "xsd", "xsl", "xslt", "rss", "atom", "opml", "plist"), parse_plain
    ),
    Format("an SVG image", "image/svg+xml", ("svg",), parse_svg),
    Format("an e-mail", "message/rfc822", ("eml",), read_bytes=parse_mail),
    Format("a PDF document", "application/pdf", ("pdf",), read_bytes=parse_pdf, signatures=(b"%PDF-",)),
    Format(
        "a Word document",
        f"{_OFFICE}.wordprocessingml.document",
        ("docx", "docm", "dotx"),
        read_bytes=parse_docx,
        signatures=_ZIP,
        marker="word/",
    ),
    Format(
        "a PowerPoint presentation",
        f"{_OFFICE}.presentationml.presentation",
        ("pptx", "pptm", "ppsx"),
        read_bytes=parse_pptx,
        signatures=_ZIP,
        marker="ppt/",
    ),
    Format(
        "an Excel workbook",
        f"{_OFFICE}.spreadsheetml.sheet",
        ("xlsx", "xlsm"),
        read_bytes=parse_xlsx,
        signatures=_ZIP,
        marker="xl/",
    ),
    Format(
        "an EPUB book",
        "application/epub+zip",
        ("epub",),
        read_bytes=parse_epub,
        signatures=_ZIP,
        marker="META-INF/container.xml",
    ),
    _image("a PNG image", "png", ("png", "apng"), b"\x89PNG\r\n\x1a\n"),
    _image("a JPEG image", "jpeg", ("jpg", "jpeg", "jpe", "jfif"), b"\xff\xd8\xff"),
    _image("a GIF image", "gif", ("gif",), b"GIF87a", b"GIF89a"),
    _image("a WebP image", "webp", ("webp",), b"RIFF"),
    _image("a BMP image", "bmp", ("bmp",), b"BM"),
    _image("a TIFF image", "tiff", ("tif", "tiff"), b"II*\x00", b"MM\x00*"),
)

BY_EXTENSION: dict[str, Format] = {extension: each for each in FORMATS for extension in each.extensions}

UNREADABLE: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "a program for Linux"),
    (b"MZ", "a program for Windows"),
    (b"\xcf\xfa\xed\xfe", "a program for macOS"),
    (b"\xca\xfe\xba\xbe", "compiled Java or a program for macOS"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "an Office file of the old format, or one with a password"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a", "a RAR archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"OggS", "an Ogg recording"),
    (b"fLaC", "a FLAC recording"),
    (b"ID3", "an MP3 recording"),
    (b"\x1aE\xdf\xa3", "a Matroska video"),
)
"""Contents that are recognised and cannot be read, with what an error calls them."""


def read(each: Format, content: Any, extension: str) -> Extracted:
    """Read a decoded text or the bytes of a file."""
    if each.read_text is not None:
        return each.read_text(content, extension)
    assert each.read_bytes is not None  # noqa: S101 - every format has one of the two
    try:
        return each.read_bytes(content)
    except (UnreadableError, ModuleNotFoundError, MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - the libraries raise errors of any type for damaged files
        raise UnreadableError(f"is damaged: it cannot be read as {each.name}; save it again") from None
