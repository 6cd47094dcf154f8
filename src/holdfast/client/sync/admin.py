"""Client methods for accounts, users, keys and audit records."""

from typing import Unpack

from holdfast.client.sync.transport import Transport
from holdfast.model.audit import AuditErased, AuditPage, AuditQuery
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
from holdfast.model.tasks import ReembeddingStarted
from holdfast.ops.administration import (
    CreateAccount,
    CreateKey,
    CreateUser,
    DeleteAccount,
    DeleteUser,
    GetAccount,
    GetUser,
    ListAccounts,
    ListKeys,
    ListUsers,
    RevokeKey,
    RotateKey,
    SetRole,
)
from holdfast.ops.audit import EraseAudit, ListAudit, ListOperatorAudit
from holdfast.ops.vectors import ReembedDocuments


class Admin:
    """Administration. Operators (role `root`) may call every method; administrators only those on their own account."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_account(self, account_id: str, admin_user_id: str = "admin") -> AccountCreated:
        """Create an account and its first administrator. Returns the administrator's key, which is shown only once."""
        return self._transport.call(CreateAccount(account_id=account_id, admin_user_id=admin_user_id))

    def list_accounts(
        self, *, name: str | None = None, limit: int | None = None, page: int | None = None
    ) -> list[Account]:
        """List all accounts, or those whose id contains `name`. With `limit`, one `page` of them, counted from 1."""
        return self._transport.call(ListAccounts(name=name, limit=limit, page=page))

    def get_account(self, account_id: str) -> Account:
        """Return an account."""
        return self._transport.call(GetAccount(account_id=account_id))

    def delete_account(self, account_id: str) -> AccountRef:
        """Delete an account with all its users, keys, sessions, messages and audit records."""
        return self._transport.call(DeleteAccount(account_id=account_id))

    def reembed(self) -> ReembeddingStarted:
        """Embed all documents of the caller's account with the configured embedder, in the background.

        Pass the `task_id` of the result to `wait_for_task`. Searches use the old vectors until all are replaced.
        """
        return self._transport.call(ReembedDocuments())

    def create_user(
        self,
        account_id: str,
        user_id: str,
        role: TenantRole = "user",
        *,
        expires_in_seconds: int | None = None,
        internal_id: str | None = None,
    ) -> UserCreated:
        """Create a user. Returns the user's key, which is shown only once.

        Without `expires_in_seconds` the key does not expire. With the `internal_id` of a removed user, the new user
        gets the sessions of that user.
        """
        op = CreateUser(
            account_id=account_id,
            user_id=user_id,
            role=role,
            expires_in_seconds=expires_in_seconds,
            internal_id=internal_id,
        )
        return self._transport.call(op)

    def list_users(
        self,
        account_id: str,
        *,
        name: str | None = None,
        role: TenantRole | None = None,
        limit: int | None = None,
        page: int | None = None,
    ) -> list[User]:
        """List the users of an account: all, or those with a role, or whose id contains `name`.

        With `limit`, one `page` of them, counted from 1.
        """
        return self._transport.call(ListUsers(account_id=account_id, name=name, role=role, limit=limit, page=page))

    def get_user(self, account_id: str, user_id: str) -> User:
        """Return a user of an account."""
        return self._transport.call(GetUser(account_id=account_id, user_id=user_id))

    def delete_user(self, account_id: str, user_id: str) -> User:
        """Delete a user and all the user's keys.

        The user's sessions are kept. The name, given again, does not open them; `create_user` with the `internal_id`
        of the returned user does.
        """
        return self._transport.call(DeleteUser(account_id=account_id, user_id=user_id))

    def set_role(self, account_id: str, user_id: str, role: TenantRole) -> User:
        """Change a user's role to `user`, `auditor` or `admin`."""
        return self._transport.call(SetRole(account_id=account_id, user_id=user_id, role=role))

    def rotate_key(self, account_id: str, user_id: str, *, expires_in_seconds: int | None = None) -> KeyCreated:
        """Create a new key for a user and revoke all the user's other keys. The key is shown only once."""
        op = RotateKey(account_id=account_id, user_id=user_id, expires_in_seconds=expires_in_seconds)
        return self._transport.call(op)

    def create_key(self, account_id: str, user_id: str, *, expires_in_seconds: int | None = None) -> KeyCreated:
        """Create an additional key for a user. The key is shown only once."""
        op = CreateKey(account_id=account_id, user_id=user_id, expires_in_seconds=expires_in_seconds)
        return self._transport.call(op)

    def list_keys(self, account_id: str, user_id: str) -> list[Key]:
        """List a user's keys: their ids and times, not the keys themselves."""
        return self._transport.call(ListKeys(account_id=account_id, user_id=user_id))

    def revoke_key(self, account_id: str, user_id: str, key_id: str) -> Key:
        """Revoke a key, so that it no longer works."""
        return self._transport.call(RevokeKey(account_id=account_id, user_id=user_id, key_id=key_id))

    def list_audit(self, **wanted: Unpack[AuditQuery]) -> AuditPage:
        """List the audit lines of the caller's account, newest first.

        Select them by `resource`, `user_id`, `action`, `outcome`, `since` and `until`. A page has up to `limit` lines;
        to get the next one, pass the page's `next_cursor` as `cursor`. `resource` also finds lines that name more, such
        as `chat_001 rights=read`. `since` is included, `until` is not.
        """
        return self._transport.call(ListAudit(**wanted))

    def list_operator_audit(self, **wanted: Unpack[AuditQuery]) -> AuditPage:
        """List the audit lines of operators, such as the creation and deletion of accounts, newest first."""
        return self._transport.call(ListOperatorAudit(**wanted))

    def erase_audit(self, ids: list[str]) -> AuditErased:
        """Erase the content of audit lines of the caller's account. The chain can still be verified.

        A line of the audit log records the erasure.
        """
        return self._transport.call(EraseAudit(ids=ids))
