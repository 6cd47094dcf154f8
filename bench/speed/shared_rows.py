"""Users with very many sessions, own and shared, inserted with a few statements: sharing them one by one takes long."""

import msgspec

from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.store.database import Tx
from holdfast.store.tables.tasks import COLUMNS as TASK_COLUMNS

ACCOUNT = "default"
READER = "reader"
"""Has own sessions, and many that others share."""
ALONE = "alone"
"""Has as many own sessions as the reader, and nothing is shared."""
BUSY = "busy"
"""Has as many own sessions as the reader has own and shared ones together."""
ARCHIVED_SHARE = 10
"""One of so many sessions is archived."""
FIRST_LOG_OF_BUSY, FIRST_LOG_OF_ALONE = 10_000_000, 20_000_000

_SESSION_COLUMNS = (
    "account_id, user_id, session_id, log_id, title, metadata, state, created_at, updated_at, live_from,"
    " tokens_archived, fork_seq, fork_tokens, config"
)


class SharedSessions(msgspec.Struct, frozen=True):
    """How many sessions there are. The reader's own ones are spread evenly among the shared ones."""

    own: int
    shared: int
    owners: int
    tasks: int
    """The number of tasks of each of the three users, and, many times, of the owners."""

    @property
    def all(self) -> int:
        return self.own + self.shared

    @property
    def step(self) -> int:
        """Of so many sessions, one is the reader's own."""
        return self.all // self.own


def insert(target: str, counts: SharedSessions) -> None:
    """Insert the rows in a database whose account exists."""
    database = open_database(target, Settings())
    try:
        database.migrate(0)
        database.write(ACCOUNT, lambda tx: _insert(tx, counts))
        if "://" in target:  # PostgreSQL does so automatically, but later
            database.write(ACCOUNT, lambda tx: tx.execute("ANALYZE sessions, grants, tasks"))
    finally:
        database.close()


def _insert(tx: Tx, counts: SharedSessions) -> None:
    tx.allow_long_statements()
    owner = f"CASE WHEN i % {counts.step} = 0 THEN '{READER}' ELSE 'owner-' || (i % {counts.owners}) END"
    _insert_sessions(tx, counts.all, owner, 0)
    _insert_sessions(tx, counts.all, f"'{BUSY}'", FIRST_LOG_OF_BUSY)
    _insert_sessions(tx, counts.own, f"'{ALONE}'", FIRST_LOG_OF_ALONE)
    tx.execute(
        "INSERT INTO grants"
        " (account_id, log_id, owner_id, session_id, user_id, agent_id, rights, granted_by, created_at)"
        f" SELECT account_id, log_id, user_id, session_id, '{READER}', '', 3, user_id, 0 FROM sessions"
        f" WHERE account_id = '{ACCOUNT}' AND user_id LIKE 'owner-%'"
    )
    for number, (user, log_id) in enumerate(
        [
            (f"'{READER}'", f"{counts.step} * i"),
            (f"'{ALONE}'", f"{FIRST_LOG_OF_ALONE} + i"),
            (f"'{BUSY}'", f"{FIRST_LOG_OF_BUSY} + i"),
        ]
    ):
        _insert_tasks(tx, counts.tasks, user, log_id, number)
    _insert_tasks(tx, 100 * counts.tasks, f"'owner-' || (i % {counts.owners})", "i", 3)
    _insert_tasks(tx, 100 * counts.tasks, "'stranger'", "30000000 + i", 4)


def _insert_sessions(tx: Tx, count: int, owner: str, log_id: int) -> None:
    state = f"CASE WHEN i % {ARCHIVED_SHARE} = 0 THEN 'archived' ELSE 'active' END"
    tx.execute(
        f"{_numbers(count)} INSERT INTO sessions ({_SESSION_COLUMNS})"
        f" SELECT '{ACCOUNT}', {owner}, 'session-' || i, {log_id} + i, 'Title ' || i, '{{}}', {state}, i, i, 1,"
        " 0, 0, 0, '{}' FROM numbers"
    )


def _insert_tasks(tx: Tx, count: int, user: str, log_id: str, number: int) -> None:
    status = "CASE WHEN i % 2 = 0 THEN 'completed' ELSE 'failed' END"
    values = {
        "account_id": f"'{ACCOUNT}'",
        "task_id": f"'task_' || ({number} + 10 * (100000000 + i))",
        "user_id": user,
        "kind": "'session_commit'",
        "status": status,
        "resource_id": "'session-' || i",
        "order_key": f"'log:' || ({log_id})",
        "payload": "'{}'",
    }
    no_value = {"subject", "stage", "run_at", "result", "error_code", "error"}
    columns = TASK_COLUMNS.split(", ")
    selected = [values.get(column, "NULL" if column in no_value else "0") for column in columns]
    tx.execute(f"{_numbers(count)} INSERT INTO tasks ({TASK_COLUMNS}) SELECT {', '.join(selected)} FROM numbers")


def _numbers(count: int) -> str:
    return f"WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {count})"
