"""Administration of accounts, users and keys."""

from holdfast.engine.gate import keys
from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.errors import AlreadyExistsError, ConflictError, NotFoundError
from holdfast.model.access import INTERNAL_ID_SEPARATOR
from holdfast.model.identity import (
    Account,
    AccountCreated,
    AccountRef,
    Key,
    KeyCreated,
    Principal,
    User,
    UserCreated,
    require_unreserved,
)
from holdfast.model.uris import build_uri
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
from holdfast.store.access import accounts, user_ids, users
from holdfast.store.access.list_filter import ListFilter
from holdfast.store.database import Tx
from holdfast.store.tables.tree import relations
from holdfast.store.timestamps import from_micros

INTERNAL_ID_BYTES = 6


def _create_account(
    tx: Tx, _principal: Principal, op: CreateAccount, _prepared: None, context: CallContext
) -> AccountCreated:
    key = keys.new_key(op.account_id, context.ids)
    if not accounts.insert(tx, op.account_id, context.now):
        raise AlreadyExistsError(f"Account {op.account_id} already exists", resource=op.account_id, type="account")
    users.insert(tx, op.account_id, op.admin_user_id, "admin", context.now)
    users.insert_key(tx, op.account_id, key.key_id, op.admin_user_id, key.hash, context.now, None)
    return AccountCreated(account_id=op.account_id, admin_user_id=op.admin_user_id, user_key=key.text)


def _list_accounts(
    tx: Tx, _principal: Principal, op: ListAccounts, _prepared: None, _context: CallContext
) -> list[Account]:
    return accounts.list_accounts(tx, _wanted(op))


def _get_account(tx: Tx, _principal: Principal, _op: GetAccount, _prepared: None, _context: CallContext) -> Account:
    account = accounts.find(tx)
    if account is None:
        raise NotFoundError("account", tx.account)
    return account


def _wanted(op: ListAccounts | ListUsers) -> ListFilter:
    earlier_pages = (op.page or 1) - 1
    limit = 0 if op.limit is None and earlier_pages else op.limit  # without a limit, the first page has everything
    parts = tuple(part for part in (op.name, op.query) if part)
    role = op.role if isinstance(op, ListUsers) else None
    return ListFilter(name_parts=parts, role=role, limit=limit, offset=earlier_pages * (limit or 0))


def _delete_account(
    tx: Tx, principal: Principal, op: DeleteAccount, _prepared: None, _context: CallContext
) -> AccountRef:
    tx.allow_long_statements()  # all rows of the account, in one transaction
    if op.account_id == principal.account_id:
        raise ConflictError(
            f"Account {op.account_id} is your own; use another account to delete it",
            resource=op.account_id,
            type="account",
        )
    if not accounts.lock(tx, op.account_id):
        raise NotFoundError("account", op.account_id)
    accounts.delete(tx, op.account_id)
    return AccountRef(op.account_id)


def _create_user(tx: Tx, _principal: Principal, op: CreateUser, _prepared: None, context: CallContext) -> UserCreated:
    key = keys.new_key(op.account_id, context.ids)
    _require_account(tx)
    if not users.insert(tx, op.account_id, op.user_id, op.role, context.now):
        raise AlreadyExistsError(f"User {op.user_id} already exists", resource=op.user_id, type="user")
    if op.internal_id is not None:
        if not user_ids.restore(tx, op.internal_id, op.user_id, context.now):
            raise NotFoundError("removed user", op.internal_id)
        relations.move(tx, _removed_uri(op.internal_id), build_uri(["user", op.user_id]))
        context.forget_users()
    expires_at = _expires_at(op.expires_in_seconds, context.now)
    users.insert_key(tx, op.account_id, key.key_id, op.user_id, key.hash, context.now, expires_at)
    return UserCreated(
        account_id=op.account_id,
        user_id=op.user_id,
        role=op.role,
        internal_id=user_ids.current(tx, op.user_id),
        user_key=key.text,
    )


def _list_users(tx: Tx, _principal: Principal, op: ListUsers, _prepared: None, context: CallContext) -> list[User]:
    _require_account(tx)
    return users.list_users(tx, context.now, _wanted(op))


