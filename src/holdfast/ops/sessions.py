"""What can be asked of a session and its messages."""

from typing import Annotated, Any

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.model.base import Name
from holdfast.model.messages import (
    Appended,
    MessagePage,
    NewMessage,
    Timestamp,
    ToolResultMatches,
    ToolResultPage,
    ToolResultSlice,
)
from holdfast.model.sessions import (
    AutoCommitPolicy,
    EventPage,
    MemoryPolicy,
    SessionInfo,
    SessionPage,
    SessionRef,
    SessionState,
    SkillUse,
    Usage,
    UseRecorded,
)
from holdfast.model.system import SessionStats
from holdfast.ops.table import Operation, fields_of, operation
from holdfast.provider_formats import is_plain, not_a_dictionary, read_message

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Title = Annotated[str, msgspec.Meta(max_length=500)]
Uri = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Cursor = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{1,16}$(?!\n)", description="use the next_cursor of the page before")
]
EventId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(now|[0-9a-f]{1,16}-[0-9]{1,18}-[0-9]{1,18})$(?!\n)",
        description="use the id of an event, or now",
    ),
]


@operation("POST /sessions", audited=True)
class CreateSession(Operation[SessionInfo], frozen=True, kw_only=True):
    session_id: Name | None = None
    title: Title = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    created_at: Timestamp | None = None
    """When it began, if that was elsewhere and earlier."""
    memory_policy: MemoryPolicy | None = None
    auto_commit_policy: AutoCommitPolicy | None = None
    memory_extraction_config: dict[str, Any] | None = None


@operation("GET /sessions/{session_id}")
class GetSession(Operation[SessionInfo], frozen=True, kw_only=True):
    session_id: Name
    auto_create: bool = False


@operation("GET /sessions", bare="sessions")
class ListSessions(Operation[SessionPage], frozen=True, kw_only=True):
    """Newest first. `q` looks for a piece of the id or the title, in any case."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: Cursor | None = None
    q: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    state: SessionState | None = None


@operation("PATCH /sessions/{session_id}", audited=True)
class UpdateSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Changes what is given. Metadata is merged key by key; a key set to None is removed."""

    session_id: Name
    title: Title | None = None
    metadata: dict[str, Any] | None = None
    state: SessionState | None = None


@operation("PATCH /sessions/{session_id}/config", audited=True)
class ConfigureSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Changes what is given; what is given as null goes back to its default."""

    session_id: Name
    memory_policy: MemoryPolicy | msgspec.UnsetType | None = msgspec.UNSET
    auto_commit_policy: AutoCommitPolicy | msgspec.UnsetType | None = msgspec.UNSET
    memory_extraction_config: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


@operation("DELETE /sessions/{session_id}", audited=True)
class DeleteSession(Operation[SessionRef], frozen=True, kw_only=True):
    session_id: Name


@operation("POST /sessions/{session_id}/fork", audited=True)
class ForkSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """A new session that shares everything up to `at` (a seq or a message id; by default the last message)."""

    session_id: Name
    at: Seq | Name | None = None
    new_session_id: Name | None = None
    title: Title | None = None
    created_at: Timestamp | None = None
    """When it began, if that was elsewhere and earlier."""


@operation("POST /sessions/{session_id}/messages")
class AddMessage(NewMessage, Operation[Appended], frozen=True, kw_only=True):
    """Appends one message, which may be one of OpenAI or Anthropic; a missing session is created."""

    session_id: Name
    idempotency_key: Key | None = None
    expected_seq: Seq | None = None

    @classmethod
    def translated(cls, fields: dict[str, Any]) -> dict[str, Any]:
        if is_plain(fields, _OF_ADD_MESSAGE):
            return fields
        about = {name: value for name, value in fields.items() if name in _ABOUT_APPEND}
        message = {name: value for name, value in fields.items() if name not in _ABOUT_APPEND}
        return {**read_message("", message, {}), **about}


def with_provider_fields(op: AddMessage, fields: dict[str, Any]) -> AddMessage:
    """The same append with what else a provider's message has."""
    given = {name: value for name, value in fields_of(op).items() if value is not None}
    return AddMessage(**AddMessage.translated({**given, **fields}))


_OF_ADD_MESSAGE = frozenset(AddMessage.__struct_fields__)
_ABOUT_APPEND = _OF_ADD_MESSAGE - set(NewMessage.__struct_fields__)
MAX_BATCH = 100


@operation("POST /sessions/{session_id}/messages/batch")
class AddMessages(Operation[Appended], frozen=True, kw_only=True):
    """Appends 1 to 100 messages, which may be those of OpenAI or Anthropic; all or none.

    A missing session is created.
    """

    session_id: Name
    messages: Annotated[list[NewMessage], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]
    idempotency_key: Key | None = None
    expected_seq: Seq | None = None

    @classmethod
    def translated(cls, fields: dict[str, Any]) -> dict[str, Any]:
        messages = fields.get("messages")
        if not isinstance(messages, list) or len(messages) > MAX_BATCH:
            return fields
        names: dict[str, str] = {}
        read = [
            message if isinstance(message, dict) and is_plain(message) else _read(number, message, names)
            for number, message in enumerate(messages)
        ]
        return {**fields, "messages": read}


def _read(number: int, message: Any, names: dict[str, str]) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise InvalidArgumentError(f"messages[{number}]", not_a_dictionary(message))
    return read_message(f"messages[{number}].", message, names)


@operation("GET /sessions/{session_id}/messages")
class GetMessages(Operation[MessagePage], frozen=True, kw_only=True):
    """Messages `first` to `last` in order. `live` leaves archived ones out; `q` keeps those with all its words."""

    session_id: Name
    first: Seq = 1
    last: Seq | None = None
    live: bool = False
    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


@operation("POST /sessions/{session_id}/used")
class RecordUse(Operation[UseRecorded], frozen=True, kw_only=True):
    session_id: Name
    contexts: Annotated[list[Uri], msgspec.Meta(max_length=1000)] | None = None
    skill: SkillUse | None = None
    created_at: Timestamp | None = None


@operation("GET /sessions/{session_id}/used")
class ListUsage(Operation[list[Usage]], frozen=True, kw_only=True):
    """In the order in which they were recorded, behind the one with the id `after`."""

    session_id: Name
    after: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


@operation("GET /sessions/{session_id}/tool-results")
class ListToolResults(Operation[ToolResultPage], frozen=True, kw_only=True):
    session_id: Name
    tool_name: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


@operation("GET /sessions/{session_id}/tool-results/{tool_result_id}")
class ReadToolResult(Operation[ToolResultSlice], frozen=True, kw_only=True):
    session_id: Name
    tool_result_id: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 2)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 20_000


@operation("GET /sessions/{session_id}/tool-results/{tool_result_id}/search")
class SearchToolResult(Operation[ToolResultMatches], frozen=True, kw_only=True):
    session_id: Name
    tool_result_id: Name
    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20
    context_chars: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 300


@operation("GET /sessions/{session_id}/events", stream=True)
class ReadEvents(Operation[EventPage], frozen=True, kw_only=True):
    """What happened to a session behind the event `after`: every message and every change, in order.

    Without `after`, from the beginning; after `now`, what is yet to come. Asked for as `text/event-stream`, it goes
    on as things happen, and `Last-Event-ID` stands for `after`.
    """

    session_id: Name
    after: EventId | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100


@operation("GET /stats/sessions/{session_id}")
class GetSessionStats(Operation[SessionStats], frozen=True, kw_only=True):
    session_id: Name
