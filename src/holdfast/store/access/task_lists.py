"""Lists and counts of tasks."""

from collections.abc import Collection

from holdfast.store.access import grants
from holdfast.store.access.grants import OF_GRANTEE, Grantee
from holdfast.store.database import NOW, Tx
from holdfast.store.tables.tasks import COLUMNS, IS_OPEN, OPEN_STATUSES, StoredTask, is_one_of

_SHARED = (
    f"account_id = ? AND user_id <> ? AND (SELECT TRUE FROM grants g WHERE {OF_GRANTEE} AND g.rights % 4 > 0"
    " AND g.log_id = CASE WHEN t.order_key LIKE 'log:' || '_%' THEN CAST(SUBSTR(t.order_key, 5) AS bigint) END)"
)
"""The tasks `t` of sessions of others that the grantee may read or write.

It has a subquery and no join, so that the databases go through the tasks in their order.
"""

MAX_DONE = 10_000
"""How many of the latest tasks are looked at to count completed ones."""
_RETRIES = "SUM(CASE WHEN attempts > 1 THEN attempts - 1 ELSE 0 END)"


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
    where, params = [], list[str]()
    if kinds is not None:
        where.append(is_one_of("kind", kinds))
        params += kinds
    for column, value in (("kind", kind), ("resource_id", resource_id), ("status", status)):
        if value is not None:
            where.append(f"{column} = ?")
            params.append(value)
    if status in OPEN_STATUSES:
        where.append(IS_OPEN)
    is_open = status is not None and status != "completed"
    table = "tasks" if is_open or (grantee is not None and not _has_old_tasks(tx)) else "all_tasks"
    select = f"SELECT {COLUMNS}, {NOW} FROM {table} AS t WHERE {{}} ORDER BY task_id DESC LIMIT ?"

    def read(scope: str, *scope_params: str) -> list[StoredTask]:
        statement = select.format(" AND ".join([scope, *where]))
        return [StoredTask(*row) for row in tx.all(statement, (*scope_params, *params, limit))]

    if grantee is None:
        return read("TRUE")
    # One statement for shared and one for own tasks, so that each uses an index. A page of shared ones is likely to be
    # full for users with many; then the own ones that are older need not be read.
    key = (tx.account, grantee.internal_id)
    shared = read(_SHARED, *key, *key, grantee.agent_id) if grants.has_any(tx, grantee) else []
    oldest = shared[-1].task_id if len(shared) == limit else ""
    own = read("account_id = ? AND user_id = ? AND task_id > ?", *key, oldest)
    return sorted([*shared, *own], key=lambda task: task.task_id, reverse=True)[:limit]


def _has_old_tasks(tx: Tx) -> bool:
    """Whether a backfill has tasks of the account to move yet. The view with these tasks cannot be read in order."""
    return tx.one("SELECT 1 FROM old_tasks WHERE account_id = ? LIMIT 1", (tx.account,)) is not None


def counts(tx: Tx, account_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
    """Count open tasks by status: of a user, of an account, or of all accounts."""
    where, params = _scope(account_id, user_id)
    return dict(tx.all(f"SELECT status, COUNT(*) FROM tasks WHERE {IS_OPEN}{where} GROUP BY status", params))


def counts_by_kind(tx: Tx, account_id: str | None, user_id: str | None = None) -> dict[str, dict[str, int]]:
    """Count open tasks by kind and status: of a user, of an account, or of all accounts.

    The status `retried` has the number of attempts that were not the first of their task.
    """
    where, params = _scope(account_id, user_id)
    by_kind: dict[str, dict[str, int]] = {}
    for kind, status, count, retries in tx.all(
        f"SELECT kind, status, COUNT(*), {_RETRIES} FROM tasks WHERE {IS_OPEN}{where} GROUP BY kind, status", params
    ):
        counted = by_kind.setdefault(kind, {})
        counted[status] = count
        counted["retried"] = counted.get("retried", 0) + int(retries)
    return by_kind


def done_by_kind(tx: Tx, account_id: str | None, user_id: str | None = None) -> dict[str, tuple[int, int]]:
    """Count the completed tasks among the latest `MAX_DONE`, and their retries, by kind."""
    where, params = _scope(None, user_id)
    if account_id is None:
        latest = "SELECT kind, attempts FROM tasks WHERE status = 'completed' LIMIT ?"
        latest_params: list[str | int] = [MAX_DONE]
    else:
        tasks = "SELECT kind, attempts, status, user_id FROM tasks WHERE account_id = ? ORDER BY task_id DESC LIMIT ?"
        latest = f"SELECT kind, attempts FROM ({tasks}) AS latest WHERE status = 'completed'{where}"
        latest_params = [account_id, MAX_DONE, *params]
    rows = tx.all(f"SELECT kind, COUNT(*), {_RETRIES} FROM ({latest}) AS done GROUP BY kind", latest_params)
    return {kind: (count, int(retries)) for kind, count, retries in rows}


def latest_errors(tx: Tx, account_id: str | None, user_id: str | None, limit: int) -> list[tuple[str, str, str]]:
    """Return the kind, the error code and the error of the tasks that failed last."""
    where, params = _scope(account_id, user_id)
    rows = tx.all(
        "SELECT kind, COALESCE(error_code, ''), COALESCE(error, '') FROM tasks"
        f" WHERE {IS_OPEN} AND status = 'failed'{where} ORDER BY task_id DESC LIMIT ?",
        (*params, limit),
    )
    return [(kind, code, error) for kind, code, error in rows]


def _scope(account_id: str | None, user_id: str | None) -> tuple[str, list[str]]:
    """Return conditions that select the tasks of a user or of an account, each after AND, and their parameters."""
    chosen = {"account_id": account_id, "user_id": user_id}
    given = {column: value for column, value in chosen.items() if value is not None}
    return "".join(f" AND {column} = ?" for column in given), list(given.values())
