"""The `viking://` tree as files: what they are called, and what is in those that are not messages."""

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from holdfast.checking import introduce
from holdfast.errors import InvalidArgumentError
from holdfast.exchange.filenames import file_name
from holdfast.model import AutoCommitPolicy, Fork, MemoryPolicy, SessionConfig, SessionInfo, SessionState
from holdfast.noun import Name

MANIFEST = ".export.json"
VERSION = 1

# Of a session. Commits will add .abstract.md, .overview.md and history/archive_NNN/ here; readers pass by what they
# do not know, so an export of a later version can be read by this one.
MESSAGES = "messages.jsonl"
META = ".meta.json"
RELATIONS = ".relations.json"
TOOLS = "tools"
TOOL = "tool.json"


@introduce
class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Whose export a folder is, and of which sessions."""

    holdfast_export: int = VERSION
    account_id: str
    user_id: str
    sessions: list[Name]
    """In the order in which they were created."""


@introduce
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


@introduce
class Relations(msgspec.Struct, frozen=True):
    uses: list[Use]
    """In the order in which they were recorded."""


def sessions_folder(folder: Path, user_id: str) -> Path:
    return folder / "user" / file_name(user_id) / "sessions"


def tool_folder(session: Path, tool_id: str) -> Path:
    return session / TOOLS / file_name(tool_id)


def output_file(tool_result_id: str) -> str:
    return f"{tool_result_id}.txt"


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


def config_of(told: Meta | SessionInfo) -> SessionConfig:
    return SessionConfig(told.memory_policy, told.auto_commit_policy, told.memory_extraction_config)


def pretty(noun: msgspec.Struct) -> bytes:
    """For people to read, and the same bytes for the same noun: the order of keys has no meaning."""
    return msgspec.json.format(msgspec.json.encode(noun, order="deterministic"), indent=2) + b"\n"


def read_manifest(file: Path) -> Manifest:
    problem = "is not the manifest of an export: {}"
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    except OSError as error:
        raise InvalidArgumentError(str(file), problem.format(error.strerror)) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(str(file), problem.format(error)) from None
    if manifest.holdfast_export > VERSION:
        raise InvalidArgumentError(
            str(file), f"is of version {manifest.holdfast_export}, this Holdfast reads up to {VERSION}; upgrade it"
        )
    return manifest
