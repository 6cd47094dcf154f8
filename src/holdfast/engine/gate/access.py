"""Who may ask for what, and the record that they did."""

from typing import Any

from holdfast.engine.gate.rule import Moment
from holdfast.errors import PermissionDeniedError
from holdfast.model.identity import OPERATOR, AccessRole, Principal
from holdfast.ops.table import Entry
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.store.tables import accounts, audit

RANK: dict[AccessRole, int] = {"user": 0, "admin": 1, "root": 2}


def allow(who: Principal, entry: Entry, name: str) -> None:
    """Refuse a caller whose role does not reach, before anything is spent."""
    if RANK[who.role] < RANK[entry.role]:
        raise PermissionDeniedError(
            f"{name} needs the role {entry.role}; {who.user_id} of {who.account_id} has {who.role}",
            required=entry.role,
            role=who.role,
        )


def account_of(who: Principal, entry: Entry, op: Any) -> str:
    """The account in whose name the transaction runs: the caller's, unless an operator names another."""
    if entry.scope == "all_accounts" or (entry.scope == "tenant_or_operator" and who == OPERATOR):
        return EVERY_ACCOUNT
    if entry.scope != "account":
        return who.account_id
    named: str = op.account_id
    if named != who.account_id and who.role != "root":
        raise PermissionDeniedError(
            f"{who.user_id} of {who.account_id} cannot act on the account {named}; the operator can", role=who.role
        )
    return named


def require_account(tx: Tx, who: Principal, moment: Moment) -> None:
    """The account must exist; the operator's own use of a name brings it into being."""
    if accounts.exists(tx, tx.account):
        return
    if who.role != "root":
        raise PermissionDeniedError(f"there is no account {tx.account}; an operator can create it")
    if accounts.insert(tx, tx.account, moment.now):
        record(tx, who, "CreateAccount", tx.account, moment)


def record(tx: Tx, who: Principal, action: str, resource: str, moment: Moment) -> None:
    """The audit line, in the account that it is about; it commits or vanishes with the deed.

    What an operator does across accounts stands in a book of its own: it outlives the account it was done to.
    """
    audit.record(tx, moment.ids.new("aud"), who, action, resource, moment.now)


def resource_of(op: Any, result: Any) -> str:
    """What an operation was about, for the audit."""
    for field in ("session_id", "key_id", "user_id", "account_id"):
        value = getattr(result, field, None) or getattr(op, field, None)
        if value:
            return str(value)
    return ""
