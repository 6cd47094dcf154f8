"""The rows of logs that no session owns any more. No reader reaches them, so they can be deleted a few at a time."""

from collections.abc import Sequence

import msgspec

from holdfast.store.database import Tx
from holdfast.store.tables import documents, lineage, messages, tool_results, unindexed

MAX_SLICE_CHARS = 4_000_000
"""How much text one slice deletes, approximately: large rows take longer to delete."""
_TABLES = (
    ("appends", "key"),
    ("usages", "id"),
    ("changes", "number"),
    ("archives", "number"),
    ("grants", "user_id"),
    ("share_links", "link_id"),
)
"""Tables with rows of a log, other than those of its messages, and the column that tells the rows of a log apart."""


class Deleted(msgspec.Struct, frozen=True):
    """What one slice has deleted."""

    messages: int
    is_last: bool
    """Whether nothing is left to delete."""


def delete_slice(tx: Tx, log_ids: Sequence[int], limit: int) -> Deleted:
    """Delete up to `limit` rows. Messages that a fork shares are kept.

    A log never gets a session again, and the messages that forks share only become fewer: any transaction can delete
    any slice, in any order and more than once.
    """
    left, deleted_messages = limit, 0
    for log_id in log_ids:
        count, is_last = _delete_messages(tx, log_id, left)
        deleted_messages += count
        left -= count
        if not is_last:
            return Deleted(deleted_messages, is_last=False)
        left -= documents.delete_others(tx, log_id, max(1, left))
        for table, key in _TABLES:
            if left <= 0:
                return Deleted(deleted_messages, is_last=False)
            left -= _delete_rows(tx, table, key, log_id, left)
        if left <= 0:
            return Deleted(deleted_messages, is_last=False)
    return Deleted(deleted_messages, is_last=True)


def mark_stale(tx: Tx, log_ids: Sequence[int]) -> None:
    """Declare the documents of logs invalid, before their messages are deleted. What forks share is indexed again."""
    for log_id in sorted(log_ids):
        unindexed.mark_stale(tx, log_id)


def mark_clean(tx: Tx, log_ids: Sequence[int]) -> None:
    """Declare that nothing is left to index of logs whose messages are all deleted."""
    for log_id in log_ids:
        if not lineage.last_shared_seq(tx, log_id):
            unindexed.delete(tx, log_id)


def count_messages(tx: Tx, log_ids: Sequence[int]) -> int:
    """The number of messages that are left to delete."""
    return sum(messages.last_seq(tx, log_id) - lineage.last_shared_seq(tx, log_id) for log_id in log_ids)


def _delete_messages(tx: Tx, log_id: int, limit: int) -> tuple[int, bool]:
    """Delete the last messages of a log. Return how many, and whether these were the last to delete."""
    shared, last = lineage.last_shared_seq(tx, log_id), messages.last_seq(tx, log_id)
    if last <= shared:
        return 0, True
    kept = max(shared, last - limit)
    for sizes in (messages.estimated_sizes(tx, log_id, kept), tool_results.sizes(tx, log_id, kept)):
        kept = max(kept, _cut(sizes, last))
    tool_results.delete_after(tx, log_id, kept)
    messages.delete_after(tx, log_id, kept)
    return last - kept, kept == shared


def _cut(sizes: Sequence[tuple[int, int]], last: int) -> int:
    """The message after which to delete, so that the slice is not too large. At least message `last` is deleted.

    `sizes` has sequence numbers and numbers of characters, newest first.
    """
    total = 0
    for seq, chars in sizes:
        total += chars
        if total > MAX_SLICE_CHARS and seq < last:
            return seq
    return 0


def _delete_rows(tx: Tx, table: str, key: str, log_id: int, limit: int) -> int:
    of_log = "account_id = ? AND log_id = ?"
    rows = tx.all(
        f"DELETE FROM {table} WHERE {of_log} AND {key} IN (SELECT {key} FROM {table} WHERE {of_log} LIMIT ?)"
        " RETURNING 1",
        (tx.account, log_id, tx.account, log_id, limit),
    )
    return len(rows)
