"""Every operation as a method. `aoperations.py` is its asynchronous twin."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from time import monotonic
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.client.sync.commits import Commits
from holdfast.client.sync.files import Files
from holdfast.errors import DeadlineExceededError
from holdfast.model.identity import Identity
from holdfast.model.messages import (
    Appended,
    MessagePage,
    NewMessage,
    ToolResultMatches,
    ToolResultPage,
    ToolResultSlice,
)
from holdfast.model.parts import Part
from holdfast.model.sessions import (
    AutoCommitPolicy,
    EventPage,
    MemoryPolicy,
    SessionInfo,
    SessionList,
    SessionRef,
    SessionState,
    SkillUse,
    Usage,
    UseRecorded,
)
from holdfast.model.system import (
    Component,
    ComponentName,
    Health,
    MemoryStats,
    QueueCounts,
    SessionStats,
    SystemHealth,
    SystemStatus,
)
from holdfast.ops.sessions import (
    AddMessage,
    AddMessages,
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ForkSession,
    GetMessages,
    GetSession,
    GetSessionStats,
    ListSessions,
    ListToolResults,
    ListUsage,
    ReadEvents,
    ReadToolResult,
    RecordUse,
    SearchToolResult,
    UpdateSession,
    with_provider_fields,
)
from holdfast.ops.system import (
    CheckHealth,
    GetMemoryStats,
    GetSystemStatus,
    ObserveComponent,
    ObserveSystem,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.provider_formats import AnyRole

PartLike = Part | dict[str, Any]
Content = str | Sequence[str | dict[str, Any]]
MIN_WAIT = 0.01


def _listed(value: Any) -> Any:
    """Any row of things as a list; what is not one goes to the gate as it is, to be refused there by name."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | dict) else value


