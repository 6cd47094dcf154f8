"""E-mail: headers, the body, and the names of attachments."""

from typing import Any

from holdfast import lazy
from holdfast.documents.decoding import storable
from holdfast.documents.parsed import MAX_TEXT_CHARS, Extracted, Section, UnreadableError
from holdfast.documents.text_formats.html import parse_html
from holdfast.text.sentences import to_single_line

MAX_HEADER_CHARS = 1_000
"""How much of a header is decoded: Python takes more than linear time for it."""
MAX_BOUNDARIES = 200
"""How many nested or neighbouring parts an e-mail may have."""
MAX_PARTS = 1_000
_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def parse_mail(data: bytes) -> Extracted:
    """Return the headers, the text and the names of the attachments of an e-mail."""
    head = data[:65_536]
    if b"\0" in head or b":" not in head:
        raise UnreadableError("is not an e-mail, although its extension is .eml; leave it out")
    if data.lower().count(b"boundary") > MAX_BOUNDARIES:
        raise UnreadableError(f"is an e-mail with more than {MAX_BOUNDARIES} groups of parts; leave it out")
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
        return data.decode(encoding, "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")
