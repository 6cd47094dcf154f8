"""Client methods for sessions, messages and events."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.client.sync.audit import Audit
from holdfast.client.sync.commits import Commits
from holdfast.client.sync.search import Searches
from holdfast.client.sync.sharing import Sharing
from holdfast.client.sync.system import System
from holdfast.client.sync.tool_results import ToolResults
from holdfast.client.sync.tree.file_changes import FileChanges
from holdfast.client.sync.tree.files import Files
from holdfast.client.sync.tree.packs import Packs
from holdfast.client.sync.tree.patterns import Patterns
from holdfast.client.sync.tree.resources import Resources
from holdfast.client.sync.tree.skills import Skills
from holdfast.model.messages import (
    Appended,
    MessagePage,
    NewMessage,
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
from holdfast.ops.sessions import (
    AddMessage,
    AddMessages,
    ConfigureSession,
    CreateSession,
    DeleteSession,
    ExtractMemories,
    ForkSession,
    GetMessages,
    GetSession,
    ListSessions,
    ListUsage,
    ReadEvents,
    RecordUse,
    UpdateSession,
    with_provider_fields,
)
from holdfast.provider_formats import AnyRole

PartLike = Part | dict[str, Any]
Content = str | Sequence[str | dict[str, Any]]


def _as_list(value: Any) -> Any:
    """Convert any sequence or iterator to a list. Other values are returned unchanged, for validation to reject."""
    if value is None:
        return None
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes | dict) else value


class Operations(
    Commits, Files, FileChanges, Packs, Skills, Patterns, Resources, Searches, Sharing, ToolResults, Audit, System
):
    """One method per operation, through a transport.

    `owner` names the owner of a session that another user shares. Without it, a session is the caller's own.
    """

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
        """Create a session. If `session_id` is None, an id is generated.

        `metadata` is any JSON object. `created_at` is for sessions that began elsewhere. `auto_commit_policy` sets
        when the session is committed automatically. `memory_policy` and `memory_extraction_config` are for the
        extraction of long-term memories, which is not implemented yet: they are stored and returned, without effect.
        """
        op = CreateSession(
            session_id=session_id,
            title=title,
            metadata=metadata or {},
            created_at=created_at,  # type: ignore[arg-type]  # validation accepts ISO 8601
            memory_policy=memory_policy,  # type: ignore[arg-type]  # validation accepts dictionaries
            auto_commit_policy=auto_commit_policy,  # type: ignore[arg-type]
            memory_extraction_config=memory_extraction_config,
        )
        return self._transport.call(op)

    def get_session(self, session_id: str, *, auto_create: bool = False, owner: str | None = None) -> SessionInfo:
        """Return a session's fields and counts. With `auto_create`, a missing session is created."""
        return self._transport.call(GetSession(session_id=session_id, owner=owner, auto_create=auto_create))

    def list_sessions(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        q: str | None = None,
        state: SessionState | None = None,
        shared: bool | None = None,
    ) -> SessionList:
        """List the caller's sessions and those shared with the caller, newest first.

        `q` filters by part of the id or the title, ignoring case. `shared` selects only shared, or only own sessions.
        Without `limit`, the list has all of them. With it, pass the list's `next_cursor` as `cursor` to get the next
        page.
        """
        page = self._transport.call(ListSessions(limit=limit, cursor=cursor, q=q, state=state, shared=shared))
        return SessionList(page.sessions, page.next_cursor)

    def update_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: dict[str, Any] | None = None,
        state: SessionState | None = None,
        owner: str | None = None,
    ) -> SessionInfo:
        """Update the given fields. Metadata is merged key by key; a key set to None is removed.

        A session with state `archived` accepts no messages until its state is `active` again.
        """
        op = UpdateSession(session_id=session_id, owner=owner, title=title, metadata=metadata, state=state)
        return self._transport.call(op)

    def update_session_config(
        self,
        session_id: str,
        *,
        memory_policy: MemoryPolicy | dict[str, Any] | UnsetType | None = UNSET,
        auto_commit_policy: AutoCommitPolicy | dict[str, Any] | UnsetType | None = UNSET,
        memory_extraction_config: dict[str, Any] | UnsetType | None = UNSET,
        owner: str | None = None,
    ) -> SessionInfo:
        """Update the given settings of a session, described at `create_session`. None resets one to its default."""
        op = ConfigureSession(
            session_id=session_id,
            owner=owner,
            memory_policy=memory_policy,  # type: ignore[arg-type]  # validation accepts dictionaries
            auto_commit_policy=auto_commit_policy,  # type: ignore[arg-type]
            memory_extraction_config=memory_extraction_config,
        )
        return self._transport.call(op)

    def delete_session(self, session_id: str, *, owner: str | None = None) -> SessionRef:
        """Delete a session with all its data. Messages that it shares with a fork stay in the fork."""
        return self._transport.call(DeleteSession(session_id=session_id, owner=owner))

    def fork_session(
        self,
        session_id: str,
        at: int | str | None = None,
        *,
        new_session_id: str | None = None,
        title: str | None = None,
        created_at: datetime | str | None = None,
        owner: str | None = None,
    ) -> SessionInfo:
        """Create a session that shares all messages up to `at` with this one.

        `at` is a seq or a message id; by default the last message. No message is copied.
        """
        op = ForkSession(
            session_id=session_id,
            owner=owner,
            at=at,
            new_session_id=new_session_id,
            title=title,
            created_at=created_at,  # type: ignore[arg-type]  # validation accepts ISO 8601
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
        telemetry: bool | dict[str, Any] | None = None,
        owner: str | None = None,
        **provider_fields: Any,
    ) -> Appended:
        """Append one message to a session. A missing session is created.

        The body of the message is `parts`, or else `content`, a string. With `id` or `idempotency_key` the call is safe
        to repeat. With `expected_seq` it fails with a conflict unless that is the seq of the last message. With
        `telemetry`, the result says how long the call took.

        Four fields are stored for the application and have no effect: `peer_id` (the participant, if several share a
        role), `turn_id` (the turn that the message belongs to), `message_kind` (any label) and `source_message_ids`
        (the messages that this one was made from).

        `add_message(session_id, **message)` accepts a message in the format of OpenAI or Anthropic: `content` may be
        a list of the provider's blocks, and `provider_fields` takes its other fields, such as `tool_calls`.
        """
        op = AddMessage(
            session_id=session_id,
            owner=owner,
            role=role,  # type: ignore[arg-type]  # validation accepts the roles of providers
            content=content,  # type: ignore[arg-type]  # and their blocks
            parts=_as_list(parts),
            id=id,
            peer_id=peer_id,
            turn_id=turn_id,
            message_kind=message_kind,
            source_message_ids=source_message_ids,
            created_at=created_at,  # type: ignore[arg-type]  # and ISO 8601
            metadata=metadata,
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
            telemetry=telemetry or False,
        )
        return self._transport.call(with_provider_fields(op, provider_fields) if provider_fields else op)

    def batch_add_messages(
        self,
        session_id: str,
        messages: Sequence[dict[str, Any] | NewMessage],
        *,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
        telemetry: bool | dict[str, Any] | None = None,
        owner: str | None = None,
    ) -> Appended:
        """Append 1 to 100 messages in one transaction: all or none. A missing session is created.

        A message is a dictionary with the parameters of `add_message`, or in the format of OpenAI or Anthropic.
        `idempotency_key`, `expected_seq` and `telemetry` work as in `add_message`.
        """
        op = AddMessages(
            session_id=session_id,
            owner=owner,
            messages=_as_list(messages),
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
            telemetry=telemetry or False,
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
        owner: str | None = None,
    ) -> MessagePage:
        """Return one page of the messages with seq `first` to `last`, in order.

        `live` skips archived messages. `q` returns only messages that contain all its words. `next_seq` of the page
        is `first` of the next page, or None at the end.
        """
        op = GetMessages(session_id=session_id, owner=owner, first=first, last=last, live=live, q=q, limit=limit)
        return self._transport.call(op)

    def session_used(
        self,
        session_id: str,
        contexts: list[str] | None = None,
        skill: SkillUse | dict[str, Any] | None = None,
        *,
        created_at: datetime | str | None = None,
        owner: str | None = None,
    ) -> UseRecorded:
        """Record that the session used some contexts or a skill.

        `contexts` has the URIs of what the agent was given to read, such as documents or memories.
        """
        op = RecordUse(
            session_id=session_id,
            owner=owner,
            contexts=contexts,
            skill=skill,  # type: ignore[arg-type]  # validation accepts dictionaries
            created_at=created_at,  # type: ignore[arg-type]  # and ISO 8601
        )
        return self._transport.call(op)

    def list_usage(
        self, session_id: str, *, after: str | None = None, limit: int = 1_000, owner: str | None = None
    ) -> list[Usage]:
        """List the recorded uses in order, starting after the one with the id `after`."""
        return self._transport.call(ListUsage(session_id=session_id, owner=owner, after=after, limit=limit))

    def read_events(
        self, session_id: str, *, after: str | None = None, limit: int = 100, owner: str | None = None
    ) -> EventPage:
        """Return one page of a session's events (every message and every change), in order.

        The page starts after the event id `after`; without it, at the first event. `cursor` of the page is `after`
        of the next page.
        """
        return self._transport.call(ReadEvents(session_id=session_id, owner=owner, after=after, limit=limit))

    def extract_session(self, session_id: str, *, owner: str | None = None) -> list[dict[str, Any]]:
        """Extract memories from a session, and return what was written: nothing, until memories are supported."""
        return self._transport.call(ExtractMemories(session_id=session_id, owner=owner))
