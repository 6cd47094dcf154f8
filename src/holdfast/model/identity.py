"""Principals, accounts, users and keys."""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.model.base import WireStruct, require_name
from holdfast.model.uris import USER_FOLDERS

AccessRole = Literal["guest", "user", "auditor", "admin", "root"]
TenantRole = Literal["user", "auditor", "admin"]
"""The roles of users in an account. The role guest belongs to share links, the role root to the operator."""
DEFAULT_AGENT = "default"


class Principal(msgspec.Struct, frozen=True):
    """The caller of an operation. The account is the tenant. The sessions of a user are private within it.

    Every principal is validated when it is created, because its names are used in URIs and its account in every WHERE.
    """

    account_id: str = "default"
    user_id: str = "default"
    role: AccessRole = "user"
    agent_id: str = DEFAULT_AGENT
    """The program that acts for the user. It has no access of its own; a grant can be limited to it."""
    internal_id: str = ""
    """Identifies the user in stored rows. A name that is given again belongs to another user, with another id.

    Empty until the gate has looked it up.
    """

    def __post_init__(self) -> None:
        require_name("account_id", self.account_id)
        require_name("user_id", self.user_id)
        require_name("agent_id", self.agent_id)
        require_unreserved("user_id", self.user_id)
        require_unreserved("agent_id", self.agent_id)
        if self.role not in get_args(AccessRole):
            raise InvalidArgumentError("role", f"{self.role!r} is not one of {', '.join(get_args(AccessRole))}")


def require_unreserved(field: str, name: str) -> None:
    """Raise an error if a user or an agent would have the name of a folder of the tree."""
    if name in USER_FOLDERS:
        raise InvalidArgumentError(field, f"{name!r} is the name of a folder of the tree; use another name")


class Origin(msgspec.Struct, frozen=True):
    """Where a call comes from, for the audit log."""

    address: str = ""
    """The network address of the client. Empty for a call in this process."""
    key_id: str = ""
    """The id of the API key or share link. Empty without one."""


NO_ORIGIN = Origin()


class Identity(WireStruct, frozen=True):
    """The account, user, role and agent of the caller, as the server sees them."""

    account_id: str
    user_id: str
    role: AccessRole
    agent_id: str = DEFAULT_AGENT


class UserRef(WireStruct, frozen=True):
    account_id: str
    user_id: str


class Account(WireStruct, frozen=True, kw_only=True):
    account_id: str
    created_at: datetime
    user_count: int
    status: Literal["active"] = "active"


class AccountRef(WireStruct, frozen=True):
    account_id: str


class AccountCreated(WireStruct, frozen=True, kw_only=True):
    account_id: str
    admin_user_id: str
    user_key: str
    """The key of the administrator. It is returned only here; the server stores its hash."""


class User(WireStruct, frozen=True, kw_only=True):
    account_id: str
    user_id: str
    role: TenantRole
    created_at: datetime
    internal_id: str
    """Identifies the user in stored data. The name of a removed user, given again, has another one."""
    key_count: int
    """The number of valid keys, which are neither revoked nor expired."""


class UserCreated(WireStruct, frozen=True, kw_only=True):
    account_id: str
    user_id: str
    role: TenantRole
    internal_id: str
    user_key: str
    """The key is returned only here; the server stores its hash."""


class Key(WireStruct, frozen=True, kw_only=True):
    """The properties of a key, without the key itself."""

    key_id: str
    user_id: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """The time of the last use, accurate to the minute."""


class KeyCreated(WireStruct, frozen=True, kw_only=True):
    key_id: str
    user_key: str
    """The key is returned only here; the server stores its hash."""
    expires_at: datetime | None


OPERATOR = Principal("_operator", "operator", "root")
"""The principal of the root key, if it does not act on behalf of a user."""
