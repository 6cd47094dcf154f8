"""Who may ask for what, and the record that they did."""

from typing import Any

from holdfast.engine.gate.rule import CallContext
from holdfast.errors import PermissionDeniedError
from holdfast.model.identity import OPERATOR, AccessRole, Principal
from holdfast.ops.table import Entry
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.tables import accounts, audit

RANK: dict[AccessRole, int] = {"user": 0, "admin": 1, "root": 2}


def allow(principal: Principal, entry: Entry, name: str) -> None:
    """Refuse a caller whose role does not reach, before anything is spent."""
    if RANK[principal.role] < RANK[entry.role]:
        raise PermissionDeniedError(
            f"{name} needs the role {entry.role}; {principal.user_id} of {principal.account_id} has {principal.role}",
            required=entry.role,
            role=principal.role,
        )


def account_of(principal: Principal, entry: Entry, op: Any) -> str:
    """The account in whose name the transaction runs: the caller's, unless an operator names another."""
    if entry.scope == "all_accounts" or (entry.scope == "tenant_or_operator" and principal == OPERATOR):
        return EVERY_ACCOUNT
    if entry.scope != "account":
        return principal.account_id
    named: str = op.account_id
    if named != principal.account_id and principal.role != "root":
        raise PermissionDeniedError(
            f"{principal.user_id} of {principal.account_id} cannot act on the account {named}; the operator can",
            role=principal.role,
        )
    return named


def require_account(tx: Tx, principal: Principal, context: CallContext) -> None:
    """The account must exist; the operator's own use of a name brings it into being."""
    if accounts.exists(tx, tx.account):
        return
    if principal.role != "root":
        raise PermissionDeniedError(f"there is no account {tx.account}; an operator can create it")
    if accounts.insert(tx, tx.account, context.now):
        record(tx, principal, "CreateAccount", tx.account, context)


def record(tx: Tx, principal: Principal, action: str, resource: str, context: CallContext) -> None:
    """The audit line, in the account that it is about; it commits or vanishes with the deed.

    What an operator does across accounts stands in a book of its own: it outlives the account it was done to.
    """
    audit.record(tx, context.ids.new("aud"), principal, action, resource, context.now)


def resource_of(op: Any, result: Any) -> str:
    """What an operation was about, for the audit."""
    for field in ("session_id", "key_id", "user_id", "account_id"):
        value = getattr(result, field, None) or getattr(op, field, None)
        if value:
            return str(value)
    return ""
