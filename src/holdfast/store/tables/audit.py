"""The audit log. A record is written in the transaction of the action that it describes."""

from holdfast.model.identity import AuditRecord, Principal
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros


def record(tx: Tx, id: str, principal: Principal, action: str, resource: str, now: int) -> None:
    tx.execute(
        "INSERT INTO audit (account_id, id, at, user_id, role, action, resource) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tx.account, id, now, principal.user_id, principal.role, action, resource),
    )


def page(tx: Tx, limit: int, before: str | None) -> list[AuditRecord]:
    """List audit records, newest first, older than the id `before`."""
    before_condition, before_params = ("", []) if before is None else (" AND id < ?", [before])
    rows = tx.all(
        "SELECT id, at, user_id, role, action, resource FROM audit"
        f" WHERE account_id = ?{before_condition} ORDER BY id DESC LIMIT ?",
        (tx.account, *before_params, limit),
    )
    return [
        AuditRecord(id=row[0], at=from_micros(row[1]), user_id=row[2], role=row[3], action=row[4], resource=row[5])
        for row in rows
    ]
