"""Operations on the access to a session: collaborators, share links and its owner."""

from typing import Annotated

import msgspec

from holdfast.model.access import (
    Collaborator,
    CollaboratorPage,
    CollaboratorRef,
    NamedUser,
    Owner,
    Right,
    ShareLinkCreated,
    ShareLinkPage,
    ShareLinkRef,
)
from holdfast.model.base import Name
from holdfast.model.sessions import SessionInfo
from holdfast.ops.administration import LifetimeSeconds
from holdfast.ops.table import Operation, operation

Rights = Annotated[
    list[Right], msgspec.Meta(min_length=1, max_length=3, description="use one or more of read, write, invoke")
]
LinkId = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$(?!\n)", description="use the id of a link from the list of links")
]

COLLABORATORS = "/sessions/{session_id}/collaborators"
LINKS = "/sessions/{session_id}/links"


@operation(f"PUT {COLLABORATORS}/{{user_id}}", right="own", audit="{session_id} user={user_id} rights={rights}")
class ShareSession(Operation[Collaborator], frozen=True, kw_only=True):
    """Share a session with a user of the account, or replace the user's rights."""

    session_id: Name
    owner: Owner | None = None
    user_id: NamedUser
    rights: Rights = msgspec.field(default_factory=lambda: ["read"])
    agent_id: Name | None = None
    """Limits the rights to calls of the user with this agent."""
    expires_in_seconds: LifetimeSeconds | None = None


@operation(f"DELETE {COLLABORATORS}/{{user_id}}", right="any", audit="{session_id} user={user_id}")
class UnshareSession(Operation[CollaboratorRef], frozen=True, kw_only=True):
    """Stop sharing a session with a user. A collaborator can leave a session by naming themselves."""

    session_id: Name
    owner: Owner | None = None
    user_id: NamedUser


@operation(f"GET {COLLABORATORS}", right="read", result_field="collaborators", answer="bounded")
class ListCollaborators(Operation[CollaboratorPage], frozen=True, kw_only=True):
    """List the users that a session is shared with, by user id. The owner is not among them."""

    session_id: Name
    owner: Owner | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: NamedUser | None = None


@operation(f"POST {LINKS}", right="own", audit="{session_id} link={result.id} rights={rights}")
class CreateShareLink(Operation[ShareLinkCreated], frozen=True, kw_only=True):
    """Create a link that opens a session to everybody who has it, until it expires or is revoked."""

    session_id: Name
    owner: Owner | None = None
    rights: Rights = msgspec.field(default_factory=lambda: ["read"])
    expires_in_seconds: LifetimeSeconds | None = None


@operation(f"GET {LINKS}", right="own", result_field="links", answer="bounded")
class ListShareLinks(Operation[ShareLinkPage], frozen=True, kw_only=True):
    """List the share links of a session, without their secrets."""

    session_id: Name
    owner: Owner | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: LinkId | None = None


@operation(f"DELETE {LINKS}/{{link_id}}", right="own", audit="{session_id} link={link_id}")
class RevokeShareLink(Operation[ShareLinkRef], frozen=True, kw_only=True):
    """Revoke a share link."""

    session_id: Name
    owner: Owner | None = None
    link_id: LinkId


@operation("POST /sessions/{session_id}/transfer", right="own", audit="{session_id} user={user_id}")
class TransferSession(Operation[SessionInfo], frozen=True, kw_only=True):
    """Make another user of the account the owner of a session. The caller keeps the given rights."""

    session_id: Name
    owner: Owner | None = None
    user_id: NamedUser
    keep_rights: Annotated[list[Right], msgspec.Meta(max_length=3)] = msgspec.field(
        default_factory=lambda: ["read", "write", "invoke"]
    )
