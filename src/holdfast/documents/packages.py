"""Documents that are zip files: Office files and EPUB books. Their entries are checked before a library reads them."""

import io
import zipfile

from holdfast.documents.parsed import UnreadableError
from holdfast.documents.zips import entry_problem, open_zip, read_entry

MAX_PACKAGE_BYTES = 256 << 20
"""The size of all entries, uncompressed."""
MAX_ENTRY_BYTES = 128 << 20
MAX_TREE_BYTES = 40 << 20
"""The size of XML that is held as a tree, which takes about ten times as much memory."""
_ENTITY_MARKS = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_XML_EXTENSIONS = (".xml", ".rels", ".opf", ".ncx", ".vml")
_PAGE_EXTENSIONS = (".html", ".xhtml", ".htm")


def entry_names(data: bytes) -> list[str]:
    """Return the names of the entries of a zip file."""
    return open_zip(io.BytesIO(data)).namelist()


def open_package(data: bytes, max_xml_bytes: int = MAX_ENTRY_BYTES) -> zipfile.ZipFile:
    """Open a zip file after checking all its entries: sizes, checksums, and XML that declares entities.

    Images, fonts and videos are not read. An entry with XML may have at most `max_xml_bytes`.
    """
    archive = open_zip(io.BytesIO(data))
    total = 0
    for info in archive.infolist():
        is_xml = info.filename.lower().endswith(_XML_EXTENSIONS)
        problem = entry_problem(info, max_xml_bytes if is_xml else MAX_ENTRY_BYTES)
        if problem:
            raise UnreadableError(f"cannot be read: its entry {info.filename!r:.100} {problem}")
        total += info.file_size
        if total > MAX_PACKAGE_BYTES:
            raise UnreadableError(f"has more than {MAX_PACKAGE_BYTES} bytes when it is uncompressed")
    for info in archive.infolist():
        if info.filename.lower().endswith((*_XML_EXTENSIONS, *_PAGE_EXTENSIONS)):
            _check_content(archive, info)
    return archive


def _check_content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    is_xml = info.filename.lower().endswith(_XML_EXTENSIONS)
    before = b""
    has_entities = False
    try:
        for chunk in read_entry(archive, info):
            has_entities |= is_xml and any(mark in before + chunk for mark in _ENTITY_MARKS)
            before = chunk[-16:]
    except UnreadableError:
        raise UnreadableError(f"is damaged in its entry {info.filename!r:.100}; save it again") from None
    if has_entities:
        raise UnreadableError(
            f"has XML entities in its entry {info.filename!r:.100}, which can expand without limit;"
            " save it again with another program"
        )
