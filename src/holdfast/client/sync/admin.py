"""The client's side of accounts, users and keys. `aadmin.py` is its asynchronous twin."""

from holdfast.client.sync.transport import Transport
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
from holdfast.ops.administration import (
    CreateAccount,
    CreateKey,
    CreateUser,
    DeleteAccount,
    DeleteUser,
    ListAccounts,
    ListAudit,
    ListKeys,
    ListOperatorAudit,
    ListUsers,
    RevokeKey,
    RotateKey,
    SetRole,
)


class Admin:
    """For operators, who may do all of it, and administrators, who may do what is about their own account."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_account(self, account_id: str, admin_user_id: str = "admin") -> AccountCreated:
        """A new tenant and its first administrator, with the key that is shown this once."""
        return self._transport.call(CreateAccount(account_id=account_id, admin_user_id=admin_user_id))

    def list_accounts(self) -> list[Account]:
        return self._transport.call(ListAccounts())

    def delete_account(self, account_id: str) -> AccountRef:
        """Delete an account with everything in it."""
        return self._transport.call(DeleteAccount(account_id=account_id))

    def create_user(
        self, account_id: str, user_id: str, role: TenantRole = "user", *, expires_in_seconds: int | None = None
    ) -> UserCreated:
        """A new user, with the key that is shown this once."""
        op = CreateUser(account_id=account_id, user_id=user_id, role=role, expires_in_seconds=expires_in_seconds)
        return self._transport.call(op)

    def list_users(self, account_id: str) -> list[User]:
        return self._transport.call(ListUsers(account_id=account_id))

    def delete_user(self, account_id: str, user_id: str) -> User:
        """Remove a user and all their keys. Their sessions stay until they are deleted."""
        return self._transport.call(DeleteUser(account_id=account_id, user_id=user_id))

    def set_role(self, account_id: str, user_id: str, role: TenantRole) -> User:
        return self._transport.call(SetRole(account_id=account_id, user_id=user_id, role=role))

    def rotate_key(self, account_id: str, user_id: str, *, expires_in_seconds: int | None = None) -> KeyCreated:
        """A new key for a user; all they had before stop working."""
        op = RotateKey(account_id=account_id, user_id=user_id, expires_in_seconds=expires_in_seconds)
        return self._transport.call(op)

    def create_key(self, account_id: str, user_id: str, *, expires_in_seconds: int | None = None) -> KeyCreated:
        """One more key for a user, beside those they have."""
        op = CreateKey(account_id=account_id, user_id=user_id, expires_in_seconds=expires_in_seconds)
        return self._transport.call(op)

    def list_keys(self, account_id: str, user_id: str) -> list[Key]:
        return self._transport.call(ListKeys(account_id=account_id, user_id=user_id))

    def revoke_key(self, account_id: str, user_id: str, key_id: str) -> Key:
        return self._transport.call(RevokeKey(account_id=account_id, user_id=user_id, key_id=key_id))

    def list_audit(self, *, limit: int = 100, cursor: str | None = None) -> AuditPage:
        """The account's audit records, newest first."""
        return self._transport.call(ListAudit(limit=limit, cursor=cursor))

    def list_operator_audit(self, *, limit: int = 100, cursor: str | None = None) -> AuditPage:
        """What operators did to accounts as a whole, newest first."""
        return self._transport.call(ListOperatorAudit(limit=limit, cursor=cursor))
