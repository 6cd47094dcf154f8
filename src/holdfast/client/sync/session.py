"""The handle for one session."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from holdfast.client.sync.operations import Content, Operations, PartLike
from holdfast.errors import NotFoundError
from holdfast.model.access import Collaborator, CollaboratorRef, Right, ShareLink, ShareLinkCreated, ShareLinkRef
from holdfast.model.archives import Archive, ArchiveInfo, Committed, Expanded, SessionContext
from holdfast.model.messages import Appended, Message, NewMessage
from holdfast.model.search import ContextType, SearchResult
from holdfast.model.sessions import SessionInfo, SkillUse, Usage, UseRecorded, session_uri
from holdfast.model.tree.files import OVERVIEW
from holdfast.provider_formats import AnyRole


class Session:
    """A handle for one session. It holds the id, the owner of a shared session and the client, and caches nothing."""

    def __init__(self, client: Operations, session_id: str, owner: str | None = None) -> None:
        self._client = client
        self.session_id = session_id
        self.owner = owner
        """The owner of a session that another user shares. None for the caller's own."""

    def __repr__(self) -> str:
        owner = "" if self.owner is None else f", owner={self.owner!r}"
        return f"{type(self).__name__}({self.session_id!r}{owner})"

    @property
    def uri(self) -> str:
        """The session's `viking://` URI."""
        if self.owner is not None:
            return session_uri(self.owner, self.session_id)
        caller = self._client.whoami()
        if caller.role == "guest":
            info = self._client.get_session(self.session_id)
            return info.uri
        return session_uri(caller.user_id, self.session_id)

    @property
    def messages(self) -> list[Message]:
        """All live messages (those not in an archive), oldest first."""
        messages: list[Message] = []
        first: int | None = 1
        while first is not None:
            try:
                page = self._client.get_messages(self.session_id, first, live=True, limit=10_000, owner=self.owner)
            except NotFoundError:
                if self.owner is not None:
                    raise
                return []  # the caller's own session does not exist until something is added
            messages += page.messages
            first = page.next_seq
        return messages

    @property
    def summary(self) -> str:
        """The summary of all finished archives, or an empty string if there are none."""
        try:
            uri = session_uri(self.owner, self.session_id) if self.owner else f"viking://session/{self.session_id}"
            return self._client.read(f"{uri}/{OVERVIEW}")
        except NotFoundError:
            if self.owner is not None:
                raise
            return ""

    @property
    def stats(self) -> SessionInfo:
        """The session's fields and counts. A missing session is created."""
        return self._client.get_session(self.session_id, auto_create=True, owner=self.owner)

    @property
    def usage_records(self) -> list[Usage]:
        """All recorded uses of contexts and skills, in order."""
        records: list[Usage] = []
        while True:
            try:
                page = self._client.list_usage(
                    self.session_id, after=records[-1].id if records else None, limit=10_000, owner=self.owner
                )
            except NotFoundError:
                if self.owner is not None:
                    raise
                return []  # the caller's own session does not exist until something is added
            records += page
            if len(page) < 10_000:  # noqa: PLR2004 - the limit above
                return records

    def add_message(
        self,
        role: AnyRole | None = None,
        parts: Sequence[PartLike] | str | None = None,
        content: Content | None = None,
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
        **provider_fields: Any,
    ) -> Appended:
        """Append one message: a list of parts, or a string.

        The keyword parameters are those of the client's `add_message`. `add_message(**message)` accepts a message in
        the format of OpenAI or Anthropic.
        """
        return self._client.add_message(
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
            metadata=metadata,
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
            telemetry=telemetry,
            owner=self.owner,
            **provider_fields,
        )

    def add_messages(
        self,
        messages: Sequence[dict[str, Any] | NewMessage],
        *,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
        telemetry: bool | dict[str, Any] | None = None,
    ) -> Appended:
        """Append 1 to 100 messages in one transaction: all or none.

        A message is a dictionary with the parameters of `add_message`, or in the format of OpenAI or Anthropic.
        """
        return self._client.batch_add_messages(
            self.session_id,
            messages,
            idempotency_key=idempotency_key,
            expected_seq=expected_seq,
            telemetry=telemetry,
            owner=self.owner,
        )

    def used(self, contexts: list[str] | None = None, skill: SkillUse | dict[str, Any] | None = None) -> UseRecorded:
        """Record which contexts, by URI, and which skill the session used."""
        return self._client.session_used(self.session_id, contexts, skill, owner=self.owner)

    def fork(self, at: int | str | None = None, *, new_session_id: str | None = None) -> "Session":
        """Create a session that shares all messages up to `at`: a seq, a message id, or by default the last message."""
        forked = self._client.fork_session(self.session_id, at, new_session_id=new_session_id, owner=self.owner)
        return Session(self._client, forked.session_id)

    def commit(self, keep_recent_count: int = 0) -> Committed:
        """Move the live messages, except the last `keep_recent_count`, to a new archive; a task summarises it."""
        return self._client.commit_session(self.session_id, keep_recent_count, owner=self.owner)

    def context(self, token_budget: int = 128_000) -> SessionContext:
        """Return the context to send to a model: messages not yet summarised, the latest overview, tool outputs."""
        return self._client.get_session_context(self.session_id, token_budget, owner=self.owner)

    @property
    def archives(self) -> list[ArchiveInfo]:
        """All archives in order, each with its state."""
        archives: list[ArchiveInfo] = []
        while True:
            page = self._client.list_archives(self.session_id, after=len(archives), limit=1_000, owner=self.owner)
            archives += page
            if len(page) < 1_000:  # noqa: PLR2004 - the limit above
                return archives

    def archive(self, archive_id: str) -> Archive:
        """Return a finished archive with all its messages."""
        return self._client.get_session_archive(self.session_id, archive_id, owner=self.owner)

    def expand(self, ref: str, token_budget: int = 32_000) -> Expanded:
        """Return the original messages that a summary refers to: an archive id, a message id, `12-40`, `[#3, #12]`."""
        return self._client.expand(self.session_id, ref, token_budget, owner=self.owner)

    def search(
        self,
        query: str,
        *,
        target_uri: str | Sequence[str] = "",
        limit: int = 10,
        score_threshold: float | None = None,
        context_type: ContextType | Sequence[ContextType] | None = None,
        level: int | Sequence[int] | None = None,
        tags: str | Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        as_of: str | datetime | None = None,
        read_content: bool = False,
        around: int = 1,
        exclude_uris: str | Sequence[str] = (),
        mode: Literal["list", "context"] = "list",
        max_tokens: int = 2_000,
    ) -> SearchResult:
        """Search everything that the caller may read. The recent messages of this session complete the query.

        The parameters are those of the client's `search`.
        """
        return self._client.search(
            query,
            target_uri,
            session_id=self.session_id,
            owner=self.owner,
            limit=limit,
            score_threshold=score_threshold,
            context_type=context_type,
            level=level,
            tags=tags,
            since=since,
            until=until,
            as_of=as_of,
            read_content=read_content,
            around=around,
            exclude_uris=exclude_uris,
            mode=mode,
            max_tokens=max_tokens,
        )

    @property
    def collaborators(self) -> list[Collaborator]:
        """The users that the session is shared with, and their rights."""
        collaborators: list[Collaborator] = []
        cursor: str | None = None
        while True:
            page = self._client.list_collaborators(self.session_id, limit=1_000, cursor=cursor, owner=self.owner)
            collaborators += page.collaborators
            cursor = page.next_cursor
            if cursor is None:
                return collaborators

    def share(
        self,
        user_id: str,
        rights: Sequence[Right] = ("read",),
        *,
        agent_id: str | None = None,
        expires_in: int | None = None,
    ) -> Collaborator:
        """Share the session with a user, or replace the user's rights: `read`, `write`, `invoke`.

        `expires_in` is in seconds. With `agent_id`, the rights apply only to calls with that agent.
        """
        return self._client.share_session(
            self.session_id, user_id, rights, agent_id=agent_id, expires_in=expires_in, owner=self.owner
        )

    def unshare(self, user_id: str) -> CollaboratorRef:
        """Stop sharing the session with a user."""
        return self._client.unshare_session(self.session_id, user_id, owner=self.owner)

    def leave(self) -> CollaboratorRef:
        """Give up the caller's access to a session that another user shares."""
        caller = self._client.whoami()
        return self._client.unshare_session(self.session_id, caller.user_id, owner=self.owner)

    def transfer(self, user_id: str, *, keep_rights: Sequence[Right] = ("read", "write", "invoke")) -> SessionInfo:
        """Make another user the owner of the session. The caller keeps `keep_rights` on it."""
        return self._client.transfer_session(self.session_id, user_id, keep_rights=keep_rights, owner=self.owner)

    @property
    def links(self) -> list[ShareLink]:
        """The share links of the session, without their tokens."""
        links: list[ShareLink] = []
        cursor: str | None = None
        while True:
            page = self._client.list_share_links(self.session_id, limit=1_000, cursor=cursor, owner=self.owner)
            links += page.links
            cursor = page.next_cursor
            if cursor is None:
                return links

    def share_link(self, rights: Sequence[Right] = ("read",), *, expires_in: int | None = None) -> ShareLinkCreated:
        """Create a link that opens the session to everybody who has its `token`. `expires_in` is in seconds."""
        return self._client.create_share_link(self.session_id, rights, expires_in=expires_in, owner=self.owner)

    def revoke_link(self, link_id: str) -> ShareLinkRef:
        """Revoke a share link, so that it opens nothing any more."""
        return self._client.revoke_share_link(self.session_id, link_id, owner=self.owner)
