"""Who may ask for what, and the record that they did."""

from typing import Any

from holdfast.checking import conform, introduce
from holdfast.errors import PermissionDeniedError
from holdfast.model import AccessRole, Principal
from holdfast.ops import Entry
from holdfast.store import accounts
from holdfast.store.database import Tx

introduce(Principal)

RANK: dict[AccessRole, int] = {"user": 0, "admin": 1, "root": 2}


def allow(who: Principal, entry: Entry, name: str) -> None:
    """Refuse a caller whose role does not reach, before anything is spent."""
    if RANK[who.role] < RANK[entry.role]:
        raise PermissionDeniedError(
            f"{name} needs the role {entry.role}; {who.user_id} of {who.account_id} has {who.role}",
            required=entry.role,
            role=who.role,
        )


def principal(account: str, user: str, role: str) -> Principal:
    """A checked principal: its names go into URIs and its account into every WHERE."""
    return conform({"account_id": account, "user_id": user, "role": role}, Principal)


def require_account(tx: Tx, who: Principal, now: int) -> None:
    """The account must exist; the operator's own use of a name brings it into being."""
    if accounts.exists(tx, tx.account):
        return
    if who.role != "root":
        raise PermissionDeniedError(f"there is no account {tx.account}; an operator can create it")
    accounts.insert(tx, tx.account, now)


def resource_of(op: Any, result: Any) -> str:
    """What an operation was about, for the audit."""
    for field in ("session_id", "account_id"):
        value = getattr(result, field, None) or getattr(op, field, None)
        if value:
            return str(value)
    return ""
