"""How often and when users used documents, by address."""

from collections.abc import Mapping, Sequence

from holdfast.store.database import Tx

MAX_URI_BYTES = 1_000
_AT_ONCE = 500
"""How many addresses one statement selects."""


def add(tx: Tx, owner_id: str, used: Mapping[str, int]) -> None:
    """Count a use of each address by a user. `used` has the times of the last uses, in microseconds.

    An address that is too long for an index is not counted.
    """
    for uri, used_at in sorted(used.items()):  # transactions that lock rows in the same order cannot deadlock
        if len(uri.encode()) > MAX_URI_BYTES:
            continue
        tx.execute(
            "INSERT INTO document_uses (account_id, owner_id, uri, active_count, last_used_at) VALUES (?, ?, ?, 1, ?)"
            " ON CONFLICT (account_id, owner_id, uri) DO UPDATE SET active_count = document_uses.active_count + 1,"
            " last_used_at = CASE WHEN document_uses.last_used_at > excluded.last_used_at"
            " THEN document_uses.last_used_at ELSE excluded.last_used_at END",
            (tx.account, owner_id, uri, used_at),
        )


def find(tx: Tx, owner_id: str, uris: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return how often a user used documents, and when last, by address. Without a use, an address is missing."""
    found: dict[str, tuple[int, int]] = {}
    for at in range(0, len(uris), _AT_ONCE):
        some = uris[at : at + _AT_ONCE]
        rows = tx.all(
            "SELECT uri, active_count, last_used_at FROM document_uses"
            f" WHERE account_id = ? AND owner_id = ? AND uri IN ({', '.join('?' * len(some))})",
            (tx.account, owner_id, *some),
        )
        found |= {uri: (count, used_at) for uri, count, used_at in rows}
    return found


def delete_below(tx: Tx, owner_id: str, uri: str) -> None:
    """Forget how a user used what is at or below an address: another document may get the same address."""
    tx.execute(
        "DELETE FROM document_uses WHERE account_id = ? AND owner_id = ? AND (uri = ? OR SUBSTR(uri, 1, ?) IN (?, ?))",
        (tx.account, owner_id, uri, len(uri) + 1, f"{uri}#", f"{uri}/"),
    )
