"""Tasks: durable background work, taken by lease and guarded by a fence."""

from typing import Any

import msgspec

from holdfast.model.archives import archive_uri
from holdfast.model.tasks import Progress, Task, TaskKind, TaskStatus
from holdfast.store.database import Tx
from holdfast.store.tables import steps
from holdfast.store.timestamps import from_micros

_COLUMNS = (
    "account_id, task_id, user_id, kind, status, resource_id, log_id, number, stage, steps_done, steps_total, run_at,"
    " fence, attempts, failures, created_at, updated_at, worked, result, error_code, error"
)
_THE_ONE = "account_id = ? AND task_id = ?"
_MINE = f"{_THE_ONE} AND fence = ? AND status = 'running'"
OPEN = ("pending", "running", "failed")
_OPEN = f"status IN {OPEN}"
"""In the words of the small index of such tasks."""
_decode_result = msgspec.json.Decoder(dict[str, Any]).decode


class StoredTask(msgspec.Struct, frozen=True):
    account_id: str
    task_id: str
    user_id: str
    kind: TaskKind
    status: TaskStatus
    resource_id: str
    log_id: int
    number: int
    stage: str | None
    steps_done: int
    steps_total: int
    run_at: int | None
    fence: int
    attempts: int
    failures: int
    """Attempts whose worker came back and told what went wrong."""
    created_at: int
    updated_at: int
    worked: int
    result: str | None
    error_code: str | None
    error: str | None


class Failure(msgspec.Struct, frozen=True):
    """What went wrong, as a code and in words."""

    code: str
    message: str


class Claim(msgspec.Struct, frozen=True):
    """The right to work on a task, until the lease ends or another takes it: then its fence is a higher one."""

    task: StoredTask

    @property
    def account(self) -> str:
        return self.task.account_id

    @property
    def key(self) -> tuple[str, str, int]:
        return self.account, self.task.task_id, self.task.fence


def insert(tx: Tx, task: StoredTask) -> None:
    values = msgspec.structs.astuple(task)
    marks = ", ".join("?" * len(values))
    tx.execute(f"INSERT INTO tasks ({_COLUMNS}) VALUES ({marks})", values)


def find(tx: Tx, task_id: str, *, lock: bool = False) -> StoredTask | None:
    locked = tx.dialect.lock_row if lock else ""
    row = tx.one(f"SELECT {_COLUMNS} FROM tasks WHERE {_THE_ONE}{locked}", (tx.account, task_id))
    return StoredTask(*row) if row else None


def account_of(tx: Tx, task_id: str) -> str | None:
    """Whose a task is; for the operator."""
    row = tx.one("SELECT account_id FROM tasks WHERE task_id = ?", (task_id,))
    return row[0] if row else None


def page(
    tx: Tx, user_id: str | None, *, kind: str | None, status: str | None, resource_id: str | None, limit: int
) -> list[StoredTask]:
    """Newest first; of everybody if no user is named, for the operator."""
    where, params = ["TRUE"], list[str]()
    if user_id is not None:
        where, params = ["account_id = ?", "user_id = ?"], [tx.account, user_id]
    for column, value in (("kind", kind), ("resource_id", resource_id)):
        if value is not None:
            where.append(f"{column} = ?")
            params.append(value)
    if status is not None:
        where.append("status = ?")
        params.append(status)
    if status in OPEN:
        where.append(_OPEN)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM tasks WHERE {' AND '.join(where)} ORDER BY task_id DESC LIMIT ?", (*params, limit)
    )
    return [StoredTask(*row) for row in rows]