class Operations(Commits, Files):
    """What can be asked, of whatever is behind the transport."""

    def whoami(self) -> Identity:
        """Whom the gate takes the caller for."""
        return self._transport.call(WhoAmI())

    def create_session(
        self,
        session_id: str | None = None,
        *,
        title: str = "",
        metadata: dict[str, Any] | None = None,
        created_at: datetime | str | None = None,
        memory_policy: MemoryPolicy | dict[str, Any] | None = None,
        auto_commit_policy: AutoCommitPolicy | dict[str, Any] | None = None,
        memory_extraction_config: dict[str, Any] | None = None,
    ) -> SessionInfo:
        op = CreateSession(
            session_id=session_id,
            title=title,
            metadata=metadata or {},
            created_at=created_at,  # type: ignore[arg-type]  # the gate reads ISO 8601
            memory_policy=memory_policy,  # type: ignore[arg-type]  # and dictionaries
            auto_commit_policy=auto_commit_policy,  # type: ignore[arg-type]
            memory_extraction_config=memory_extraction_config,
        )
        return self._transport.call(op)

    def get_session(self, session_id: str, *, auto_create: bool = False) -> SessionInfo:
        return self._transport.call(GetSession(session_id=session_id, auto_create=auto_create))

    def list_sessions(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        q: str | None = None,
        state: SessionState | None = None,
    ) -> SessionList:
        """Sessions, newest first. Pass the list's `next_cursor` as `cursor` to get the next ones."""
        page = self._transport.call(ListSessions(limit=limit, cursor=cursor, q=q, state=state))
        return SessionList(page.sessions, page.next_cursor)

    def update_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        state: SessionState | None = None,
    ) -> SessionInfo:
        """Change what is given. Metadata is merged key by key; a key set to None is removed."""
        op = UpdateSession(session_id=session_id, title=title, metadata=metadata, state=state)
        return self._transport.call(op)

    def update_session_config(
        self,
        session_id: str,
        *,
        memory_policy: MemoryPolicy | dict[str, Any] | UnsetType | None = UNSET,
        auto_commit_policy: AutoCommitPolicy | dict[str, Any] | UnsetType | None = UNSET,
        memory_extraction_config: dict[str, Any] | UnsetType | None = UNSET,
    ) -> SessionInfo:
        """Change what is given; None puts a setting back to its default."""
        op = ConfigureSession(
            session_id=session_id,
            memory_policy=memory_policy,  # type: ignore[arg-type]  # the gate reads dictionaries
            auto_commit_policy=auto_commit_policy,  # type: ignore[arg-type]
            memory_extraction_config=memory_extraction_config,
        )
        return self._transport.call(op)

    def delete_session(self, session_id: str) -> SessionRef:
        """Delete a session and everything only it holds. What a fork shares stays with the fork."""
        return self._transport.call(DeleteSession(session_id=session_id))

    def fork_session(
        self,
        session_id: str,
        at: int | str | None = None,
        *,
        new_session_id: str | None = None,
        title: str | None = None,
        created_at: datetime | str | None = None,
    ) -> SessionInfo:
        """A new session that shares everything up to `at`: a seq, a message id, or by default the last message."""
        op = ForkSession(
            session_id=session_id,
            at=at,
            new_session_id=new_session_id,
            title=title,
            created_at=created_at,  # type: ignore[arg-type]  # the gate reads ISO 8601
        )
        return self._transport.call(op)

    def add_message(
        self,
        session_id: str,
        role: AnyRole | None = None,
        content: Content | None = None,
        parts: Sequence[PartLike] | None = None,
        *,
        id: str | None = None,
        peer_id: str | None = None,
        turn_id: str | None = None,
        message_kind: str | None = None,
        source_message_ids: list[str] | None = None,
        created_at: datetime | str | None = None,
        metadata: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
        **provider_fields: Any,
    ) -> Appended:
        """Append one message. With `id` or `idempotency_key` a retry is safe; `expected_seq` makes it conditional.

        A message of OpenAI or Anthropic goes in as `add_message(session_id, **message)`: `content` may be a list of its
        blocks, and `provider_fields` are those that only it has, such as `tool_calls`.
        """
        op = AddMessage(
            session_id=session_id,
            role=role,  # type: ignore[arg-type]  # the gate reads a provider's
            content=content,  # type: ignore[arg-type]  # and its blocks
            parts=_listed(parts),
            id=id,
            peer_id=peer_id,
            turn_id=turn_id,
            message_kind=message_kind,
            source_message_ids=source_message_ids,
            created_at=created_at,  # type: ignore[arg-type]  # and ISO 8601
            metadata=metadata,
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
        )
        return self._transport.call(with_provider_fields(op, provider_fields) if provider_fields else op)

    def batch_add_messages(
        self,
        session_id: str,
        messages: Sequence[dict[str, Any] | NewMessage],
        *,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> Appended:
        """Append 1 to 100 messages, all or none: dictionaries as on the wire, or as OpenAI or Anthropic have them."""
        op = AddMessages(
            session_id=session_id,
            messages=_listed(messages),
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
        )
        return self._transport.call(op)

    def get_messages(
        self,
        session_id: str,
        first: int = 1,
        last: int | None = None,
        *,
        live: bool = False,
        q: str | None = None,
        limit: int = 1_000,
    ) -> MessagePage:
        """Messages `first` to `last`, a page at a time: `next_seq` of the page is the `first` of the next."""
        op = GetMessages(session_id=session_id, first=first, last=last, live=live, q=q, limit=limit)
        return self._transport.call(op)

    def session_used(
        self,
        session_id: str,
        contexts: list[str] | None = None,
        skill: SkillUse | dict[str, Any] | None = None,
        *,
        created_at: datetime | str | None = None,
    ) -> UseRecorded:
        """Record which contexts and which skill were actually of use."""
        op = RecordUse(
            session_id=session_id,
            contexts=contexts,
            skill=skill,  # type: ignore[arg-type]  # the gate reads dictionaries
            created_at=created_at,  # type: ignore[arg-type]  # and ISO 8601
        )
        return self._transport.call(op)

    def list_usage(self, session_id: str, *, after: str | None = None, limit: int = 1_000) -> list[Usage]:
        """What was used, in the order in which it was recorded; `after` is the id of the last one seen."""
        return self._transport.call(ListUsage(session_id=session_id, after=after, limit=limit))

    def list_tool_results(self, session_id: str, *, tool_name: str | None = None, limit: int = 50) -> ToolResultPage:
        """The large tool outputs of a session, newest first."""
        return self._transport.call(ListToolResults(session_id=session_id, tool_name=tool_name, limit=limit))

    def read_tool_result(
        self, session_id: str, tool_result_id: str, *, offset: int = 0, limit: int = 20_000
    ) -> ToolResultSlice:
        op = ReadToolResult(session_id=session_id, tool_result_id=tool_result_id, offset=offset, limit=limit)
        return self._transport.call(op)

    def search_tool_result(
        self, session_id: str, tool_result_id: str, q: str, *, limit: int = 20, context_chars: int = 300
    ) -> ToolResultMatches:
        op = SearchToolResult(
            session_id=session_id,
            tool_result_id=tool_result_id,
            q=q,
            limit=limit,
            context_chars=context_chars,
        )
        return self._transport.call(op)

    def read_events(self, session_id: str, *, after: str | None = None, limit: int = 100) -> EventPage:
        """What happened to a session behind the event `after`: every message and every change, in order."""
        return self._transport.call(ReadEvents(session_id=session_id, after=after, limit=limit))

    def session_stats(self, session_id: str) -> SessionStats:
        return self._transport.call(GetSessionStats(session_id=session_id))

    def memory_stats(self) -> MemoryStats:
        """Counts of what the caller has."""
        return self._transport.call(GetMemoryStats())

    def system_status(self) -> SystemStatus:
        return self._transport.call(GetSystemStatus())

    def system_health(self) -> SystemHealth:
        """Every component with its state, for administrators."""
        return self._transport.call(ObserveSystem())

    def observe(self, component: ComponentName) -> Component:
        return self._transport.call(ObserveComponent(component=component))

    def check_health(self) -> Health:
        return self._transport.call(CheckHealth())

    def wait_until_idle(self, seconds: float | None = None) -> dict[str, QueueCounts]:
        """Return once everything that was accepted before is done, at the latest after so many seconds.

        Without a number, as long as one request may take.
        """
        deadline = None if seconds is None else monotonic() + seconds
        while True:
            left = None if deadline is None else max(deadline - monotonic(), MIN_WAIT)
            try:
                return self._transport.call(WaitUntilIdle(timeout=left))
            except DeadlineExceededError:
                if deadline is None or monotonic() >= deadline:
                    raise