def _get_user(tx: Tx, _principal: Principal, op: GetUser, _prepared: None, context: CallContext) -> User:
    return _require_user(tx, op.user_id, context, lock=False)


def _require_account(tx: Tx) -> None:
    if not accounts.exists(tx, tx.account):
        raise NotFoundError("account", tx.account)


def _require_user(tx: Tx, user_id: str, context: CallContext, *, lock: bool = True) -> User:
    user = users.find(tx, user_id, context.now, lock=lock)
    if user is None:
        raise NotFoundError("user", user_id)
    return user


def _delete_user(tx: Tx, _principal: Principal, op: DeleteUser, _prepared: None, context: CallContext) -> User:
    user = _require_user(tx, op.user_id, context)
    users.delete(tx, op.user_id)
    relations.move(tx, build_uri(["user", op.user_id]), _removed_uri(user_ids.current(tx, op.user_id)))
    user_ids.retire(tx, op.user_id, _new_internal_id(op.user_id, context), context.now)
    context.forget_users()
    return user


def _removed_uri(internal_id: str) -> str:
    """Return where the relations of a removed user are kept: an address that nobody can read."""
    return build_uri(["removed", internal_id])


def _new_internal_id(user_id: str, context: CallContext) -> str:
    return f"{user_id}{INTERNAL_ID_SEPARATOR}{context.ids.secret_bytes(INTERNAL_ID_BYTES).hex()}"


def _set_role(tx: Tx, _principal: Principal, op: SetRole, _prepared: None, context: CallContext) -> User:
    _require_user(tx, op.user_id, context)
    users.set_role(tx, op.user_id, op.role)
    return _require_user(tx, op.user_id, context)


def _create_key(
    tx: Tx, _principal: Principal, op: CreateKey | RotateKey, _prepared: None, context: CallContext
) -> KeyCreated:
    key = keys.new_key(op.account_id, context.ids)
    _require_user(tx, op.user_id, context)
    expires_at = _expires_at(op.expires_in_seconds, context.now)
    if isinstance(op, RotateKey):
        users.delete_keys(tx, op.user_id)
    users.insert_key(tx, op.account_id, key.key_id, op.user_id, key.hash, context.now, expires_at)
    return KeyCreated(
        key_id=key.key_id,
        user_key=key.text,
        expires_at=None if expires_at is None else from_micros(expires_at),
    )


def _list_keys(tx: Tx, _principal: Principal, op: ListKeys, _prepared: None, context: CallContext) -> list[Key]:
    _require_user(tx, op.user_id, context, lock=False)
    return users.list_keys(tx, op.user_id)


def _revoke_key(tx: Tx, _principal: Principal, op: RevokeKey, _prepared: None, context: CallContext) -> Key:
    _require_user(tx, op.user_id, context)
    for key in users.list_keys(tx, op.user_id):
        if key.key_id == op.key_id:
            users.delete_key(tx, op.key_id)
            return key
    raise NotFoundError("key", op.key_id)


def _expires_at(seconds: int | None, now: int) -> int | None:
    return None if seconds is None else now + seconds * 1_000_000


def _check_names(_context: CallContext, op: CreateAccount | CreateUser) -> None:
    """Refuse names of users that are folders of the tree."""
    if isinstance(op, CreateAccount):
        require_unreserved("admin_user_id", op.admin_user_id)
    else:
        require_unreserved("user_id", op.user_id)


HANDLERS: dict[type, OperationHandler] = {
    CreateAccount: OperationHandler(_create_account, writes=always, check=_check_names),
    ListAccounts: OperationHandler(_list_accounts),
    GetAccount: OperationHandler(_get_account),
    GetUser: OperationHandler(_get_user),
    DeleteAccount: OperationHandler(_delete_account, writes=always),
    CreateUser: OperationHandler(_create_user, writes=always, check=_check_names),
    ListUsers: OperationHandler(_list_users),
    DeleteUser: OperationHandler(_delete_user, writes=always),
    SetRole: OperationHandler(_set_role, writes=always),
    RotateKey: OperationHandler(_create_key, writes=always),
    CreateKey: OperationHandler(_create_key, writes=always),
    ListKeys: OperationHandler(_list_keys),
    RevokeKey: OperationHandler(_revoke_key, writes=always),
}
