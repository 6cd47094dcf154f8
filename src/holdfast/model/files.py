"""The `viking://` tree: what a listing shows, what the files of a session are called, and what is in them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import Name, WireStruct
from holdfast.model.messages import Message
from holdfast.model.parts import ToolPart
from holdfast.model.sessions import AutoCommitPolicy, Fork, MemoryPolicy, SessionInfo, SessionState, Usage
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

END_OF_LIST = b"\n]}\n"

FOLDER_MODE = 0o555
FILE_MODE = 0o444

_encode = msgspec.json.Encoder().encode


class FileEntry(
    WireStruct, frozen=True, kw_only=True, omit_defaults=True, rename={"is_dir": "isDir", "mod_time": "modTime"}
):
    """A file or a folder."""

    name: str
    uri: str
    rel_path: str
    """Its place below the folder that was listed."""
    size: int
    """In bytes; 0 for a folder, and for what is put together only when it is read."""
    mode: int
    """As on Unix. Nothing can be written: it is a view."""
    is_dir: bool
    mod_time: datetime
    abstract: str | None = None
    """One line about a folder, if that was asked for."""


class FilePage(WireStruct, frozen=True):
    entries: list[FileEntry | str]
    has_more: bool


class FileList(list[Any]):
    """Entries, or URIs if that is all that was asked for, as the plain list that callers loop over."""

    def __init__(self, entries: list[FileEntry | str], *, has_more: bool) -> None:
        super().__init__(entries)
        self.has_more = has_more


@prebuild_decoder
class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session, but for what a server sets itself."""

    session_id: Name
    uri: str
    title: str
    metadata: dict[str, Any]
    state: SessionState
    created_at: datetime
    message_count: int
    """All of them, so that a file that was cut short is noticed."""
    forked_from: Fork | None = None
    memory_policy: MemoryPolicy | None = None
    auto_commit_policy: AutoCommitPolicy | None = None
    memory_extraction_config: dict[str, Any] | None = None


class Use(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded use of a context or a skill."""

    kind: Literal["context", "skill"]
    uri: str
    created_at: datetime
    input: Any = None
    output: Any = None
    success: bool = True


@prebuild_decoder
class Relations(msgspec.Struct, frozen=True):
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
    """What a commit changed in the memories."""

    archive_uri: str
    extracted_at: datetime
    operations: MemoryOperations = MemoryOperations()
    summary: MemoryCounts = MemoryCounts()


def meta_of(info: SessionInfo) -> Meta:
    return Meta(
        session_id=info.session_id,
        uri=info.uri,
        title=info.title,
        metadata=info.metadata,
        state=info.state,
        created_at=info.created_at,
        message_count=info.total_message_count,
        forked_from=info.forked_from,
        memory_policy=info.memory_policy,
        auto_commit_policy=info.auto_commit_policy,
        memory_extraction_config=info.memory_extraction_config,
    )


def use_of(usage: Usage) -> Use:
    return Use(
        kind=usage.kind,
        uri=usage.uri,
        created_at=usage.created_at,
        input=usage.input,
        output=usage.output,
        success=usage.success,
    )


def relations(uses: Iterable[Usage]) -> Iterator[bytes]:
    """The recorded uses as JSON, one on each line."""
    return listed(b'{"uses":[', (use_of(usage) for usage in uses))


def opening_of_calls(tool_id: str) -> bytes:
    return b'{"tool_id":' + _encode(tool_id) + b',"calls":['


def calls_in(message: Message) -> Iterator[tuple[ToolPart, dict[str, Any]]]:
    """The tool calls of a message: the part, and what is written of it."""
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolPart):
            told = {name: value for name, value in part.to_dict().items() if name not in {"type", "tool_id"}}
            where = {"message_id": message.id, "seq": message.seq, "part": number, "created_at": message.created_at}
            yield part, {**where, **told}


def listed(opening: bytes, rows: Iterable[Any]) -> Iterator[bytes]:
    """A JSON object that ends in a list, with a row on each line."""
    yield opening
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"\n") + _encode(row)
    yield END_OF_LIST


def pretty(noun: Any) -> bytes:
    """For people to read, and the same bytes for the same noun: the order of keys has no meaning."""
    return msgspec.json.format(msgspec.json.encode(noun, order="deterministic"), indent=2) + b"\n"
