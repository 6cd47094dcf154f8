"""Operations on sessions and their messages."""

from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidArgumentError
from holdfast.model.access import Owner
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
from holdfast.model.parts import ToolPart
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
from holdfast.provider_formats import is_native_message, not_a_dict_problem, translate_message

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
IdempotencyKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
AsksForTelemetry = bool | dict[str, Any] | None
"""Whether the duration of the call is returned, too. An object has options of other servers, and means true."""
Title = Annotated[str, msgspec.Meta(max_length=500)]
Uri = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Cursor = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{1,16}$(?!\n)", description="use the next_cursor of the previous page")
]
EventId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(now|[0-9a-f]{1,16}-[0-9]{1,18}-[0-9]{1,18})$(?!\n)",
        description="use the id of an event, or now",
    ),
]


@operation("POST /sessions", audit="{result.session_id}")
class CreateSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Create a session. Without an id, one is generated."""

    session_id: Name | None = None
    title: Title = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    created_at: Timestamp | None = None
    """The original creation time, for an imported session."""
    memory_policy: MemoryPolicy | None = None
    auto_commit_policy: AutoCommitPolicy | None = None
    memory_extraction_config: dict[str, Any] | None = None


@operation("GET /sessions/{session_id}", right="read")
class GetSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Return a session. With `auto_create`, a missing session is created."""

    session_id: Name
    owner: Owner | None = None
    auto_create: bool = False


@operation("GET /sessions", role="guest", result_field="sessions", answer="streamed")
class ListSessions(Operation[SessionPage], frozen=True, kw_only=True):
    """List the caller's sessions and those shared with the caller, newest first: all of them, or the first `limit`.

    `q` selects those whose id or title contains it, ignoring case. `shared` selects only shared or only own sessions.
    """

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    cursor: Cursor | None = None
    q: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    state: SessionState | None = None
    shared: bool | None = None


@operation("PATCH /sessions/{session_id}", right="write", audit="{session_id}")
class UpdateSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Change the given fields. Metadata is merged key by key; a key set to null is removed."""

    session_id: Name
    owner: Owner | None = None
    title: Title | None = None
    metadata: dict[str, Any] | None = None
    state: SessionState | None = None

    @property
    def returns_content(self) -> bool:
        return True

    @property
    def needs_ownership(self) -> bool:
        return self.state is not None


@operation("PATCH /sessions/{session_id}/config", right="own", audit="{session_id}")
class ConfigureSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Change the given settings. A setting given as null is reset to its default."""

    session_id: Name
    owner: Owner | None = None
    memory_policy: MemoryPolicy | msgspec.UnsetType | None = msgspec.UNSET
    auto_commit_policy: AutoCommitPolicy | msgspec.UnsetType | None = msgspec.UNSET
    memory_extraction_config: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


@operation("DELETE /sessions/{session_id}", right="own", audit="{session_id}")
class DeleteSession(Operation[SessionRef], frozen=True, kw_only=True):
    """Delete a session with its messages and archives. Forks of it keep theirs."""

    session_id: Name
    owner: Owner | None = None


@operation(
    "POST /sessions/{session_id}/fork",
    role="user",  # a guest cannot own the fork
    right="read",
    audit="{result.session_id} forked_from={session_id}",
)
class ForkSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Create a session that shares all messages up to `at`: a seq, a message id, or by default the last message."""

    session_id: Name
    owner: Owner | None = None
    at: Seq | Name | None = None
    new_session_id: Name | None = None
    title: Title | None = None
    created_at: Timestamp | None = None
    """The original creation time, for an imported session."""


@operation("POST /sessions/{session_id}/messages", right="write")
class AddMessage(NewMessage, Operation[Appended], frozen=True, kw_only=True):
    """Append a message, also in the format of OpenAI or Anthropic. A missing session is created."""

    session_id: Name
    owner: Owner | None = None
    idempotency_key: IdempotencyKey | None = None
    expected_seq: Seq | None = None
    telemetry: AsksForTelemetry = False

    @property
    def invokes_tools(self) -> bool:
        return _has_tools(self)

    @classmethod
    def translate(cls, fields: dict[str, Any]) -> dict[str, Any]:
        if is_native_message(fields, _ADD_MESSAGE_FIELDS):
            return fields
        append_fields = {name: value for name, value in fields.items() if name in _APPEND_FIELDS}
        message = {name: value for name, value in fields.items() if name not in _APPEND_FIELDS}
        return {**translate_message("", message, {}), **append_fields}


def _has_tools(message: NewMessage) -> bool:
    """Whether a message has a tool call or a tool result."""
    return message.role == "tool" or any(_is_tool_part(part) for part in message.parts or ())


def _is_tool_part(part: Any) -> bool:
    return isinstance(part, ToolPart) or (isinstance(part, dict) and part.get("type") == "tool")


def with_provider_fields(op: AddMessage, fields: dict[str, Any]) -> AddMessage:
    """Return the append with the additional fields of a provider's message."""
    given = {name: value for name, value in fields_of(op).items() if value is not None}
    return AddMessage(**AddMessage.translate({**given, **fields}))


_ADD_MESSAGE_FIELDS = frozenset(AddMessage.__struct_fields__)
_APPEND_FIELDS = _ADD_MESSAGE_FIELDS - set(NewMessage.__struct_fields__)
MAX_BATCH = 100


