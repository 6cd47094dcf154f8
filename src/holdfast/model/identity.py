"""Who calls, on whose behalf, with which key; and the record of what they did."""

from datetime import datetime
from typing import Literal, get_args

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.model.base import WireStruct, require_name

AccessRole = Literal["user", "admin", "root"]
TenantRole = Literal["user", "admin"]
"""What a user of an account can be; root is the operator's."""


class Principal(msgspec.Struct, frozen=True):
    """Who calls. The account is the tenant; a user's sessions are private within it.

    It is checked when it is made, however it is made: its names go into URIs and its account into every WHERE.
    """

    account_id: str = "default"
    user_id: str = "default"
    role: AccessRole = "user"

    def __post_init__(self) -> None:
        require_name("account_id", self.account_id)
        require_name("user_id", self.user_id)
        if self.role not in get_args(AccessRole):
            raise InvalidArgumentError("role", f"{self.role!r} is not one of {', '.join(get_args(AccessRole))}")


class Identity(WireStruct, frozen=True):
    """Whom the gate takes the caller for."""

    account_id: str
    user_id: str
    role: AccessRole


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
    """The administrator's key. It is shown this once; only its hash is kept."""


class User(WireStruct, frozen=True, kw_only=True):
    account_id: str
    user_id: str
    role: TenantRole
    created_at: datetime
    key_count: int
    """Keys that work: neither revoked nor expired."""


class UserCreated(WireStruct, frozen=True, kw_only=True):
    account_id: str
    user_id: str
    role: TenantRole
    user_key: str
    """Shown this once; only its hash is kept."""


class Key(WireStruct, frozen=True, kw_only=True):
    """What is known of a key. The key itself is not."""

    key_id: str
    user_id: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""


class KeyCreated(WireStruct, frozen=True, kw_only=True):
    key_id: str
    user_key: str
    """Shown this once; only its hash is kept."""
    expires_at: datetime | None


class AuditRecord(WireStruct, frozen=True, kw_only=True):
    """Who did what to which resource; written in the transaction of the deed itself."""

    id: str
    at: datetime
    user_id: str
    role: AccessRole
    action: str
    resource: str


class AuditPage(WireStruct, frozen=True):
    records: list[AuditRecord]
    next_cursor: str | None


OPERATOR = Principal("_operator", "operator", "root")
"""Who holds the root key and speaks for nobody else."""
