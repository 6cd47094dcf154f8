"""Sessions that others share with a user or a link. Every query joins the grants."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.access import OWNER_RIGHTS
from holdfast.store.access.grants import IS_READABLE, OF_GRANTEE, Grantee
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import (
    OF_OWNER,
    SessionFilter,
    StoredSession,
    filter_conditions,
    select_sessions,
)

_OF_GRANT = (
    "s.account_id = g.account_id AND s.user_id = g.owner_id AND s.session_id = g.session_id AND s.log_id + 0 = g.log_id"
)
"""The session of a grant. Its log differs if the session was deleted and created again.

With `+ 0`, it is found by its address, which takes one search, and not by its log, which takes two on SQLite.
"""
_RIGHTS = f"(SELECT g.rights FROM grants g WHERE {OF_GRANTEE} AND g.log_id = s.log_id)"
"""The rights of a grantee on the session `s`, or NULL."""
_OF_LINK = (
    f"s.account_id = ? AND s.session_id = ? AND s.log_id = (SELECT g.log_id FROM grants g WHERE {OF_GRANTEE} LIMIT 1)"
)
"""The session of a share link, which has one grant."""
_OF_LISTED = "s.account_id = ? AND s.log_id = v.log_id"
"""The sessions of a list of log ids `v`. SQLite reads what is left of a CROSS JOIN first."""
_OF_OWNER = f"{OF_OWNER} AND s.session_id = ?"


def _select(
    tx: Tx,
    condition: str,
    sessions: str = "sessions s",
    rights: str = str(OWNER_RIGHTS),
    *,
    for_list: bool = False,
) -> str:
    has_lateral_joins = tx.dialect.has_lateral_joins
    return select_sessions(condition, sessions, rights, has_lateral_joins=has_lateral_joins, for_list=for_list)


def find(tx: Tx, grantee: Grantee, owner_id: str, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """Find a session that the owner with an internal id shares with the grantee.

    With `lock`, no other transaction adds to the session or changes it until this one ends.
    """
    return _find(tx, grantee, _OF_OWNER, (tx.account, owner_id, session_id), lock=lock)


def find_of_link(tx: Tx, grantee: Grantee, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """Find the session of a share link. `lock` works as in `find`."""
    key = (tx.account, session_id, tx.account, grantee.internal_id, grantee.agent_id)
    return _find(tx, grantee, _OF_LINK, key, lock=lock)


def _find(tx: Tx, grantee: Grantee, address: str, params: tuple[str, ...], *, lock: bool) -> StoredSession | None:
    return _session(tx.all_of(_statements(tx, grantee, address, params, lock=lock)))


def _statements(
    tx: Tx, grantee: Grantee, address: str, params: tuple[str, ...], *, lock: bool
) -> list[tuple[str, Sequence[str]]]:
    """Return the statement that reads a session, after the one that locks it.

    The lock is a statement of its own. What is read after it also shows whether the grant was revoked while this
    transaction waited for the lock.
    """
    of_grantee = (tx.account, grantee.internal_id, grantee.agent_id)
    select = _select(tx, address, rights=_RIGHTS), (*of_grantee, *params)
    if not lock or not tx.dialect.lock_row:
        return [select]
    lock_row = f"SELECT s.log_id FROM sessions s WHERE {address} AND {_RIGHTS} IS NOT NULL{tx.dialect.lock_row}"
    return [(lock_row, (*params, *of_grantee)), select]


def _session(rows: Sequence[Sequence[Any]]) -> StoredSession | None:
    """Return what the statements found: no session without rights, and none that got the address after the lock."""
    *locked, found = rows
    if not found or found[0][-1] is None:
        return None
    session = StoredSession(*found[0])
    return session if not locked or [session.log_id] == [row[0] for row in locked[0]] else None


def page(tx: Tx, grantee: Grantee, wanted: SessionFilter, limit: int) -> list[StoredSession]:
    """List the sessions that others share with the grantee, newest first, without metadata and settings."""
    listed, params = _select_listed(tx, grantee, wanted, limit)
    return _read(tx, listed, params, for_list=True)


def page_with_own(tx: Tx, grantee: Grantee, wanted: SessionFilter, limit: int) -> list[StoredSession]:
    """List the grantee's own sessions, and those that others share, newest first, without metadata and settings.

    The two lists are merged before the rest of each row is read, so that a page costs little more than one of them.
    Own sessions that are older than a full page of shared ones are not looked at.
    """
    filters, own_params = filter_conditions(wanted)
    shared, shared_params = _select_listed(tx, grantee, wanted, limit)
    oldest = "SELECT CASE WHEN COUNT(*) = ? THEN MIN(log_id) ELSE 0 END FROM shared"
    own_condition = " AND ".join([OF_OWNER, *filters, f"s.log_id > ({oldest})"])
    own = f"SELECT s.log_id, {OWNER_RIGHTS} AS rights FROM sessions s WHERE {own_condition}"
    both = (
        f"WITH shared AS ({shared}), own AS ({own} ORDER BY s.log_id DESC LIMIT ?)"
        " SELECT * FROM (SELECT * FROM own UNION ALL SELECT * FROM shared) AS both_lists ORDER BY log_id DESC LIMIT ?"
    )
    params = [*shared_params, tx.account, grantee.internal_id, *own_params, limit, limit, limit]
    return _read(tx, both, params, for_list=True)


def readable_page(tx: Tx, grantee: Grantee, owner_id: str, wanted: SessionFilter, limit: int) -> list[StoredSession]:
    """List the sessions that an owner lets the grantee read, newest first."""
    listed, params = _select_listed(tx, grantee, wanted, limit, f" AND g.owner_id = ? AND {IS_READABLE}", (owner_id,))
    return _read(tx, listed, params)


def _select_listed(
    tx: Tx,
    grantee: Grantee,
    wanted: SessionFilter,
    limit: int,
    condition: str = "",
    condition_params: Sequence[str] = (),
) -> tuple[str, list[str | int]]:
    """Return a statement, with its parameters, that selects the log ids and the rights of shared sessions.

    It goes through the grants in their order, and looks at each session in a subquery. With a join, the databases
    sometimes go through all sessions of the account instead.
    """
    filters, filter_params = filter_conditions(msgspec.structs.replace(wanted, before=None))
    if wanted.q is not None:  # a title that the grantee may not read is not searched
        condition += f" AND {IS_READABLE}"
    before, before_params = ("", []) if wanted.before is None else (" AND g.log_id < ?", [wanted.before])
    session = f"SELECT {' AND '.join(['TRUE', *filters])} FROM sessions s WHERE {_OF_GRANT}"
    listed = f"SELECT g.log_id, g.rights FROM grants g WHERE {OF_GRANTEE}{condition}{before} AND ({session})"
    params = [tx.account, grantee.internal_id, grantee.agent_id, *condition_params, *before_params, *filter_params]
    return f"{listed} ORDER BY g.log_id DESC LIMIT ?", [*params, limit]


def _read(tx: Tx, listed: str, params: Sequence[str | int], *, for_list: bool = False) -> list[StoredSession]:
    select = _select(tx, _OF_LISTED, f"({listed}) AS v CROSS JOIN sessions s", "v.rights", for_list=for_list)
    return [StoredSession(*row) for row in tx.all(f"{select} ORDER BY v.log_id DESC", (*params, tx.account))]


def newest_readable(tx: Tx, grantee: Grantee, *, after: str, limit: int) -> list[StoredSession]:
    """For each owner whose sessions the grantee may read, return the newest of them, by the owner's internal id.

    The index of grants is searched once per owner, however many sessions each of them shares.
    """
    of_grantee = (tx.account, grantee.internal_id, grantee.agent_id)
    exists = f"(SELECT TRUE FROM sessions s WHERE {_OF_GRANT})"
    grant = f"FROM grants g WHERE {OF_GRANTEE} AND {IS_READABLE} AND {exists}"
    next_owner = f"SELECT g.owner_id {grant} AND g.owner_id > {{}} ORDER BY g.owner_id LIMIT 1"
    newest = f"SELECT g.log_id {grant} AND g.owner_id = o.owner_id ORDER BY g.log_id DESC LIMIT 1"
    rows = tx.all(
        f"WITH RECURSIVE owners (owner_id, number) AS (SELECT ({next_owner.format('?')}), 1 UNION ALL"
        f" SELECT ({next_owner.format('o.owner_id')}), o.number + 1 FROM owners o"
        " WHERE o.owner_id IS NOT NULL AND o.number < ?),"
        f" v (log_id) AS (SELECT ({newest}) FROM owners o WHERE o.owner_id IS NOT NULL)"
        f" {_select(tx, _OF_LISTED, 'v CROSS JOIN sessions s')} ORDER BY s.user_id",
        (*of_grantee, after, *of_grantee, limit, *of_grantee, tx.account),
    )
    return [StoredSession(*row) for row in rows]
