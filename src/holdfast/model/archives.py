"""Sealed stretches of a session, and the context that is made of them."""

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

_ARCHIVE = re.compile("archive_([0-9]{3,9})")


class Run(msgspec.Struct, frozen=True):
    """Messages that speak for themselves: those of an archive that is not done, or the live ones."""

    number: int | None
    """The archive's, or None for the live ones."""
    state: ArchiveState | Literal["live"]
    first_seq: int
    last_seq: int
    tokens: int


class Committed(WireStruct, frozen=True, kw_only=True):
    """What a commit began: an archive, and a task that will finish it."""

    session_id: str
    status: Literal["accepted", "skipped"]
    task_id: str | None
    archive_uri: str | None
    archived: bool
    reason: SkipReason | None = None
    """Why there was nothing to do."""


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
    """Estimated tokens of its messages."""
    overview_tokens: int
    created_at: datetime
    ended_at: datetime | None
    """When it was done, failed or cancelled."""
    failure: dict[str, Any] | None
    token_usage: TokenUsage


class Archive(WireStruct, frozen=True, kw_only=True):
    """A finished archive, whole."""

    archive_id: str
    abstract: str
    overview: str
    messages: list[Message]


class Expanded(WireStruct, frozen=True, kw_only=True):
    """Messages that were brought back, and the archives they are in."""

    session_id: str
    ref: str
    archive_ids: list[str]
    first_seq: int
    last_seq: int
    messages: list[Message]
    estimated_tokens: int
    next_ref: str | None
    """What to ask for to get the rest, if not all of it fitted."""
    left_out: list["ReceiptLine"] = msgspec.field(default_factory=list)
    """A line for each large tool output that is shown as a preview."""


class ContextStats(WireStruct, frozen=True, rename="camel"):
    total_archives: int
    included_archives: int
    dropped_archives: int
    failed_archives: int
    active_tokens: int
    archive_tokens: int


class ReceiptLine(WireStruct, frozen=True, kw_only=True):
    """One piece of a context, or of what was left out of it."""

    what: Literal["system", "live", "archive", "overview", "rolling_overview", "rules", "tool_output"]
    archive_id: str | None = None
    first_seq: int
    last_seq: int
    tokens: int
    why: str
    reserved: int = 0
    """Tokens kept free for it, since an estimate may be too low."""
    tool_result_id: str | None = None
    """Of a tool output: what `read_tool_result` reads it by."""


class Receipt(WireStruct, frozen=True, kw_only=True):
    """What is in a context, what is not, and why."""

    token_budget: int
    spent: int
    counted_by: str
    included: list[ReceiptLine]
    left_out: list[ReceiptLine]
    reserved: int = 0
    """Tokens of the budget kept free, since estimates may be too low. None where tokens are counted exactly."""


class SessionContext(WireStruct, frozen=True, kw_only=True, rename={"estimated_tokens": "estimatedTokens"}):
    latest_archive_overview: str
    pre_archive_abstracts: list[str]
    messages: list[Message]
    estimated_tokens: int
    stats: ContextStats
    receipt: Receipt
    system_message: Message | None = None
    """The latest system message of the session, whole; it is not repeated in `messages`."""


def archive_id(number: int) -> str:
    """The name of an archive.

    >>> archive_id(7)
    'archive_007'
    """
    return f"archive_{number:03d}"


def archive_number(name: str) -> int | None:
    """The number that a name tells, or None if it is not the name of an archive.

    >>> archive_number("archive_007")
    7
    """
    found = _ARCHIVE.fullmatch(name)
    return int(found[1]) if found and archive_id(int(found[1])) == name else None


def archive_uri(user_id: str, session_id: str, number: int) -> str:
    return f"{session_uri(user_id, session_id)}/history/{archive_id(number)}"
