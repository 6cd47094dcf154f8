"""Who may do what with a session: rights, collaborators and share links."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from holdfast.model.base import NAME_PATTERN, WireStruct

Right = Literal["read", "write", "invoke"]
"""A right that an owner can give to others:

- `read`: see the session, its messages, contexts, archives and events, and fork it.
- `write`: add messages, record uses, commit, and change the title and metadata.
- `invoke`: with `write`, also add tool calls, tool results and uses of skills.
"""
RequiredRight = Literal["any", "read", "write", "own"]
"""What an operation on a session needs: any right, a certain one, or `own`, which only the owner has."""

RIGHT_BITS: dict[str, int] = {"any": 0, "read": 1, "write": 2, "invoke": 4, "own": 8}
"""Rights as a number is their sum."""
OWNER_RIGHTS = sum(RIGHT_BITS.values())

INTERNAL_ID_SEPARATOR = "~"
"""Between a name and what tells its holders apart, in an internal id. No name contains it."""
_USER_PATTERN = rf"^{NAME_PATTERN}(~[0-9a-f]{{1,32}})?$(?!\n)"
_MAX_USER_LENGTH = 161
Owner = Annotated[
    str,
    msgspec.Meta(
        pattern=_USER_PATTERN,
        max_length=_MAX_USER_LENGTH,
        description="use the owner of a session as a list of sessions shows it",
    ),
]
"""A user, as the address of a session names its owner: by name, or by internal id."""
NamedUser = Annotated[
    str,
    msgspec.Meta(
        pattern=_USER_PATTERN,
        max_length=_MAX_USER_LENGTH,
        description="use the name of a user, or a user_id from the list of collaborators",
    ),
]
"""A user that a session is, was or will be shared with: by name, or by internal id."""
InternalId = Annotated[
    str,
    msgspec.Meta(
        pattern=_USER_PATTERN,
        max_length=_MAX_USER_LENGTH,
        description="use the internal_id that the deletion of the user has returned",
    ),
]


def to_bits(rights: Iterable[str]) -> int:
    """Return rights as a number.

    >>> to_bits(["read", "write"])
    3
    """
    return sum(RIGHT_BITS[right] for right in set(rights))


def to_rights(bits: int) -> list[Right]:
    """Return the rights that a number stands for. The owner has all of them.

    >>> to_rights(3)
    ['read', 'write']
    """
    return [right for right in ("read", "write", "invoke") if bits & RIGHT_BITS[right]]


def user_name(internal_id: str) -> str:
    """Return the name that the user with an internal id had.

    >>> user_name("alice"), user_name("alice~5f3a90"), user_name("~5f3a90")
    ('alice', 'alice', 'link-5f3a90')
    """
    name, separator, rest = internal_id.partition(INTERNAL_ID_SEPARATOR)
    return name if name or not separator else link_user_name(rest)


def link_user_name(link_id: str) -> str:
    """Return the user id of callers with a share link."""
    return f"link-{link_id}"


def link_internal_id(link_id: str) -> str:
    """Return what stands for a share link in a grant. No user has such an internal id."""
    return f"{INTERNAL_ID_SEPARATOR}{link_id}"


class Collaborator(WireStruct, frozen=True, kw_only=True):
    """A user that a session is shared with."""

    user_id: str
    rights: list[Right]
    agent_id: str | None
    """The only agent that may use the rights, or None for any."""
    granted_by: str
    created_at: datetime
    expires_at: datetime | None


class CollaboratorPage(WireStruct, frozen=True):
    collaborators: list[Collaborator]
    next_cursor: str | None


class CollaboratorRef(WireStruct, frozen=True):
    session_id: str
    user_id: str


class ShareLink(WireStruct, frozen=True, kw_only=True):
    """A share link, without its secret."""

    id: str
    session_id: str
    owner: str
    rights: list[Right]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    use_count: int
    """The number of requests with the link."""
    last_used_at: datetime | None


class ShareLinkCreated(WireStruct, frozen=True, kw_only=True):
    id: str
    session_id: str
    owner: str
    rights: list[Right]
    expires_at: datetime | None
    token: str
    """Works in place of an API key, for this session alone. It is returned only here; the server stores its hash."""


class ShareLinkPage(WireStruct, frozen=True):
    links: list[ShareLink]
    next_cursor: str | None


class ShareLinkRef(WireStruct, frozen=True):
    session_id: str
    id: str
