"""Tasks: durable background work. A worker claims a task with a lease; a fence number invalidates older claims.

`old_tasks` has the completed tasks of databases before migration 5, until a backfill has moved them. The view
`all_tasks` has both.
"""

from collections.abc import Collection
from typing import TypeVar

import msgspec

from holdfast.model.summaries import Cost, TokenUsage
from holdfast.model.tasks import TaskStatus
from holdfast.store.database import NOW, Tx
from holdfast.store.tables import steps

P = TypeVar("P")

COLUMNS = (
    "account_id, task_id, user_id, kind, status, resource_id, subject, order_key, order_position, payload, stage,"
    " steps_done, steps_total, run_at, fence, attempts, failures, created_at, updated_at, worked, prompt_tokens,"
    " completion_tokens, total_tokens, cached_tokens, reasoning_tokens, embedding_tokens, result, error_code, error"
)
_BY_ID = "account_id = ? AND task_id = ?"
_HELD = f"{_BY_ID} AND fence = ? AND status = 'running'"
OPEN_STATUSES = ("pending", "running", "failed")
IS_OPEN = f"status IN {OPEN_STATUSES}"
"""The exact condition of the partial index on open tasks, so that the index is used."""


MAX_RUN_AT_ERROR = 60_000_000
"""A task that is due later than its lease or its longest wait, plus this time in microseconds, has a wrong time. A
database's clock that was set back, or the clock of a machine with an earlier version, leaves such tasks."""


class StoredTask(msgspec.Struct, frozen=True):
    account_id: str
    task_id: str
    user_id: str
    kind: str
    status: TaskStatus
    resource_id: str
    subject: str | None
    """The address that the task is about."""
    order_key: str | None
    """Tasks with one key run one after the other, by `order_position`, then `task_id`."""
    order_position: int
    payload: str
    """What the kind of the task needs, as JSON."""
    stage: str | None
    steps_done: int
    steps_total: int
    run_at: int | None
    """When the task is due, or when the lease of its worker ends, in the database's time."""
    fence: int
    attempts: int
    failures: int
    """Attempts that ended with an error. Attempts whose worker died are not included."""
    created_at: int
    updated_at: int
    worked: int
    """Time spent by workers, in microseconds."""
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    embedding_tokens: int
    result: str | None
    error_code: str | None
    error: str | None
    read_at: int = 0
    """The database's time when the row was read, for a task that is to be shown."""

    def decode_payload(self, payload_type: type[P]) -> P:
        return msgspec.json.decode(self.payload, type=payload_type)

    @property
    def usage(self) -> TokenUsage:
        """Tokens of language models that the task used."""
        return TokenUsage(
            self.prompt_tokens, self.completion_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens
        )


class Failure(msgspec.Struct, frozen=True):
    """The error code and the message of a failed attempt."""

    code: str
    message: str


class Claim(msgspec.Struct, frozen=True):
    """The right to work on a task until the lease expires. Another worker's later claim has a higher fence."""

    task: StoredTask

    @property
    def account(self) -> str:
        return self.task.account_id

    @property
    def key(self) -> tuple[str, str, int]:
        return self.account, self.task.task_id, self.task.fence


def order_key_of_log(log_id: int) -> str:
    """The ordering key of all tasks of the session that owns a log."""
    return f"log:{log_id}"


def log_of(task: StoredTask) -> int | None:
    """The log of the session that a task is about, or None."""
    prefix, _, log_id = (task.order_key or "").partition(":")
    return int(log_id) if prefix == "log" else None


def insert(tx: Tx, task: StoredTask, *, is_due: bool = False) -> None:
    """Insert a task. With `is_due`, it is due now."""
    values = {name: getattr(task, name) for name in COLUMNS.split(", ")}
    expressions = dict.fromkeys(values, "?")
    if is_due:
        expressions["run_at"] = NOW
        del values["run_at"]
    tx.execute(f"INSERT INTO tasks ({COLUMNS}) VALUES ({', '.join(expressions.values())})", [*values.values()])


