"""Files as documents: text, parts and summaries of Markdown, code, HTML, PDF, Office files, e-mail, images. Pure."""

from holdfast.documents.archives import Archive, ArchiveEntry, ArchiveProblem, list_archive
from holdfast.documents.parsed import MAX_FILE_BYTES, ParsedDocument
from holdfast.documents.parsing import parse
from holdfast.documents.summaries import ChildSummary, FileSummary, summarise_file, summarise_folder
from holdfast.documents.text_formats.front_matter import FrontMatter, read_front_matter
from holdfast.model.tree.files import FilePart

__all__ = [
    "MAX_FILE_BYTES",
    "Archive",
    "ArchiveEntry",
    "ArchiveProblem",
    "ChildSummary",
    "FilePart",
    "FileSummary",
    "FrontMatter",
    "ParsedDocument",
    "list_archive",
    "parse",
    "read_front_matter",
    "summarise_file",
    "summarise_folder",
]
