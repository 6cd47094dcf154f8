"""Operations of operators and administrators: accounts, users and keys."""

from typing import Annotated

import msgspec

from holdfast.model.access import InternalId
from holdfast.model.base import Name
from holdfast.model.identity import (
    Account,
    AccountCreated,
    AccountRef,
    Key,
    KeyCreated,
    TenantRole,
    User,
    UserCreated,
)
from holdfast.ops.table import Operation, operation

KeyId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$(?!\n)", description="use a key_id from the list of keys")]
LifetimeSeconds = Annotated[
    int, msgspec.Meta(ge=1, le=3_200_000_000, description="use 1 to 3200000000 seconds, a century")
]
NamePart = Annotated[str, msgspec.Meta(max_length=128)]
ListLimit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
PageNumber = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]

ACCOUNT = "/admin/accounts/{account_id}"
USER = f"{ACCOUNT}/users/{{user_id}}"


@operation("POST /admin/accounts", role="root", audit="{account_id} admin={admin_user_id}", scope="all_accounts")
class CreateAccount(Operation[AccountCreated], frozen=True, kw_only=True):
    """Create an account with its first administrator. The administrator's key is returned only here."""

    account_id: Name
    admin_user_id: Name = "admin"


@operation("GET /admin/accounts", role="root", scope="all_accounts", answer="bounded")
class ListAccounts(Operation[list[Account]], frozen=True, kw_only=True):
    """List all accounts by id, or those whose id contains `name` and `query`, ignoring case.

    With `limit`, one page of them; `page` begins with 1.
    """

    name: NamePart | None = None
    query: NamePart | None = None
    limit: ListLimit | None = None
    page: PageNumber | None = None


@operation(f"GET {ACCOUNT}", role="admin", scope="account")
class GetAccount(Operation[Account], frozen=True, kw_only=True):
    """Return an account."""

    account_id: Name


@operation(f"DELETE {ACCOUNT}", role="root", audit="{account_id}", scope="all_accounts")
class DeleteAccount(Operation[AccountRef], frozen=True, kw_only=True):
    """Delete an account with all its data: users, keys, sessions, messages and audit records."""

    account_id: Name


@operation(
    f"POST {ACCOUNT}/users",
    role="admin",
    audit="{user_id} role={role} internal_id={result.internal_id}",
    scope="account",
)
class CreateUser(Operation[UserCreated], frozen=True, kw_only=True):
    """Create a user. The user's key is returned only here.

    With the `internal_id` of a removed user, the new user gets the sessions of that user.
    """

    account_id: Name
    user_id: Name
    role: TenantRole = "user"
    expires_in_seconds: LifetimeSeconds | None = None
    internal_id: InternalId | None = None


@operation(f"GET {ACCOUNT}/users", role="admin", scope="account", answer="bounded")
class ListUsers(Operation[list[User]], frozen=True, kw_only=True):
    """List the users of an account by id, or those with a role, or whose id contains `name` and `query`.

    With `limit`, one page of them; `page` begins with 1.
    """

    account_id: Name
    name: NamePart | None = None
    query: NamePart | None = None
    role: TenantRole | None = None
    limit: ListLimit | None = None
    page: PageNumber | None = None


@operation(f"GET {USER}", role="admin", scope="account")
class GetUser(Operation[User], frozen=True, kw_only=True):
    """Return a user of an account."""

    account_id: Name
    user_id: Name


@operation(f"DELETE {USER}", role="admin", audit="{user_id} internal_id={result.internal_id}", scope="account")
class DeleteUser(Operation[User], frozen=True, kw_only=True):
    """Delete a user and all keys of the user. The sessions are kept, but the name, given again, does not open them."""

    account_id: Name
    user_id: Name


@operation(f"PUT {USER}/role", role="admin", audit="{user_id} role={role}", scope="account")
class SetRole(Operation[User], frozen=True, kw_only=True):
    """Change the role of a user."""

    account_id: Name
    user_id: Name
    role: TenantRole


@operation(f"POST {USER}/key", role="admin", audit="{user_id} key={result.key_id}", scope="account")
class RotateKey(Operation[KeyCreated], frozen=True, kw_only=True):
    """Create a new key for a user and revoke all other keys of the user."""

    account_id: Name
    user_id: Name
    expires_in_seconds: LifetimeSeconds | None = None


@operation(f"POST {USER}/keys", role="admin", audit="{user_id} key={result.key_id}", scope="account")
class CreateKey(Operation[KeyCreated], frozen=True, kw_only=True):
    """Create an additional key for a user."""

    account_id: Name
    user_id: Name
    expires_in_seconds: LifetimeSeconds | None = None


@operation(f"GET {USER}/keys", role="admin", scope="account")
class ListKeys(Operation[list[Key]], frozen=True, kw_only=True):
    """List the keys of a user, without the keys themselves."""

    account_id: Name
    user_id: Name


@operation(f"DELETE {USER}/keys/{{key_id}}", role="admin", audit="{user_id} key={key_id}", scope="account")
class RevokeKey(Operation[Key], frozen=True, kw_only=True):
    """Revoke a key."""

    account_id: Name
    user_id: Name
    key_id: KeyId