def insert_or_restart(tx: Tx, task: StoredTask) -> None:
    """Insert a task that is due now. If it exists and has ended, it begins again."""
    values = {name: getattr(task, name) for name in COLUMNS.split(", ") if name != "run_at"}
    tx.execute(
        f"INSERT INTO tasks ({', '.join(values)}, run_at) VALUES ({', '.join('?' * len(values))}, {NOW})"
        " ON CONFLICT (account_id, task_id) DO UPDATE SET status = 'pending', stage = NULL, run_at = excluded.run_at,"
        " attempts = 0, failures = 0, steps_done = 0, result = NULL, error_code = NULL, error = NULL,"
        " completed_at = NULL, fence = tasks.fence + 1, updated_at = excluded.updated_at"
        " WHERE tasks.status NOT IN ('pending', 'running')",
        [*values.values()],
    )


def find(tx: Tx, task_id: str, account: str | None = None) -> StoredTask | None:
    """Find a task of the account of the transaction. A backfill, which serves all accounts, names another one."""
    row = tx.one(f"SELECT {COLUMNS}, {NOW} FROM all_tasks WHERE {_BY_ID}", (account or tx.account, task_id))
    return StoredTask(*row) if row else None


def lock(tx: Tx, task_id: str) -> StoredTask | None:
    """Find a task and lock it until the transaction ends."""
    row = tx.one(f"SELECT {COLUMNS} FROM tasks WHERE {_BY_ID}{tx.dialect.lock_row}", (tx.account, task_id))
    return StoredTask(*row) if row else None


def find_account(tx: Tx, task_id: str) -> str | None:
    """Find the account of a task. Only for the operator."""
    row = tx.one("SELECT account_id FROM all_tasks WHERE task_id = ?", (task_id,))
    return row[0] if row else None


def is_one_of(column: str, values: Collection[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(values))})" if values else "FALSE"


def claim(tx: Tx, kinds: Collection[str], lease: int, now: int) -> Claim | None:
    """Claim the task of any account that has been due for longest, of one of `kinds`, for `lease` microseconds."""
    skip_locked = " SKIP LOCKED" if tx.dialect.lock_row else ""
    row = tx.one(
        "UPDATE tasks SET status = 'running', fence = fence + 1, attempts = attempts + 1,"
        f" run_at = {NOW} + ?, updated_at = ?"
        " WHERE (account_id, task_id) = (SELECT account_id, task_id FROM tasks"
        f" WHERE run_at <= {NOW} AND {is_one_of('kind', kinds)} ORDER BY run_at"
        f" LIMIT 1{tx.dialect.lock_row}{skip_locked}) RETURNING {COLUMNS}",
        (lease, now, *kinds),
    )
    return Claim(StoredTask(*row)) if row else None


def micros_until_due(tx: Tx, kinds: Collection[str]) -> int | None:
    """The time until the next task of any account can be claimed, of one of `kinds`. Negative if it is overdue."""
    row = tx.one(
        f"SELECT run_at - {NOW} FROM tasks WHERE run_at IS NOT NULL AND {is_one_of('kind', kinds)}"
        " ORDER BY run_at LIMIT 1",
        tuple(kinds),
    )
    return row[0] if row else None


def _is_misdated(lease: int, longest_wait: int) -> str:
    """An SQL condition: the task is due later than any worker can have wanted."""
    return (
        f"run_at > {NOW} + {MAX_RUN_AT_ERROR} AND ((status = 'pending' AND stage IS NULL)"
        f" OR run_at > {NOW} + {MAX_RUN_AT_ERROR} + CASE status WHEN 'running' THEN {lease} ELSE {longest_wait} END)"
    )


def has_misdated(tx: Tx, lease: int, longest_wait: int) -> bool:
    """Whether a task of any account is due later than a lease, or a wait between two attempts, can explain."""
    return tx.one(f"SELECT 1 FROM tasks WHERE {_is_misdated(lease, longest_wait)} LIMIT 1") is not None


def make_misdated_due(tx: Tx, lease: int, longest_wait: int) -> int:
    """Make these tasks due now. Return how many there were."""
    rows = tx.all(f"UPDATE tasks SET run_at = {NOW} WHERE {_is_misdated(lease, longest_wait)} RETURNING 1")
    return len(rows)


def first_unfinished(tx: Tx, order_key: str) -> StoredTask | None:
    """The first pending or running task with an ordering key."""
    row = tx.one(
        f"SELECT {COLUMNS} FROM tasks WHERE account_id = ? AND order_key = ? AND {IS_OPEN} AND status <> 'failed'"
        " ORDER BY order_position, task_id LIMIT 1",
        (tx.account, order_key),
    )
    return StoredTask(*row) if row else None


