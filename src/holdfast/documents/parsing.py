"""Reads a file as a document: finds its format by its name and its content, and splits it into parts."""

from typing import Any

from holdfast.documents import formats
from holdfast.documents.decoding import decode, storable
from holdfast.documents.formats import BY_EXTENSION, FORMATS, PLAIN, UNREADABLE, Format
from holdfast.documents.packages import entry_names
from holdfast.documents.parsed import MAX_FILE_BYTES, Extracted, ParsedDocument, UnreadableError
from holdfast.documents.sections import build_parts
from holdfast.errors import DocumentError
from holdfast.text.sentences import to_single_line
from holdfast.text.shortening import shorten

MAX_METADATA_CHARS = 2_000
"""The longest text of one value of the metadata."""
_MAX_METADATA_ITEMS = 100
_SAMPLE_BYTES = 4_096
_PDF_SEARCH_BYTES = 1_024


def parse(name: str, data: bytes) -> ParsedDocument:
    r"""Read a file. `name` is its name or path, `data` its content. Raises `DocumentError` with the name.

    >>> document = parse("notes/pods.md", b"# Pods\n\nRestart them at night.")
    >>> document.title, document.parts[0].abstract
    ('Pods', 'Restart them at night.')
    """
    try:
        return _parse(name, data)
    except UnreadableError as error:
        raise DocumentError(name, str(error)) from None
    except ModuleNotFoundError as error:
        raise DocumentError(name, f"needs the library {error.name}; install holdfast[documents]") from None
    except RecursionError:
        raise DocumentError(name, "is nested too deeply; leave it out") from None


def _parse(name: str, data: bytes) -> ParsedDocument:
    if len(data) > MAX_FILE_BYTES:
        raise UnreadableError(f"has {len(data)} bytes, more than {MAX_FILE_BYTES}; split it into smaller files")
    file_name = name.rpartition("/")[2]
    stem, dot, extension = file_name.rpartition(".")
    extension = extension.lower() if dot and stem else ""
    format_ = _find_format(data, extension)
    notes: list[str] = []
    is_content = False
    content: Any = data
    if format_.read_text is not None:
        content, notes, is_content = decode(data)
        is_content = is_content and not format_.changes_text
    extracted = formats.read(format_, content, extension)
    title = shorten(storable(to_single_line(extracted.title[:1_000])), 160)
    return ParsedDocument(
        format_.media_type,
        title or (stem if stem and format_.read_bytes else file_name),
        extracted.text,
        build_parts(extracted.text, extracted.sections, merges=extracted.merges),
        _bounded_metadata(extracted),
        [*notes, *extracted.notes],
        is_content,
    )


def _find_format(data: bytes, extension: str) -> Format:
    """Return the format of a file. Its content decides; a name that says something else is an error."""
    named = BY_EXTENSION.get(extension)
    found = _format_of_content(data, named)
    if isinstance(found, Format):
        is_image = found.media_type.startswith("image/") and named is not None and named.media_type.startswith("image/")
        if named is None or found is named or (is_image and named.signatures):
            return found
        raise UnreadableError(
            f"has the extension .{extension}, but its content is {found.name}; rename it to .{found.extensions[0]}"
        )
    if found:
        claimed = f"has the extension .{extension}, but its content" if named is not None else ""
        raise UnreadableError(f"{claimed} is {found}, which cannot be read; leave it out".strip())
    if named is not None and named.signatures:
        problem = "is empty" if not data else f"is not {named.name}, although its extension is .{extension}"
        raise UnreadableError(f"{problem}; it may be damaged: add it again, or leave it out")
    return named or PLAIN


def _format_of_content(data: bytes, named: Format | None) -> Format | str:
    """Return the format that the signature of a file belongs to, or what it is if it cannot be read, or nothing."""
    is_binary = b"\0" in data[:_SAMPLE_BYTES]
    for each in FORMATS:
        for signature in each.signatures:
            # A text may begin with the letters of a signature.
            if not data.startswith(signature) or (signature.isalnum() and not is_binary and each is not named):
                continue
            if signature == b"RIFF" and data[8:12] != b"WEBP":
                return "a recording or video"
            return _kind_of_zip(data, named) if each.marker else each
    for signature, kind in UNREADABLE:
        if data.startswith(signature) and (is_binary or not signature.isalnum()):
            return kind
    if data[4:8] == b"ftyp":
        return "a video"
    if named is not None and named.media_type == "application/pdf" and b"%PDF-" in data[:_PDF_SEARCH_BYTES]:
        return named
    return ""


def _kind_of_zip(data: bytes, named: Format | None) -> Format | str:
    names = entry_names(data)
    for each in FORMATS:
        if each.marker and any(entry.startswith(each.marker) for entry in names):
            return each
    if named is not None and named.marker:
        raise UnreadableError(f"is a zip archive without the contents of {named.name}; it may be damaged")
    return "a zip archive"


def _bounded_metadata(extracted: Extracted) -> dict[str, Any]:
    """Return the metadata with limited texts and lists, so that they can be stored."""
    items = list(extracted.metadata.items())[:_MAX_METADATA_ITEMS]
    return {storable(str(key))[:100]: _bounded(value) for key, value in items if value not in (None, "", [], {})}


def _bounded(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_bounded(each) for each in value[:_MAX_METADATA_ITEMS]]
    return storable(str(value)[:MAX_METADATA_CHARS])
