"""Share links. Only the id and the hash of a link are stored; its rights and its expiry are those of its grant."""

import msgspec

from holdfast.model.access import ShareLink, link_internal_id, to_rights, user_name
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_JOIN = (
    "share_links l JOIN grants g ON g.account_id = l.account_id AND g.log_id = l.log_id"
    " AND g.user_id = '~' || l.link_id"
)


class SessionAddress(msgspec.Struct, frozen=True):
    owner_id: str
    session_id: str


class StoredLink(msgspec.Struct, frozen=True):
    hash: str
    expires_at: int | None
    last_used_at: int | None


def insert(tx: Tx, link_id: str, log_id: int, hash: str) -> None:
    tx.execute(
        "INSERT INTO share_links (account_id, link_id, log_id, hash, use_count) VALUES (?, ?, ?, ?, 0)",
        (tx.account, link_id, log_id, hash),
    )


def find(tx: Tx, link_id: str) -> StoredLink | None:
    row = tx.one(
        f"SELECT l.hash, g.expires_at, l.last_used_at FROM {_JOIN} WHERE l.account_id = ? AND l.link_id = ?",
        (tx.account, link_id),
    )
    return StoredLink(*row) if row else None


def page(tx: Tx, log_id: int, address: SessionAddress, *, after: str | None, limit: int) -> list[ShareLink]:
    """List the links of the session of a log by id, including expired ones."""
    rows = tx.all(
        "SELECT l.link_id, g.rights, g.granted_by, g.created_at, g.expires_at, l.use_count, l.last_used_at"
        f" FROM {_JOIN} WHERE l.account_id = ? AND l.log_id = ? AND l.link_id > ? ORDER BY l.link_id LIMIT ?",
        (tx.account, log_id, after or "", limit),
    )
    return [
        ShareLink(
            id=row[0],
            session_id=address.session_id,
            owner=address.owner_id,
            rights=to_rights(row[1]),
            created_by=user_name(row[2]),
            created_at=from_micros(row[3]),
            expires_at=None if row[4] is None else from_micros(row[4]),
            use_count=row[5],
            last_used_at=None if row[6] is None else from_micros(row[6]),
        )
        for row in rows
    ]


def count_use(tx: Tx, link_id: str, now: int) -> None:
    tx.execute(
        "UPDATE share_links SET use_count = use_count + 1, last_used_at = ? WHERE account_id = ? AND link_id = ?",
        (now, tx.account, link_id),
    )


def delete_all(tx: Tx, log_id: int) -> None:
    """Delete all links of the session of a log, and their grants."""
    of_log = "account_id = ? AND log_id = ?"
    tx.execute(f"DELETE FROM share_links WHERE {of_log}", (tx.account, log_id))
    tx.execute(f"DELETE FROM grants WHERE {of_log} AND SUBSTR(user_id, 1, 1) = '~'", (tx.account, log_id))


def delete(tx: Tx, log_id: int, link_id: str) -> bool:
    """Delete a link and its grant. Return False if the session of the log has no such link."""
    row = tx.one(
        "DELETE FROM share_links WHERE account_id = ? AND log_id = ? AND link_id = ? RETURNING 1",
        (tx.account, log_id, link_id),
    )
    if row is None:
        return False
    tx.execute(
        "DELETE FROM grants WHERE account_id = ? AND log_id = ? AND user_id = ?",
        (tx.account, log_id, link_internal_id(link_id)),
    )
    return True
