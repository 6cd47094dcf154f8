"""E-mail: headers, the body, and the names of attachments."""

import codecs
from typing import Any

from holdfast import lazy
from holdfast.documents.decoding import storable
from holdfast.documents.parsed import MAX_TEXT_CHARS, Extracted, Section, UnreadableError
from holdfast.documents.text_formats.html import parse_html
from holdfast.text.sentences import to_single_line

MAX_HEADER_CHARS = 1_000
"""How much of a header is decoded: Python takes more than linear time for it."""
MAX_BOUNDARIES = 200
"""How many groups of parts an e-mail may have. They may be nested."""
MAX_BOUNDARY_LINES = 50_000_000
"""The product of groups and lines: Python compares each line with the boundary of each group around it."""
MAX_LINES = 3_000_000
MAX_SEPARATORS = 50_000
"""How many lines may begin like the separator of two parts."""
MAX_PARTS = 1_000
MAX_CONTENT_HEADER_BYTES = 8_000
"""The longest header about a part: Python takes quadratic time for its parameters."""
_USUAL_ENCODINGS = ("ascii", "big5", "cp", "euc", "gb", "iso", "koi8", "mac", "shift", "tis", "utf")
"""The beginnings of the names of encodings of texts. Others are not linear, such as punycode."""
_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def parse_mail(data: bytes) -> Extracted:
    """Return the headers, the text and the names of the attachments of an e-mail."""
    _check(data)
    _check_content_headers(data)
    message: Any = lazy.email_parser.BytesParser().parsebytes(data)
    headers = {name: _decode(str(message[name])) for name in _HEADERS if message[name]}
    if not headers:
        raise UnreadableError("is not an e-mail: it has no sender, recipient, subject or date; leave it out")
    texts: list[str] = []
    attachments: list[str] = []
    pages: list[str] = []
    for number, part in enumerate(message.walk()):
        if number >= MAX_PARTS:
            break
        if part.is_multipart():
            continue
        file_name = part.get_filename()
        kind = part.get_content_type()
        if file_name or part.get_content_disposition() == "attachment":
            attachments.append(_decode(str(file_name or kind)))
        elif kind == "text/plain":
            texts.append(_body(part))
        elif kind == "text/html":
            pages.append(_body(part))
    bodies = texts if any(text.strip() for text in texts) else [parse_html(page, "html").text for page in pages]
    return _extracted(headers, bodies, attachments)


def _check(data: bytes) -> None:
    """Refuse what is not an e-mail, and what takes long to parse."""
    head = data[:65_536]
    if b"\0" in head or b":" not in head:
        raise UnreadableError("is not an e-mail, although its extension is .eml; leave it out")
    groups = data.lower().count(b"boundary")
    lines = data.count(b"\n") + data.count(b"\r")
    if lines > MAX_LINES:
        raise UnreadableError(f"is an e-mail with {lines} lines, more than {MAX_LINES}; leave it out")
    if groups > MAX_BOUNDARIES or groups * lines > MAX_BOUNDARY_LINES:
        raise UnreadableError(f"is an e-mail with {groups} groups of parts in {lines} lines; leave it out")
    separators = data.count(b"\n--") + data.count(b"\r--")
    if separators > MAX_SEPARATORS:
        raise UnreadableError(f"is an e-mail with {separators} separators, more than {MAX_SEPARATORS}; leave it out")


def _check_content_headers(data: bytes) -> None:
    size = 0
    for line in data.replace(b"\r", b"\n").split(b"\n"):
        if line[:8].lower() == b"content-":
            size = len(line)
        else:
            size = size + len(line) if size and line[:1] in {b" ", b"\t", b""} else 0
        if size > MAX_CONTENT_HEADER_BYTES:
            raise UnreadableError(
                f"is an e-mail with a header of more than {MAX_CONTENT_HEADER_BYTES} bytes; leave it out"
            )


def _extracted(headers: dict[str, str], bodies: list[str], attachments: list[str]) -> Extracted:
    head = "".join(f"{name}: {value}\n" for name, value in headers.items()) + "\n"
    body = storable("\n\n".join(bodies))[:MAX_TEXT_CHARS].strip() + "\n"
    tail = "\nAttachments:\n" + "".join(f"- {name}\n" for name in attachments) if attachments else ""
    text = head + body + tail
    subject = headers.get("Subject", "")
    sections = [
        Section((subject or "E-mail",), 0, len(head) + len(body), None, len(head)),
        Section(("Attachments",), len(head) + len(body), len(text), None, -1, ", ".join(attachments[:50])),
    ]
    metadata = {**{name.lower(): value for name, value in headers.items()}, "attachments": attachments[:100]}
    return Extracted(text, sections, subject, metadata)


def _decode(value: str) -> str:
    """Decode a header: `=?utf-8?q?...?=`."""
    short = value[:MAX_HEADER_CHARS]
    try:
        pieces = [
            piece.decode(encoding or "utf-8", "replace") if isinstance(piece, bytes) else piece
            for piece, encoding in lazy.email_header.decode_header(short)
        ]
    except (ValueError, LookupError):
        return storable(to_single_line(short))
    return storable(to_single_line("".join(pieces)))


def _body(part: Any) -> str:
    data: Any = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    encoding = str(part.get_content_charset() or "utf-8")
    try:
        is_usual = codecs.lookup(encoding).name.startswith(_USUAL_ENCODINGS)
    except (LookupError, ValueError):
        is_usual = False
    return data.decode(encoding if is_usual else "utf-8", "replace")
