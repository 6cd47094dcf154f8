"""Backfills: changes of old rows that a migration leaves for later, while the database is in use.

The SQL of a migration inserts a task of the kind `backfill` whose `resource_id` is a name in this table, if there are
rows to change. Until the task is completed, readers cope with both forms of a row.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from holdfast.store import checksums
from holdfast.store.checked import checksum_backfill
from holdfast.store.database import Tx
from holdfast.store.tables import tasks


class Backfilled(msgspec.Struct, frozen=True):
    """What one slice of a backfill has done."""

    rows: int
    """The number of rows that were changed."""
    after: str | None
    """Where the next slice continues. None if there is none."""


Backfill = Callable[[Tx, str | None, int], Backfilled]
"""Changes up to a number of rows after a position, of all accounts. Changing a row twice must have no effect."""


def _move_old_tasks(tx: Tx, _after: str | None, limit: int) -> Backfilled:
    """Move tasks of all accounts from `old_tasks` to `tasks`."""
    keys = tx.all("SELECT account_id, task_id FROM old_tasks ORDER BY account_id, task_id LIMIT ?", (limit,))
    moved = 0
    for account_id, task_id in keys:
        task = tasks.find(tx, task_id, account_id)
        # Nothing is deleted if another transaction has deleted the task meanwhile.
        if task and tx.one(
            "DELETE FROM old_tasks WHERE account_id = ? AND task_id = ? RETURNING 1", (account_id, task_id)
        ):
            tasks.insert(tx, task)
            moved += 1
    return Backfilled(moved, "" if moved else None)


def _add_checksums(tx: Tx, after: str | None, limit: int) -> Backfilled:
    """Add checksums to messages, then to archives. The position is the table, and the key of the last row."""
    table, position = _decode_position(after) if after else ("messages", checksum_backfill.FIRST)
    added = checksum_backfill.add(tx, table, position, limit)
    if added.last is not None:
        return Backfilled(added.rows, msgspec.json.encode((table, added.last)).decode())
    checksums.mark_checked(tx, table)
    next_position = None if table == "archives" else msgspec.json.encode(("archives", checksum_backfill.FIRST)).decode()
    return Backfilled(added.rows, next_position)


_decode_position = msgspec.json.Decoder(tuple[Literal["messages", "archives"], checksum_backfill.Key]).decode

BACKFILLS: dict[str, Backfill] = {"0005_tasks": _move_old_tasks, "0006_checksums": _add_checksums}
