"""Client methods for the access to sessions: collaborators, share links and owners."""

from collections.abc import Sequence

from holdfast.client.sync.transport import Transport
from holdfast.model.access import (
    Collaborator,
    CollaboratorPage,
    CollaboratorRef,
    Right,
    ShareLinkCreated,
    ShareLinkPage,
    ShareLinkRef,
)
from holdfast.model.sessions import SessionInfo
from holdfast.ops.sharing import (
    CreateShareLink,
    ListCollaborators,
    ListShareLinks,
    RevokeShareLink,
    ShareSession,
    TransferSession,
    UnshareSession,
)


class Sharing:
    """Methods for sharing sessions. `owner` names the owner of a session that another user shares."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def share_session(
        self,
        session_id: str,
        user_id: str,
        rights: Sequence[Right] = ("read",),
        *,
        agent_id: str | None = None,
        expires_in: int | None = None,
        owner: str | None = None,
    ) -> Collaborator:
        """Share a session with a user of the account, or replace the user's rights: `read`, `write`, `invoke`.

        With `agent_id`, the rights apply only to calls of the user with that agent. `expires_in` is in seconds. Only
        the owner can share a session.
        """
        op = ShareSession(
            session_id=session_id,
            owner=owner,
            user_id=user_id,
            rights=list(rights),
            agent_id=agent_id,
            expires_in_seconds=expires_in,
        )
        return self._transport.call(op)

    def unshare_session(self, session_id: str, user_id: str, *, owner: str | None = None) -> CollaboratorRef:
        """Stop sharing a session with a user. A collaborator can leave a session by naming themselves."""
        return self._transport.call(UnshareSession(session_id=session_id, owner=owner, user_id=user_id))

    def list_collaborators(
        self, session_id: str, *, limit: int = 100, cursor: str | None = None, owner: str | None = None
    ) -> CollaboratorPage:
        """List the users that a session is shared with, by user id.

        To get the next page, pass the page's `next_cursor` as `cursor`.
        """
        return self._transport.call(ListCollaborators(session_id=session_id, owner=owner, limit=limit, cursor=cursor))

    def create_share_link(
        self,
        session_id: str,
        rights: Sequence[Right] = ("read",),
        *,
        expires_in: int | None = None,
        owner: str | None = None,
    ) -> ShareLinkCreated:
        """Create a link that opens a session to everybody who has it, until it expires or is revoked.

        Its `token` is used in place of an API key: `connect(url, api_key=link.token)`. It is returned only here.
        """
        op = CreateShareLink(session_id=session_id, owner=owner, rights=list(rights), expires_in_seconds=expires_in)
        return self._transport.call(op)

    def list_share_links(
        self, session_id: str, *, limit: int = 100, cursor: str | None = None, owner: str | None = None
    ) -> ShareLinkPage:
        """List the share links of a session, without their tokens.

        To get the next page, pass the page's `next_cursor` as `cursor`.
        """
        return self._transport.call(ListShareLinks(session_id=session_id, owner=owner, limit=limit, cursor=cursor))

    def revoke_share_link(self, session_id: str, link_id: str, *, owner: str | None = None) -> ShareLinkRef:
        """Revoke a share link, so that it opens nothing any more."""
        return self._transport.call(RevokeShareLink(session_id=session_id, owner=owner, link_id=link_id))

    def transfer_session(
        self,
        session_id: str,
        user_id: str,
        *,
        keep_rights: Sequence[Right] = ("read", "write", "invoke"),
        owner: str | None = None,
    ) -> SessionInfo:
        """Make another user of the account the owner of a session. The caller keeps `keep_rights` on it."""
        op = TransferSession(session_id=session_id, owner=owner, user_id=user_id, keep_rights=list(keep_rights))
        return self._transport.call(op)
