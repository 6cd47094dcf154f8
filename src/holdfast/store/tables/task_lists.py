"""Lists and counts of tasks."""

from collections.abc import Collection

from holdfast.store.access.grants import OF_GRANTEE, Grantee
from holdfast.store.database import NOW, Tx
from holdfast.store.tables.tasks import COLUMNS, IS_OPEN, OPEN_STATUSES, StoredTask, is_one_of

_READABLE = (
    f"SELECT 1 FROM grants g WHERE {OF_GRANTEE} AND g.rights % 2 = 1 AND g.log_id = CASE"
    " WHEN t.order_key LIKE 'log:' || '_%' THEN CAST(SUBSTR(t.order_key, 5) AS bigint) END"
)
"""The grants to read the session of the task `t`."""


def page(
    tx: Tx,
    grantee: Grantee | None,
    *,
    kind: str | None,
    status: str | None,
    resource_id: str | None,
    kinds: Collection[str] | None,
    limit: int,
) -> list[StoredTask]:
    """List tasks of `kinds`, newest first: those of the grantee's sessions, and of sessions that the grantee may read.

    Without a grantee, the tasks of all accounts, only for the operator.
    """
    where, params = ["TRUE"], list[str]()
    if grantee is not None:
        where = ["account_id = ?", f"(user_id = ? OR EXISTS ({_READABLE}))"]
        params = [tx.account, grantee.internal_id, tx.account, grantee.internal_id, grantee.agent_id]
    if kinds is not None:
        where.append(is_one_of("kind", kinds))
        params += kinds
    for column, value in (("kind", kind), ("resource_id", resource_id)):
        if value is not None:
            where.append(f"{column} = ?")
            params.append(value)
    if status is not None:
        where.append("status = ?")
        params.append(status)
    if status in OPEN_STATUSES:
        where.append(IS_OPEN)
    table = "all_tasks" if status in {None, "completed"} else "tasks"
    rows = tx.all(
        f"SELECT {COLUMNS}, {NOW} FROM {table} AS t WHERE {' AND '.join(where)} ORDER BY task_id DESC LIMIT ?",
        (*params, limit),
    )
    return [StoredTask(*row) for row in rows]


def counts(tx: Tx, account_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
    """Count open tasks by status: of a user, of an account, or of all accounts."""
    where, params = [IS_OPEN], list[str]()
    for column, value in (("account_id", account_id), ("user_id", user_id)):
        if value is not None:
            where.append(f"{column} = ?")
            params.append(value)
    return dict(tx.all(f"SELECT status, COUNT(*) FROM tasks WHERE {' AND '.join(where)} GROUP BY status", params))


def counts_by_kind(tx: Tx, account_id: str | None) -> dict[str, dict[str, int]]:
    """Count open tasks by kind and status: of an account, or of all accounts."""
    where, params = ("", []) if account_id is None else (" AND account_id = ?", [account_id])
    by_kind: dict[str, dict[str, int]] = {}
    for kind, status, count in tx.all(
        f"SELECT kind, status, COUNT(*) FROM tasks WHERE {IS_OPEN}{where} GROUP BY kind, status", params
    ):
        by_kind.setdefault(kind, {})[status] = count
    return by_kind
