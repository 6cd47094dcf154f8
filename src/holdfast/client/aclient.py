"""The asynchronous twin. Generated from `client.py` by `tools/unasync.py`; do not edit."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import UNSET, UnsetType

from holdfast.client.aadmin import AsyncAdmin
from holdfast.client.atransport import AsyncTransport, open_async_transport
from holdfast.client.opening import find_place
from holdfast.config import Settings
from holdfast.engine.ids import Ids, system_clock
from holdfast.errors import NotFoundError
from holdfast.model import (
    AccessRole,
    Appended,
    AutoCommitPolicy,
    Component,
    ComponentName,
    EventPage,
    Health,
    Identity,
    MemoryPolicy,
    MemoryStats,
    Message,
    MessagePage,
    NewMessage,
    QueueCounts,
    Role,
    SessionInfo,
    SessionList,
    SessionRef,
    SessionState,
    SessionStats,
    SkillUse,
    SystemHealth,
    SystemStatus,
    ToolResultMatches,
    ToolResultPage,
    ToolResultSlice,
    Usage,
    UseRecorded,
    session_uri,
)
from holdfast.ops import (
    AddMessage,
    AddMessages,
    CheckHealth,
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ForkSession,
    GetMemoryStats,
    GetMessages,
    GetSession,
    GetSessionStats,
    GetSystemStatus,
    ListSessions,
    ListToolResults,
    ListUsage,
    ObserveComponent,
    ObserveSystem,
    ReadEvents,
    ReadToolResult,
    RecordUse,
    SearchToolResult,
    UpdateSession,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.parts import Part

PartLike = Part | dict[str, Any]


def _listed(value: Any) -> Any:
    """Any row of things as a list; what is not one goes to the gate as it is, to be refused there by name."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | dict) else value


def connect_async(
    target: str | Path | None = None,
    *,
    api_key: str | None = None,
    account: str | None = None,
    user: str | None = None,
    role: AccessRole | None = None,
    settings: Settings | None = None,
) -> "AsyncClient":
    """Open Holdfast.

    Without a `target`, in a file in the platform's data folder; else in the folder or file it names, in `:memory:`,
    on the database of a `postgresql://` URL, or through the server of an `http://` URL, with its `api_key`.
    Who calls is user `default` of account `default`, as root, unless said otherwise; a server that gives out keys
    goes by the key alone. Close the client when done, or use it in an `async with` statement.
    """
    return AsyncClient(open_async_transport(find_place(target, api_key, account, user, role, settings)))