def find_pending(tx: Tx, order_key: str, kind: str) -> str | None:
    """The id of a task of a kind that has an ordering key and has finished no step."""
    row = tx.one(
        f"SELECT task_id FROM tasks WHERE account_id = ? AND order_key = ? AND {IS_OPEN} AND status = 'pending'"
        " AND kind = ? AND steps_done = 0 LIMIT 1",
        (tx.account, order_key, kind),
    )
    return None if row is None else str(row[0])


def lock_open(tx: Tx, user_id: str, kind: str) -> StoredTask | None:
    """Find a task of a user that is pending, running or failed, by its kind, and lock it until the transaction ends."""
    row = tx.one(
        f"SELECT {COLUMNS} FROM tasks WHERE account_id = ? AND user_id = ? AND {IS_OPEN} AND kind = ?"
        f" ORDER BY task_id LIMIT 1{tx.dialect.lock_row}",
        (tx.account, user_id, kind),
    )
    return StoredTask(*row) if row else None


def failed_kinds_before(tx: Tx, task: StoredTask) -> list[str]:
    """The kinds of the failed tasks that have the ordering key of `task` and come before it."""
    rows = tx.all(
        f"SELECT DISTINCT kind FROM tasks WHERE account_id = ? AND order_key = ? AND {IS_OPEN} AND status = 'failed'"
        " AND (order_position < ? OR (order_position = ? AND task_id < ?))",
        (tx.account, task.order_key, task.order_position, task.order_position, task.task_id),
    )
    return [row[0] for row in rows]


def is_held(tx: Tx, claim: Claim) -> bool:
    """Whether the claim is still valid. If so, it stays valid until the transaction ends."""
    return tx.one(f"SELECT 1 FROM tasks WHERE {_HELD}{tx.dialect.lock_row}", claim.key) is not None


def extend(tx: Tx, claim: Claim, lease: int) -> bool:
    """Extend the lease to `lease` microseconds from now. Return False if the claim is no longer valid."""
    row = tx.one(f"UPDATE tasks SET run_at = {NOW} + ? WHERE {_HELD} RETURNING 1", (lease, *claim.key))
    return row is not None


def advance(tx: Tx, claim: Claim, *, stage: str, done: int, total: int, worked: int, now: int) -> bool:
    """Record the progress of a task. Return False if the claim is no longer valid."""
    row = tx.one(
        "UPDATE tasks SET stage = ?, steps_done = ?, steps_total = ?, worked = worked + ?, updated_at = ?"
        f" WHERE {_HELD} RETURNING 1",
        (stage, done, total, worked, now, *claim.key),
    )
    return row is not None


def store_payload(tx: Tx, task_id: str, payload: str) -> None:
    tx.execute(f"UPDATE tasks SET payload = ? WHERE {_BY_ID}", (payload, tx.account, task_id))


def add_cost(tx: Tx, task_id: str, cost: Cost) -> None:
    tx.execute(
        "UPDATE tasks SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " total_tokens = total_tokens + ?, cached_tokens = cached_tokens + ?, reasoning_tokens = reasoning_tokens + ?,"
        f" embedding_tokens = embedding_tokens + ? WHERE {_BY_ID}",
        (*msgspec.structs.astuple(cost.llm), cost.embedding_tokens, tx.account, task_id),
    )


def complete(tx: Tx, claim: Claim, result: str, *, worked: int, now: int) -> bool:
    """Mark a task as completed. Return False if the claim is no longer valid."""
    row = tx.one(
        "UPDATE tasks SET status = 'completed', stage = NULL, run_at = NULL, result = ?, error_code = NULL,"
        " error = NULL, worked = worked + ?, steps_done = steps_total, updated_at = ?,"
        f" completed_at = {NOW} WHERE {_HELD} RETURNING 1",
        (result, worked, now, *claim.key),
    )
    return row is not None


def fail(tx: Tx, claim: Claim, failure: Failure, *, worked: int, now: int) -> bool:
    """Mark a task as failed. Return False if the claim is no longer valid."""
    row = tx.one(
        "UPDATE tasks SET status = 'failed', stage = NULL, run_at = NULL, error_code = ?, error = ?,"
        f" failures = failures + 1, worked = worked + ?, updated_at = ? WHERE {_HELD} RETURNING 1",
        (failure.code, failure.message, worked, now, *claim.key),
    )
    return row is not None


