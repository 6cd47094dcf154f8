"""Grants: the rights that others than the owner have on a session. Queries for sessions join them."""

import msgspec

from holdfast.model.access import Collaborator, to_rights, user_name
from holdfast.store.database import NOW, Tx
from holdfast.store.timestamps import from_micros

IS_VALID = f"(g.valid_until IS NULL OR g.valid_until > {NOW})"
OF_GRANTEE = f"g.account_id = ? AND g.user_id = ? AND g.agent_id IN ('', ?) AND {IS_VALID}"
"""An SQL condition on `grants g`: the valid grants of a grantee. Its parameters: account, internal id, agent."""
IS_READABLE = "g.rights % 2 = 1"
"""An SQL condition on `grants g`: the right to read."""
_OF_USER = "account_id = ? AND log_id = ? AND user_id = ?"


class Grantee(msgspec.Struct, frozen=True):
    """A user or a share link, and the agent that acts for it."""

    internal_id: str
    agent_id: str


class SharedSession(msgspec.Struct, frozen=True):
    """The session of a grant: its log and its address."""

    log_id: int
    owner_id: str
    session_id: str


def insert_or_replace(
    tx: Tx,
    session: SharedSession,
    internal_id: str,
    agent_id: str,
    rights: int,
    *,
    granted_by: str,
    now: int,
    lifetime: int | None,
) -> None:
    """Give rights on a session, in place of those that the user or link had. They end after `lifetime` microseconds."""
    expires_at = None if lifetime is None else now + lifetime
    valid_until, lifetimes = ("NULL", []) if lifetime is None else (f"{NOW} + ?", [lifetime])
    tx.execute(
        "INSERT INTO grants"
        " (account_id, log_id, owner_id, session_id, user_id, agent_id, rights, granted_by, created_at, expires_at,"
        f" valid_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {valid_until})"
        " ON CONFLICT (account_id, user_id, log_id) DO UPDATE SET"
        " agent_id = excluded.agent_id, rights = excluded.rights, granted_by = excluded.granted_by,"
        " created_at = excluded.created_at, expires_at = excluded.expires_at,"
        " valid_until = excluded.valid_until",
        (
            *(tx.account, session.log_id, session.owner_id, session.session_id),
            *(internal_id, agent_id, rights, granted_by, now, expires_at, *lifetimes),
        ),
    )


def delete(tx: Tx, log_id: int, internal_id: str) -> bool:
    """Delete a grant. Return False if there is none."""
    row = tx.one(f"DELETE FROM grants WHERE {_OF_USER} RETURNING 1", (tx.account, log_id, internal_id))
    return row is not None


def set_owner(tx: Tx, log_id: int, owner_id: str) -> None:
    """Record the new owner of a session in all its grants."""
    tx.execute("UPDATE grants SET owner_id = ? WHERE account_id = ? AND log_id = ?", (owner_id, tx.account, log_id))


def has_any(tx: Tx, grantee: Grantee) -> bool:
    """Whether anything is shared with the grantee."""
    key = (tx.account, grantee.internal_id, grantee.agent_id)
    return tx.one(f"SELECT 1 FROM grants g WHERE {OF_GRANTEE} LIMIT 1", key) is not None


def find_rights(tx: Tx, log_id: int, grantee: Grantee) -> int:
    """Return the rights of a grantee on the session of a log, or 0."""
    row = tx.one(
        f"SELECT g.rights FROM grants g WHERE {OF_GRANTEE} AND g.log_id = ?",
        (tx.account, grantee.internal_id, grantee.agent_id, log_id),
    )
    return int(row[0]) if row else 0


def find_collaborator(tx: Tx, log_id: int, internal_id: str) -> Collaborator | None:
    rows = _select(tx, log_id, " AND g.user_id = ?", (internal_id,))
    return rows[0] if rows else None


def page(tx: Tx, log_id: int, *, after: str | None, limit: int) -> list[Collaborator]:
    """List the users with a grant on the session of a log by their internal ids. Share links are not included."""
    return _select(
        tx,
        log_id,
        " AND SUBSTR(g.user_id, 1, 1) <> '~' AND g.user_id > ? ORDER BY g.user_id LIMIT ?",
        (after or "", limit),
    )


def _select(tx: Tx, log_id: int, condition: str, params: tuple[str | int, ...]) -> list[Collaborator]:
    rows = tx.all(
        "SELECT g.user_id, g.rights, g.agent_id, g.granted_by, g.created_at, g.expires_at FROM grants g"
        f" WHERE g.account_id = ? AND g.log_id = ? AND {IS_VALID}{condition}",
        (tx.account, log_id, *params),
    )
    return [
        Collaborator(
            user_id=row[0],
            rights=to_rights(row[1]),
            agent_id=row[2] or None,
            granted_by=user_name(row[3]),
            created_at=from_micros(row[4]),
            expires_at=None if row[5] is None else from_micros(row[5]),
        )
        for row in rows
    ]
