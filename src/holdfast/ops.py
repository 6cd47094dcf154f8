"""The table of operations, as data: what can be asked, what comes back, who may, and where it is on the wire."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import msgspec

from holdfast.checking import conform, introduce
from holdfast.model import (
    AccessRole,
    Account,
    Appended,
    AuditPage,
    MessagePage,
    NewMessage,
    SessionInfo,
    SessionPage,
    SessionRef,
    SessionState,
    SkillUse,
    ToolResultMatches,
    ToolResultPage,
    ToolResultSlice,
    Usage,
    UseRecorded,
)
from holdfast.noun import Name
from holdfast.sound import sound_text

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Title = Annotated[str, msgspec.Meta(max_length=500)]
Uri = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Cursor = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{1,16}$(?!\n)", description="use the next_cursor of the page before")
]


R = TypeVar("R")


class Operation(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """Base of every operation, and what it results in. Operations are values: they can be stored, sent, replayed."""


class Entry(msgspec.Struct, frozen=True):
    """What the table knows of an operation."""

    returns: Any
    role: AccessRole
    """The least role that may ask for it."""
    verb: str
    path: str
    audited: bool
    """Whether the gate writes an audit record; a log row (a message, a use) is its own."""


OPERATIONS: dict[type[Operation[Any]], Entry] = {}

O = TypeVar("O", bound=Operation[Any])  # noqa: E741 - an operation


def operation(route: str, *, role: AccessRole = "user", audited: bool = False) -> Callable[[type[O]], type[O]]:
    """Enter an operation in the table."""
    verb, path = route.split()

    def enter(cls: type[O]) -> type[O]:
        (returns,) = (get_args(base)[0] for base in getattr(cls, "__orig_bases__", ()) if get_origin(base) is Operation)
        OPERATIONS[cls] = Entry(returns, role, verb, f"/api/v1{path}", audited)
        return introduce(cls)

    return enter


@operation("POST /sessions", audited=True)
class CreateSession(Operation[SessionInfo], frozen=True, kw_only=True):
    session_id: Name | None = None
    title: Title = ""
    metadata: dict[str, Any] = {}


@operation("GET /sessions/{session_id}")
class GetSession(Operation[SessionInfo], frozen=True, kw_only=True):
    session_id: Name
    auto_create: bool = False


@operation("GET /sessions")
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


@operation("POST /sessions/{session_id}/messages")
class AddMessage(NewMessage, Operation[Appended], frozen=True, kw_only=True):
    """Appends one message; a missing session is created."""

    session_id: Name
    idempotency_key: Key | None = None
    expected_seq: Seq | None = None


@operation("POST /sessions/{session_id}/messages/batch")
class AddMessages(Operation[Appended], frozen=True, kw_only=True):
    """Appends 1 to 100 messages, all or none; a missing session is created."""

    session_id: Name
    messages: Annotated[list[NewMessage], msgspec.Meta(min_length=1, max_length=100)]
    idempotency_key: Key | None = None
    expected_seq: Seq | None = None


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


@operation("POST /admin/accounts", role="root", audited=True)
class CreateAccount(Operation[Account], frozen=True, kw_only=True):
    account_id: Name


@operation("GET /admin/accounts", role="root")
class ListAccounts(Operation[list[Account]], frozen=True, kw_only=True):
    pass


@operation("GET /audit", role="admin")
class ListAudit(Operation[AuditPage], frozen=True, kw_only=True):
    """The account's audit records, newest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: Name | None = None


def checked(op: O) -> O:
    """The operation with every field of the right type and within its bounds, or InvalidArgumentError."""
    fields = msgspec.structs.asdict(op)
    for name in _NESTED.get(type(op), ()):
        fields[name] = _opened(fields[name])
    valid = conform(fields, type(op))
    for name, value in fields.items():
        if isinstance(value, str):
            sound_text(name, value)
    return valid


_NESTED: dict[type[Operation[Any]], tuple[str, ...]] = {AddMessages: ("messages",), RecordUse: ("skill",)}


def _opened(value: Any) -> Any:
    """Structs as dictionaries: msgspec takes a ready-made struct on trust, and the caller may have made it."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    return [_opened(item) for item in value] if isinstance(value, list) else value
