"""The `viking://` tree: entries of a listing, file names, and the content of JSON files."""

import hashlib
from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import Name, WireStruct
from holdfast.model.sessions import AutoCommitPolicy, Fork, MemoryPolicy, SessionState
from holdfast.validation import prebuild_decoder

MESSAGES = "messages.jsonl"
META = ".meta.json"
ABSTRACT = ".abstract.md"
OVERVIEW = ".overview.md"
RELATIONS = ".relations.json"
TOOLS = "tools"
TOOL = "tool.json"
HISTORY = "history"
MEMORY_DIFF = "memory_diff.json"
DONE = ".done"
FAILED = ".failed.json"

VIEWS = frozenset({ABSTRACT, OVERVIEW, RELATIONS, META})
"""Hidden files that every folder may have. They show stored data and cannot be written."""
SortKey = Literal["name", "mtime"]

FOLDER_MODE = 0o555
FILE_MODE = 0o444
WRITABLE_FOLDER_MODE = 0o755
WRITABLE_FILE_MODE = 0o644

MAX_TOOL_FOLDER_BYTES = 512


def tool_folder_name(tool_id: str) -> str:
    """Return the name of a tool's folder: its id, or a hash if the id is empty, very long, or looks like a hash.

    >>> tool_folder_name("call_1"), tool_folder_name("")
    ('call_1', '~e3b0c44298fc1c149afbf4c8996fb924')
    """
    encoded = tool_id.encode()
    if 0 < len(encoded) <= MAX_TOOL_FOLDER_BYTES and not tool_id.startswith("~"):
        return tool_id
    return f"~{hashlib.sha256(encoded).hexdigest()[:32]}"


def output_file_name(tool_result_id: str) -> str:
    """Return the name of the file with a whole tool output, in the folder of its tool."""
    return f"{tool_result_id}.txt"


def position_after(text: str, line: int, char: int) -> tuple[int, int]:
    r"""Return the line and the character in it where the rest of a file begins, after a text that was read.

    `line` and `char` are where the text began.

    >>> position_after("one\ntw", 4, 7), position_after("o", 4, 7)
    ((5, 2), (4, 8))
    """
    newlines = text.count("\n")
    return line + newlines, len(text) - text.rindex("\n") - 1 if newlines else char + len(text)


class FileEntry(
    WireStruct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"is_dir": "isDir", "mod_time": "modTime", "content_type": "contentType"},
):
    """A file or a folder."""

    name: str
    uri: str
    rel_path: str
    """Path relative to the listed folder."""
    size: int
    """In bytes; 0 for folders and for files generated on reading."""
    mode: int
    """Unix permissions. The entries of sessions are read-only."""
    is_dir: bool
    mod_time: datetime
    abstract: str | None = None
    """One-line summary, if requested."""
    overview: str | None = None
    """Longer summary, if requested."""
    version: int = 0
    """The number of the current version; 0 for folders and views."""
    content_type: str = ""
    """The media type of a stored file."""
    count: int | None = None
    """The number of entries of a folder, if requested."""
    tags: list[str] = msgspec.field(default_factory=list)


class FilePart(msgspec.Struct, frozen=True):
    """A unit of a file that a search can find: a section, a page, a function or some rows."""

    title: str
    """The path of headings, such as `Install > Linux`, or the name of a function, a sheet or a slide."""
    page: int | None
    """The number of the page or slide, from 1."""
    start: int
    """Where the part begins in the text, in characters."""
    end: int
    abstract: str
    """One line about the part (L0)."""


class FilePage(WireStruct, frozen=True):
    entries: list[FileEntry | str]
    has_more: bool


class FileList(list[Any]):
    """A list of entries, or of URIs if the listing was `simple`, with `has_more`."""

    def __init__(self, entries: list[FileEntry | str], *, has_more: bool) -> None:
        super().__init__(entries)
        self.has_more = has_more


@prebuild_decoder
class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `.meta.json`: the fields of a session that an import restores."""

    session_id: Name
    uri: str
    title: str
    metadata: dict[str, Any]
    state: SessionState
    created_at: datetime
    message_count: int
    """All messages of the session. An import uses it to detect a truncated file."""
    forked_from: Fork | None = None
    memory_policy: MemoryPolicy | None = None
    auto_commit_policy: AutoCommitPolicy | None = None
    memory_extraction_config: dict[str, Any] | None = None


class Use(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of `.relations.json`: a recorded use of a context or a skill."""

    kind: Literal["context", "skill"]
    uri: str
    created_at: datetime
    input: Any = None
    output: Any = None
    success: bool = True


@prebuild_decoder
class Relations(msgspec.Struct, frozen=True):
    """Content of `.relations.json`."""

    uses: list[Use]
    """In the order in which they were recorded."""


class MemoryOperations(msgspec.Struct, frozen=True, kw_only=True):
    adds: list[dict[str, Any]] = []
    updates: list[dict[str, Any]] = []
    deletes: list[dict[str, Any]] = []


class MemoryCounts(msgspec.Struct, frozen=True, kw_only=True):
    total_adds: int = 0
    total_updates: int = 0
    total_deletes: int = 0


class MemoryDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `memory_diff.json`: changes that a commit made to the memories."""

    archive_uri: str
    extracted_at: datetime
    operations: MemoryOperations = MemoryOperations()
    summary: MemoryCounts = MemoryCounts()