@operation("POST /sessions/{session_id}/messages/batch", right="write")
class AddMessages(Operation[Appended], frozen=True, kw_only=True):
    """Append 1 to 100 messages, all or none, also in the formats of OpenAI and Anthropic.

    A missing session is created.
    """

    session_id: Name
    owner: Owner | None = None
    messages: Annotated[list[NewMessage], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]
    idempotency_key: IdempotencyKey | None = None
    expected_seq: Seq | None = None
    telemetry: AsksForTelemetry = False

    @property
    def invokes_tools(self) -> bool:
        return any(map(_has_tools, self.messages))

    @classmethod
    def translate(cls, fields: dict[str, Any]) -> dict[str, Any]:
        messages = fields.get("messages")
        if not isinstance(messages, list) or len(messages) > MAX_BATCH:
            return fields
        tool_names: dict[str, str] = {}
        translated = [
            message
            if isinstance(message, dict) and is_native_message(message)
            else _translate(number, message, tool_names)
            for number, message in enumerate(messages)
        ]
        return {**fields, "messages": translated}


def _translate(number: int, message: Any, tool_names: dict[str, str]) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise InvalidArgumentError(f"messages[{number}]", not_a_dict_problem(message))
    return translate_message(f"messages[{number}].", message, tool_names)


@operation("GET /sessions/{session_id}/messages", right="read", answer="paged")
class GetMessages(Operation[MessagePage], frozen=True, kw_only=True):
    """Return messages `first` to `last` in order: with `live` only live messages, with `q` those with all its words."""

    session_id: Name
    owner: Owner | None = None
    first: Seq = 1
    last: Seq | None = None
    live: bool = False
    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000

    def following(self, page: MessagePage) -> "GetMessages | None":
        left = self.limit - len(page.messages)
        return None if page.next_seq is None or left <= 0 else replace(self, first=page.next_seq, limit=left)

    def join(self, page: MessagePage, next_page: MessagePage) -> MessagePage:
        return replace(next_page, messages=page.messages + next_page.messages)


@operation("POST /sessions/{session_id}/used", right="write")
class RecordUse(Operation[UseRecorded], frozen=True, kw_only=True):
    """Record that contexts or a skill were used, or neither. A missing session is created."""

    session_id: Name
    owner: Owner | None = None
    contexts: Annotated[list[Uri], msgspec.Meta(max_length=1000)] | None = None
    skill: SkillUse | None = None
    created_at: Timestamp | None = None

    @property
    def invokes_tools(self) -> bool:
        return self.skill is not None


@operation("GET /sessions/{session_id}/used", right="read", answer="streamed")
class ListUsage(Operation[list[Usage]], frozen=True, kw_only=True):
    """List the recorded uses after the id `after`, in the order of recording."""

    session_id: Name
    owner: Owner | None = None
    after: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


@operation("POST /sessions/{session_id}/extract", right="write", reads=True)
class ExtractMemories(Operation[list[dict[str, Any]]], frozen=True, kw_only=True):
    """Extract memories from a session, and return what was written.

    Memories are not extracted yet, so the list is empty.
    """

    session_id: Name
    owner: Owner | None = None


@operation("GET /sessions/{session_id}/tool-results", right="read", answer="bounded")
class ListToolResults(Operation[ToolResultPage], frozen=True, kw_only=True):
    """List the large tool outputs of a session, newest first."""

    session_id: Name
    owner: Owner | None = None
    tool_name: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


@operation("GET /sessions/{session_id}/tool-results/{tool_result_id}", right="read", answer="bounded")
class ReadToolResult(Operation[ToolResultSlice], frozen=True, kw_only=True):
    """Read `limit` characters of a large tool output from `offset`."""

    session_id: Name
    owner: Owner | None = None
    tool_result_id: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 2)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 20_000


@operation("GET /sessions/{session_id}/tool-results/{tool_result_id}/search", right="read", answer="bounded")
class SearchToolResult(Operation[ToolResultMatches], frozen=True, kw_only=True):
    """Search a large tool output for a string, ignoring case."""

    session_id: Name
    owner: Owner | None = None
    tool_result_id: Name
    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20
    context_chars: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 300


@operation("GET /sessions/{session_id}/events", right="read", stream=True, answer="paged")
class ReadEvents(Operation[EventPage], frozen=True, kw_only=True):
    """Read the events of a session after the event `after`: every message and every change, in order.

    Without `after`, read from the first event. With `now`, read only future events. With the media type
    `text/event-stream` the response is a stream of events as they happen, and `Last-Event-ID` is used for `after`.
    """

    session_id: Name
    owner: Owner | None = None
    after: EventId | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100

    def following(self, page: EventPage) -> "ReadEvents | None":
        left = self.limit - len(page.events)
        return replace(self, after=page.cursor, limit=left) if page.has_more and left > 0 else None

    def join(self, page: EventPage, next_page: EventPage) -> EventPage:
        return replace(next_page, events=page.events + next_page.events)


@operation("GET /stats/sessions/{session_id}", right="read")
class GetSessionStats(Operation[SessionStats], frozen=True, kw_only=True):
    """Return the statistics of a session."""

    session_id: Name
    owner: Owner | None = None
