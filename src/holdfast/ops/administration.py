"""What operators and administrators can ask: accounts, users, keys, the audit."""

from typing import Annotated

import msgspec

from holdfast.model.base import Name
from holdfast.model.identity import (
    Account,
    AccountCreated,
    AccountRef,
    AuditPage,
    Key,
    KeyCreated,
    TenantRole,
    User,
    UserCreated,
)
from holdfast.ops.table import Operation, operation

KeyId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$(?!\n)", description="use a key_id of the listing")]
Span = Annotated[int, msgspec.Meta(ge=1, le=3_200_000_000, description="use 1 to 3200000000 seconds, a century")]

ACCOUNT = "/admin/accounts/{account_id}"
USER = f"{ACCOUNT}/users/{{user_id}}"


@operation("POST /admin/accounts", role="root", audited=True, scope="all_accounts")
class CreateAccount(Operation[AccountCreated], frozen=True, kw_only=True):
    """A new tenant with its first administrator, whose key is shown this once."""

    account_id: Name
    admin_user_id: Name = "admin"


@operation("GET /admin/accounts", role="root", scope="all_accounts")
class ListAccounts(Operation[list[Account]], frozen=True, kw_only=True):
    pass


@operation(f"DELETE {ACCOUNT}", role="root", audited=True, scope="all_accounts")
class DeleteAccount(Operation[AccountRef], frozen=True, kw_only=True):
    """Deletes an account with everything in it: users, keys, sessions, messages, its audit."""

    account_id: Name


@operation(f"POST {ACCOUNT}/users", role="admin", audited=True, scope="account")
class CreateUser(Operation[UserCreated], frozen=True, kw_only=True):
    """A new user, whose key is shown this once."""

    account_id: Name
    user_id: Name
    role: TenantRole = "user"
    expires_in_seconds: Span | None = None


@operation(f"GET {ACCOUNT}/users", role="admin", scope="account")
class ListUsers(Operation[list[User]], frozen=True, kw_only=True):
    account_id: Name


@operation(f"DELETE {USER}", role="admin", audited=True, scope="account")
class DeleteUser(Operation[User], frozen=True, kw_only=True):
    """Removes a user and all their keys. Their sessions stay until they are deleted."""

    account_id: Name
    user_id: Name


@operation(f"PUT {USER}/role", role="admin", audited=True, scope="account")
class SetRole(Operation[User], frozen=True, kw_only=True):
    account_id: Name
    user_id: Name
    role: TenantRole


@operation(f"POST {USER}/key", role="admin", audited=True, scope="account")
class RotateKey(Operation[KeyCreated], frozen=True, kw_only=True):
    """A new key for a user. All keys they had before stop working."""

    account_id: Name
    user_id: Name
    expires_in_seconds: Span | None = None


@operation(f"POST {USER}/keys", role="admin", audited=True, scope="account")
class CreateKey(Operation[KeyCreated], frozen=True, kw_only=True):
    """One more key for a user, beside those they have."""

    account_id: Name
    user_id: Name
    expires_in_seconds: Span | None = None


@operation(f"GET {USER}/keys", role="admin", scope="account")
class ListKeys(Operation[list[Key]], frozen=True, kw_only=True):
    account_id: Name
    user_id: Name


@operation(f"DELETE {USER}/keys/{{key_id}}", role="admin", audited=True, scope="account")
class RevokeKey(Operation[Key], frozen=True, kw_only=True):
    account_id: Name
    user_id: Name
    key_id: KeyId


@operation("GET /audit", role="admin")
class ListAudit(Operation[AuditPage], frozen=True, kw_only=True):
    """The account's audit records, newest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: Name | None = None


@operation("GET /admin/audit", role="root", scope="all_accounts")
class ListOperatorAudit(Operation[AuditPage], frozen=True, kw_only=True):
    """What operators did to accounts as a whole, newest first; it outlives the accounts."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    cursor: Name | None = None