def postpone(tx: Tx, claim: Claim, failure: Failure, *, wait: int, worked: int, now: int) -> bool:
    """Schedule another attempt in `wait` microseconds. Return False if the claim is no longer valid."""
    row = tx.one(
        f"UPDATE tasks SET status = 'pending', stage = 'retrying', run_at = {NOW} + ?, error_code = ?, error = ?,"
        f" failures = failures + 1, worked = worked + ?, updated_at = ? WHERE {_HELD} RETURNING 1",
        (wait, failure.code, failure.message, worked, now, *claim.key),
    )
    return row is not None


def release_claim(tx: Tx, claim: Claim, now: int) -> None:
    """Make a claimed task available to other workers at once. The attempt is not counted."""
    tx.execute(
        f"UPDATE tasks SET status = 'pending', stage = NULL, run_at = {NOW}, attempts = attempts - 1, updated_at = ?"
        f" WHERE {_HELD}",
        (now, *claim.key),
    )


def cancel(tx: Tx, task_id: str, now: int) -> None:
    tx.execute(
        "UPDATE tasks SET status = 'cancelled', stage = NULL, run_at = NULL, fence = fence + 1, updated_at = ?"
        f" WHERE {_BY_ID}",
        (now, tx.account, task_id),
    )


def reset_for_retry(tx: Tx, task: StoredTask, now: int) -> None:
    """Set a task back to pending, with no attempts. If it has an ordering key it waits until it is unblocked.

    Its finished steps are kept.
    """
    stage, run_at = (None, NOW) if task.order_key is None else ("waiting", "NULL")
    tx.execute(
        f"UPDATE tasks SET status = 'pending', stage = ?, run_at = {run_at}, attempts = 0, failures = 0,"
        f" error_code = NULL, error = NULL, fence = fence + 1, updated_at = ? WHERE {_BY_ID}",
        (stage, now, tx.account, task.task_id),
    )


def transfer(tx: Tx, log_id: int, owner_id: str, old_uri: str, new_uri: str, now: int) -> None:
    """Give the tasks of a session to its new owner, with the new address of the session."""
    tx.execute(
        "UPDATE tasks SET user_id = ?, subject = REPLACE(subject, ?, ?), updated_at = ?"
        " WHERE account_id = ? AND order_key = ?",
        (owner_id, old_uri, new_uri, now, tx.account, order_key_of_log(log_id)),
    )
    tx.execute("UPDATE old_tasks SET user_id = ? WHERE account_id = ? AND log_id = ?", (owner_id, tx.account, log_id))


def unblock(tx: Tx, task_id: str) -> None:
    """Make a task due that waited for another task."""
    tx.execute(
        f"UPDATE tasks SET run_at = {NOW}, stage = NULL WHERE {_BY_ID} AND run_at IS NULL AND status = 'pending'",
        (tx.account, task_id),
    )


def delete_for_log(tx: Tx, log_id: int) -> None:
    # Old tasks first: what the backfill moves meanwhile is then found among the others.
    tx.execute("DELETE FROM old_tasks WHERE account_id = ? AND log_id = ?", (tx.account, log_id))
    # Tasks before steps: a worker that inserts a step locks its task. The deletion then waits and sees the new step.
    rows = tx.all(
        "DELETE FROM tasks WHERE account_id = ? AND order_key = ? RETURNING task_id, status",
        (tx.account, order_key_of_log(log_id)),
    )
    for task_id, status in rows:
        if status != "completed":  # its steps were deleted when it was completed
            steps.delete(tx, task_id)


def delete_completed(tx: Tx, kind: str, age: int, limit: int) -> int:
    """Delete up to `limit` tasks of a kind, of all accounts, that were completed more than `age` microseconds ago.

    Return how many. Failed and cancelled tasks are kept, because they can be retried.
    """
    rows = tx.all(
        "DELETE FROM tasks WHERE (account_id, task_id) IN (SELECT account_id, task_id FROM tasks"
        f" WHERE kind = ? AND status = 'completed' AND COALESCE(completed_at, updated_at) < {NOW} - ?"
        " ORDER BY COALESCE(completed_at, updated_at) LIMIT ?) RETURNING 1",
        (kind, age, limit),
    )
    return len(rows)
