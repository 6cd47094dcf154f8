"""What a user has used of stored files: contexts that were recorded, and calls of skills."""

from typing import NamedTuple

from holdfast.store.database import Tx

MAX_USES = 10_000
"""How many addresses of a user count, those that were used last."""
_CONTEXTS = (
    "SELECT uri, active_count, last_used_at FROM document_uses WHERE account_id = ? AND owner_id = ?"
    " AND uri NOT LIKE 'viking://user/%/sessions/%' ORDER BY last_used_at DESC LIMIT ?"
)
_SKILLS = (
    "SELECT uri, (calls + successes + 1) / 2, last_used_at FROM skill_uses WHERE account_id = ? AND owner_id = ?"
    " ORDER BY last_used_at DESC LIMIT ?"
)


class FileUse(NamedTuple):
    uses: int
    last_used_at: int


def read(tx: Tx, owner_id: str) -> dict[str, FileUse]:
    """Return what a user used, by address without the number of a part: a use of a part counts for its file.

    A skill counts by its successes, and half by calls that failed.
    """
    of_user = (tx.account, owner_id, MAX_USES)
    contexts, skills = tx.all_of([(_CONTEXTS, of_user), (_SKILLS, of_user)])
    found: dict[str, FileUse] = {}
    for uri, uses, last_used_at in [*contexts, *skills]:
        address = uri.partition("#")[0]
        known = found.get(address, FileUse(0, 0))
        found[address] = FileUse(known.uses + uses, max(known.last_used_at, last_used_at))
    return found
