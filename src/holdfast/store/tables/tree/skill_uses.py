"""How often users called skills. An address has the form of `search.requests.addresses.canonical_address`."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import Tx

MAX_URIS = 400
"""How many addresses one statement names."""


class Uses(NamedTuple):
    calls: int
    successes: int
    last_used_at: int


def count(tx: Tx, owner_id: str, uri: str, used_at: int, *, success: bool) -> None:
    """Count a call of a skill by a user."""
    latest = "CASE WHEN u.last_used_at > excluded.last_used_at THEN u.last_used_at ELSE excluded.last_used_at END"
    tx.execute(
        "INSERT INTO skill_uses AS u (account_id, owner_id, uri, calls, successes, last_used_at)"
        " VALUES (?, ?, ?, 1, ?, ?) ON CONFLICT (account_id, owner_id, uri) DO UPDATE SET calls = u.calls + 1,"
        f" successes = u.successes + excluded.successes, last_used_at = {latest}",
        (tx.account, owner_id, uri, int(success), used_at),
    )


def find(tx: Tx, owner_id: str, uris: Sequence[str]) -> dict[str, Uses]:
    """Return how often a user called skills, by their addresses. Those that were never called are missing."""
    found: dict[str, Uses] = {}
    for first in range(0, len(uris), MAX_URIS):
        chunk = uris[first : first + MAX_URIS]
        marks = ", ".join("?" * len(chunk))
        rows = tx.all(
            "SELECT uri, calls, successes, last_used_at FROM skill_uses"
            f" WHERE account_id = ? AND owner_id = ? AND uri IN ({marks})",
            (tx.account, owner_id, *chunk),
        )
        found |= {uri: Uses(*counts) for uri, *counts in rows}
    return found
