"""Access control: the role and the account of a call, and its audit record."""

from typing import Any, TypeVar, get_args

from msgspec.structs import asdict

from holdfast.engine.gate import audit_lines
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.errors import NotFoundError, PermissionDeniedError
from holdfast.model.identity import OPERATOR, AccessRole, Principal
from holdfast.ops.table import Operation, OperationEntry, RequiredRole
from holdfast.store.access import accounts, audit
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.tables import tasks

R = TypeVar("R")

ALLOWED_ROLES: dict[RequiredRole, frozenset[AccessRole]] = {
    "any": frozenset(get_args(AccessRole)),
    "guest": frozenset({"guest", "user", "admin", "root"}),
    "user": frozenset({"user", "admin", "root"}),
    "auditor": frozenset({"auditor", "admin", "root"}),
    "admin": frozenset({"admin", "root"}),
    "root": frozenset({"root"}),
}
"""The roles that may call an operation, by the role that the operation needs."""


def require_role(principal: Principal, entry: OperationEntry, name: str) -> None:
    """Refuse a caller whose role may not call the operation, before any work is done for it."""
    if principal.role not in ALLOWED_ROLES[entry.role]:
        required = "user" if entry.role == "guest" else entry.role  # nobody can be given the role guest
        raise PermissionDeniedError(
            f"{name} needs the role {required}; {principal.user_id} of {principal.account_id} has {principal.role}",
            required=required,
            role=principal.role,
        )


def account_of(principal: Principal, entry: OperationEntry, op: Any) -> str | None:
    """The account of the transaction: the caller's own, unless an operator names another.

    None if an operator names a task: its account must be read from the database.
    """
    if entry.scope == "all_accounts" or (entry.scope == "tenant_or_operator" and principal == OPERATOR):
        return EVERY_ACCOUNT if getattr(op, "task_id", None) is None else None
    if entry.scope != "account":
        return principal.account_id
    named: str = op.account_id
    if named != principal.account_id and principal.role != "root":
        raise PermissionDeniedError(
            f"{principal.user_id} of {principal.account_id} cannot act on the account {named}; the operator can",
            role=principal.role,
        )
    return named


def find_account_of_task(db: Database, op: Any) -> str:
    """Read the account of the task that an operator names. The operation runs in that account."""
    task_id: str = op.task_id
    account = db.read(EVERY_ACCOUNT, lambda tx: tasks.find_account(tx, task_id))
    if account is None:
        raise NotFoundError("task", task_id)
    return account


def ensure_account(tx: Tx, principal: Principal, context: CallContext) -> None:
    """Raise an error if the account does not exist. If the caller is an operator, create it instead."""
    if accounts.exists(tx, tx.account):
        return
    if principal.role != "root":
        raise PermissionDeniedError(f"there is no account {tx.account}; an operator can create it")
    if accounts.insert(tx, tx.account, context.now):
        record_audit(tx, principal, "CreateAccount", tx.account, context)


def record_audit(tx: Tx, principal: Principal, action: str, resource: str, context: CallContext) -> None:
    """Write an audit record in the transaction of the action: both commit, or neither does.

    The record belongs to the account of the transaction. Operations on all accounts have an audit log of their own,
    which survives the deletion of the account they act on.
    """
    version = audit_lines.version_of(audit_lines.noted_session())
    line = audit_lines.new_line(principal, action, resource, context.ids, context.now, context.origin, version=version)
    if not audit.record(tx, line, audit_lines.new_salt(context.ids)):
        context.signals.has_unsealed_lines = True


def audited_resource(audit: str, principal: Principal, op: Operation[R], result: R) -> str:
    """Fill in what the operation declares for its audit record, and the owner of a session of another user."""
    session, resource = audit_lines.noted_session(), audit.format(result=result, **asdict(op))
    if session is None or session.owner_id == principal.internal_id:
        return resource
    return f"{resource} owner={session.owner_id}"
