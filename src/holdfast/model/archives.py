"""Archives of a session, and the context built from them."""

import re
from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct
from holdfast.model.messages import Message
from holdfast.model.sessions import session_uri
from holdfast.model.summaries import TokenUsage

ArchiveState = Literal["pending", "done", "failed", "cancelled"]
SkipReason = Literal["no_messages", "all_within_keep_window"]

_ARCHIVE_ID = re.compile("archive_([0-9]{3,9})")


class MessageRange(msgspec.Struct, frozen=True):
    """The messages of an archive, or the live messages, with their token count."""

    number: int | None
    """The archive's number, or None for live messages."""
    state: ArchiveState | Literal["live", "damaged"]
    """`damaged`: no readable archive has these messages, although they were archived."""
    first_seq: int
    last_seq: int
    tokens: int


class Committed(WireStruct, frozen=True, kw_only=True):
    """Result of a commit request: the new archive and the background task that summarises it."""

    session_id: str
    status: Literal["accepted", "skipped"]
    task_id: str | None
    archive_uri: str | None
    archived: bool
    reason: SkipReason | None = None
    """Why the commit was skipped."""


class ResummaryStarted(WireStruct, frozen=True, kw_only=True):
    """Result of a request to regenerate the summaries of a session, and the background task that does it."""

    session_id: str
    status: Literal["accepted", "skipped"]
    """`skipped`: the session has no finished archive."""
    task_id: str | None
    archives: int
    """The number of finished archives."""


class ArchiveInfo(WireStruct, frozen=True, kw_only=True):
    archive_id: str
    uri: str
    state: ArchiveState
    task_id: str
    abstract: str
    first_seq: int
    last_seq: int
    message_count: int
    tokens: int
    """Estimated tokens of the archived messages."""
    overview_tokens: int
    created_at: datetime
    ended_at: datetime | None
    """Time at which the archive was done, failed or cancelled."""
    failure: dict[str, Any] | None
    token_usage: TokenUsage
    damaged: bool = False
    """The stored archive is damaged: its summary is not available, and `failure` says so."""


class Archive(WireStruct, frozen=True, kw_only=True):
    """A finished archive with all of its messages."""

    archive_id: str
    abstract: str
    overview: str
    messages: list[Message]


class Expanded(WireStruct, frozen=True, kw_only=True):
    """Messages that `expand` returned, and the archives that contain them."""

    session_id: str
    ref: str
    archive_ids: list[str]
    first_seq: int
    last_seq: int
    messages: list[Message]
    estimated_tokens: int
    next_ref: str | None
    """Reference to the remaining messages, or None if all of them fitted."""
    left_out: list["ReceiptLine"] = msgspec.field(default_factory=list)
    """A line for each large tool output of which only a preview is included."""


class ContextStats(WireStruct, frozen=True, rename="camel"):
    total_archives: int
    included_archives: int
    dropped_archives: int
    failed_archives: int
    active_tokens: int
    archive_tokens: int


class ReceiptLine(WireStruct, frozen=True, kw_only=True):
    """An item that a context includes or leaves out."""

    what: Literal["system", "live", "archive", "overview", "rolling_overview", "rules", "tool_output", "damaged"]
    archive_id: str | None = None
    first_seq: int
    last_seq: int
    tokens: int
    why: str
    reserved: int = 0
    """Tokens reserved because the estimate may be too low."""
    tool_result_id: str | None = None
    """The id of a tool output, for `read_tool_result`."""


class Receipt(WireStruct, frozen=True, kw_only=True):
    """Items that a context includes and leaves out, with the reasons."""

    token_budget: int
    spent: int
    counted_by: str
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]
    reserved: int = 0
    """Tokens of the budget reserved because estimates may be too low; 0 if tokens are counted exactly."""


class SessionContext(WireStruct, frozen=True, kw_only=True, rename={"estimated_tokens": "estimatedTokens"}):
    latest_archive_overview: str
    pre_archive_abstracts: list[str]
    messages: list[Message]
    estimated_tokens: int
    stats: ContextStats
    receipt: Receipt
    system_message: Message | None = None
    """The latest system message of the session in full. `messages` does not repeat it."""


def archive_id(number: int) -> str:
    """Return the id of an archive.

    >>> archive_id(7)
    'archive_007'
    """
    return f"archive_{number:03d}"


def archive_number(name: str) -> int | None:
    """Return the number in an archive id, or None if `name` is not an archive id.

    >>> archive_number("archive_007")
    7
    """
    match = _ARCHIVE_ID.fullmatch(name)
    return int(match[1]) if match and archive_id(int(match[1])) == name else None


def archive_uri(user_id: str, session_id: str, number: int) -> str:
    return f"{session_uri(user_id, session_id)}/history/{archive_id(number)}"