class AsyncClient:
    """Every operation as a method. Safe to share between threads."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._ids = Ids(system_clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def whoami(self) -> Identity:
        """Whom the gate takes the caller for."""
        return await self._transport.call(WhoAmI())

    @property
    def admin(self) -> AsyncAdmin:
        """Accounts, users, keys and the audit."""
        return AsyncAdmin(self._transport)

    def session(self, session_id: str | None = None) -> "AsyncSession":
        """A handle on a session, with a new id if none is given. The first thing added to it creates it."""
        return AsyncSession(self, self._ids.new("sess") if session_id is None else session_id)

    async def create_session(
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
        return await self._transport.call(op)

    async def get_session(self, session_id: str, *, auto_create: bool = False) -> SessionInfo:
        return await self._transport.call(GetSession(session_id=session_id, auto_create=auto_create))

    async def list_sessions(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        q: str | None = None,
        state: SessionState | None = None,
    ) -> SessionList:
        """Sessions, newest first. Pass the list's `next_cursor` as `cursor` to get the next ones."""
        page = await self._transport.call(ListSessions(limit=limit, cursor=cursor, q=q, state=state))
        return SessionList(page.sessions, page.next_cursor)

    async def update_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        state: SessionState | None = None,
    ) -> SessionInfo:
        """Change what is given. Metadata is merged key by key; a key set to None is removed."""
        op = UpdateSession(session_id=session_id, title=title, metadata=metadata, state=state)
        return await self._transport.call(op)

    async def update_session_config(
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
        return await self._transport.call(op)

    async def delete_session(self, session_id: str) -> SessionRef:
        """Delete a session and everything only it holds. What a fork shares stays with the fork."""
        return await self._transport.call(DeleteSession(session_id=session_id))

    async def fork_session(
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
        return await self._transport.call(op)

    async def add_message(
        self,
        session_id: str,
        role: Role,
        content: str | None = None,
        parts: Sequence[PartLike] | None = None,
        *,
        id: str | None = None,
        peer_id: str | None = None,
        turn_id: str | None = None,
        message_kind: str | None = None,
        source_message_ids: list[str] | None = None,
        created_at: datetime | str | None = None,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> Appended:
        """Append one message. With `id` or `idempotency_key` a retry is safe; `expected_seq` makes it conditional."""
        op = AddMessage(
            session_id=session_id,
            role=role,
            content=content,
            parts=_listed(parts),
            id=id,
            peer_id=peer_id,
            turn_id=turn_id,
            message_kind=message_kind,
            source_message_ids=source_message_ids,
            created_at=created_at,  # type: ignore[arg-type]  # the gate reads ISO 8601
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
        )
        return await self._transport.call(op)

    async def batch_add_messages(
        self,
        session_id: str,
        messages: Sequence[dict[str, Any] | NewMessage],
        *,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> Appended:
        """Append 1 to 100 messages, all or none: dictionaries with `role` and `content` or `parts`, as on the wire."""
        op = AddMessages(
            session_id=session_id,
            messages=_listed(messages),
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
        )
        return await self._transport.call(op)

    async def get_messages(
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
        return await self._transport.call(op)

    async def session_used(
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
        return await self._transport.call(op)

    async def list_usage(self, session_id: str, *, after: str | None = None, limit: int = 1_000) -> list[Usage]:
        """What was used, in the order in which it was recorded; `after` is the id of the last one seen."""
        return await self._transport.call(ListUsage(session_id=session_id, after=after, limit=limit))

    async def list_tool_results(
        self, session_id: str, *, tool_name: str | None = None, limit: int = 50
    ) -> ToolResultPage:
        """The large tool outputs of a session, newest first."""
        return await self._transport.call(ListToolResults(session_id=session_id, tool_name=tool_name, limit=limit))

    async def read_tool_result(
        self, session_id: str, tool_result_id: str, *, offset: int = 0, limit: int = 20_000
    ) -> ToolResultSlice:
        op = ReadToolResult(session_id=session_id, tool_result_id=tool_result_id, offset=offset, limit=limit)
        return await self._transport.call(op)

    async def search_tool_result(
        self, session_id: str, tool_result_id: str, q: str, *, limit: int = 20, context_chars: int = 300
    ) -> ToolResultMatches:
        op = SearchToolResult(
            session_id=session_id,
            tool_result_id=tool_result_id,
            q=q,
            limit=limit,
            context_chars=context_chars,
        )
        return await self._transport.call(op)

    async def read_events(self, session_id: str, *, after: str | None = None, limit: int = 100) -> EventPage:
        """What happened to a session behind the event `after`: every message and every change, in order."""
        return await self._transport.call(ReadEvents(session_id=session_id, after=after, limit=limit))

    async def session_stats(self, session_id: str) -> SessionStats:
        return await self._transport.call(GetSessionStats(session_id=session_id))

    async def memory_stats(self) -> MemoryStats:
        """Counts of what the caller has."""
        return await self._transport.call(GetMemoryStats())

    async def system_status(self) -> SystemStatus:
        return await self._transport.call(GetSystemStatus())

    async def system_health(self) -> SystemHealth:
        """Every component with its state, for administrators."""
        return await self._transport.call(ObserveSystem())

    async def observe(self, component: ComponentName) -> Component:
        return await self._transport.call(ObserveComponent(component=component))

    async def check_health(self) -> Health:
        return await self._transport.call(CheckHealth())

    async def wait_until_idle(self) -> dict[str, QueueCounts]:
        """Return once everything that was accepted before is done."""
        return await self._transport.call(WaitUntilIdle())


class AsyncSession:
    """A handle on one session: an id and a client, nothing cached."""

    def __init__(self, client: AsyncClient, session_id: str) -> None:
        self._client = client
        self.session_id = session_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r})"

    @property
    async def uri(self) -> str:
        me = await self._client.whoami()
        return session_uri(me.user_id, self.session_id)

    @property
    async def messages(self) -> list[Message]:
        """The live messages, oldest first."""
        found: list[Message] = []
        first: int | None = 1
        while first is not None:
            try:
                page = await self._client.get_messages(self.session_id, first, live=True, limit=10_000)
            except NotFoundError:  # nothing was added yet
                return []
            found += page.messages
            first = page.next_seq
        return found

    @property
    async def stats(self) -> SessionInfo:
        return await self._client.get_session(self.session_id, auto_create=True)

    @property
    async def usage_records(self) -> list[Usage]:
        found: list[Usage] = []
        while True:
            try:
                page = await self._client.list_usage(
                    self.session_id, after=found[-1].id if found else None, limit=10_000
                )
            except NotFoundError:  # nothing was added yet
                return []
            found += page
            if len(page) < 10_000:  # noqa: PLR2004 - the limit above
                return found

    async def add_message(
        self,
        role: Role,
        parts: Sequence[PartLike] | str | None = None,
        content: str | None = None,
        *,
        id: str | None = None,
        peer_id: str | None = None,
        turn_id: str | None = None,
        message_kind: str | None = None,
        source_message_ids: list[str] | None = None,
        created_at: datetime | str | None = None,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> Appended:
        """Append one message: parts, or simply a text."""
        return await self._client.add_message(
            self.session_id,
            role,
            parts if isinstance(parts, str) else content,
            None if isinstance(parts, str) else parts,
            id=id,
            peer_id=peer_id,
            turn_id=turn_id,
            message_kind=message_kind,
            source_message_ids=source_message_ids,
            created_at=created_at,
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
        )

    async def add_messages(
        self,
        messages: Sequence[dict[str, Any] | NewMessage],
        *,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> Appended:
        return await self._client.batch_add_messages(
            self.session_id, messages, idempotency_key=idempotency_key, expected_seq=expected_seq
        )

    async def used(
        self, contexts: list[str] | None = None, skill: SkillUse | dict[str, Any] | None = None
    ) -> UseRecorded:
        return await self._client.session_used(self.session_id, contexts, skill)

    async def fork(self, at: int | str | None = None, *, new_session_id: str | None = None) -> "AsyncSession":
        forked = await self._client.fork_session(self.session_id, at, new_session_id=new_session_id)
        return AsyncSession(self._client, forked.session_id)