def counts(tx: Tx, account_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
    """How many tasks that are not done there are in each state: of a user, of an account, or of everybody."""
    where, params = [_OPEN], list[str]()
    for column, value in (("account_id", account_id), ("user_id", user_id)):
        if value is not None:
            where.append(f"{column} = ?")
            params.append(value)
    return dict(tx.all(f"SELECT status, COUNT(*) FROM tasks WHERE {' AND '.join(where)} GROUP BY status", params))


def claim(tx: Tx, now: int, lease: int) -> Claim | None:
    """Take the task that has been due for longest, of any account."""
    skip = " SKIP LOCKED" if tx.dialect.lock_row else ""
    row = tx.one(
        "UPDATE tasks SET status = 'running', fence = fence + 1, attempts = attempts + 1, run_at = ?, updated_at = ?"
        " WHERE (account_id, task_id) = (SELECT account_id, task_id FROM tasks WHERE run_at <= ? ORDER BY run_at"
        f" LIMIT 1{tx.dialect.lock_row}{skip}) RETURNING {_COLUMNS}",
        (now + lease, now, now),
    )
    return Claim(StoredTask(*row)) if row else None


def next_due(tx: Tx) -> int | None:
    """When the next task of any account can be taken."""
    row = tx.one("SELECT MIN(run_at) FROM tasks WHERE run_at IS NOT NULL")
    return row[0] if row else None


def is_held(tx: Tx, claim: Claim) -> bool:
    return tx.one(f"SELECT 1 FROM tasks WHERE {_MINE}{tx.dialect.lock_row}", claim.key) is not None


def extend(tx: Tx, claim: Claim, until: int) -> bool:
    """Hold a task for longer; whether it is still held."""
    row = tx.one(f"UPDATE tasks SET run_at = ? WHERE {_MINE} RETURNING 1", (until, *claim.key))
    return row is not None


def advance(tx: Tx, claim: Claim, *, stage: str, done: int, total: int, worked: int, now: int) -> bool:
    """Write down how far a task has come; whether it is still held."""
    row = tx.one(
        "UPDATE tasks SET stage = ?, steps_done = ?, steps_total = ?, worked = worked + ?, updated_at = ?"
        f" WHERE {_MINE} RETURNING 1",
        (stage, done, total, worked, now, *claim.key),
    )
    return row is not None


def complete(tx: Tx, claim: Claim, result: str, *, worked: int, now: int) -> bool:
    """End a task well; whether it was still held."""
    row = tx.one(
        "UPDATE tasks SET status = 'completed', stage = NULL, run_at = NULL, result = ?, error_code = NULL,"
        " error = NULL, worked = worked + ?, steps_done = steps_total, updated_at = ?"
        f" WHERE {_MINE} RETURNING 1",
        (result, worked, now, *claim.key),
    )
    return row is not None


def fail(tx: Tx, claim: Claim, failure: Failure, *, worked: int, now: int) -> bool:
    """End a task badly; whether it was still held."""
    row = tx.one(
        "UPDATE tasks SET status = 'failed', stage = NULL, run_at = NULL, error_code = ?, error = ?,"
        f" failures = failures + 1, worked = worked + ?, updated_at = ? WHERE {_MINE} RETURNING 1",
        (failure.code, failure.message, worked, now, *claim.key),
    )
    return row is not None


def postpone(tx: Tx, claim: Claim, failure: Failure, *, run_at: int, worked: int, now: int) -> bool:
    """Let a task be tried again from `run_at` on; whether it was still held."""
    row = tx.one(
        "UPDATE tasks SET status = 'pending', stage = 'retrying', run_at = ?, error_code = ?, error = ?,"
        f" failures = failures + 1, worked = worked + ?, updated_at = ? WHERE {_MINE} RETURNING 1",
        (run_at, failure.code, failure.message, worked, now, *claim.key),
    )
    return row is not None


def hand_back(tx: Tx, claim: Claim, now: int) -> None:
    """Let others take a task at once, as if this attempt had not been made."""
    tx.execute(
        "UPDATE tasks SET status = 'pending', stage = NULL, run_at = ?, attempts = attempts - 1, updated_at = ?"
        f" WHERE {_MINE}",
        (now, now, *claim.key),
    )


def cancel(tx: Tx, task_id: str, now: int) -> None:
    tx.execute(
        "UPDATE tasks SET status = 'cancelled', stage = NULL, run_at = NULL, fence = fence + 1, updated_at = ?"
        f" WHERE {_THE_ONE}",
        (now, tx.account, task_id),
    )


def renew(tx: Tx, task_id: str, now: int) -> None:
    """Let a task wait to begin again; what it had finished it does not do again."""
    tx.execute(
        "UPDATE tasks SET status = 'pending', stage = 'waiting', run_at = NULL, attempts = 0, failures = 0,"
        f" error_code = NULL, error = NULL, fence = fence + 1, updated_at = ? WHERE {_THE_ONE}",
        (now, tx.account, task_id),
    )


def release(tx: Tx, task_id: str, now: int) -> None:
    """Let a task begin that waited for another."""
    tx.execute(
        f"UPDATE tasks SET run_at = ?, stage = NULL WHERE {_THE_ONE} AND run_at IS NULL AND status = 'pending'",
        (now, tx.account, task_id),
    )


def delete_of_log(tx: Tx, log_id: int) -> None:
    # The tasks first: a worker that just keeps a step holds its task until the step is there to be deleted, too.
    rows = tx.all(
        "DELETE FROM tasks WHERE account_id = ? AND log_id = ? RETURNING task_id",
        (tx.account, log_id),
    )
    for (task_id,) in rows:
        steps.delete(tx, task_id)


def forget_before(tx: Tx, before: int, limit: int) -> int:
    """Drop up to `limit` tasks of all accounts that were completed before `before`; how many there were.

    What failed or was cancelled stays: it can be retried.
    """
    rows = tx.all(
        "DELETE FROM tasks WHERE (account_id, task_id) IN (SELECT account_id, task_id FROM tasks"
        " WHERE status = 'completed' AND updated_at < ? ORDER BY updated_at LIMIT ?) RETURNING 1",
        (before, limit),
    )
    return len(rows)


def shown(task: StoredTask, *, to_operator: bool = False) -> Task:
    """The task as callers see it. A model's own words about a tenant's text are not the operator's to read."""
    waits = task.status == "pending" and task.run_at is not None and task.attempts > 0
    return Task(
        task_id=task.task_id,
        account_id=task.account_id,
        user_id=task.user_id,
        task_type=task.kind,
        status=task.status,
        created_at=task.created_at / 1e6,
        updated_at=task.updated_at / 1e6,
        processing_seconds=task.worked / 1e6,
        resource_id=task.resource_id,
        stage=task.stage,
        progress=Progress(task.steps_done, task.steps_total),
        attempts=task.attempts,
        next_attempt_at=from_micros(task.run_at) if waits and task.run_at is not None else None,
        result=None if task.result is None else _decode_result(task.result),
        error_code=task.error_code,
        error=task.error_code if to_operator else task.error,
        archive_uri=archive_uri(task.user_id, task.resource_id, task.number),
        created_at_iso=from_micros(task.created_at),
        updated_at_iso=from_micros(task.updated_at),
    )
