"""Which documents a user or a link may read: their own, those that grants open, and what forks have inherited.

Every search selects its candidates here, before anything is scored. Documents of stale logs are never found.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.model.access import OWNER_RIGHTS
from holdfast.store.access.grants import IS_READABLE, OF_GRANTEE, Grantee
from holdfast.store.database import Row, Statement, Tx
from holdfast.store.index import scopes
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange
from holdfast.store.tables.sessions import StoredSession, select_sessions

MAX_SHARED_RANGES = 10_000
"""How many shared log ranges are searched, the newest logs first."""
MAX_PENDING_LOGS = 1_000
"""Up to so many logs of an account that are not indexed yet are all looked at."""
MAX_HITS = 50_000
"""How many hits of a word are looked at, the newest ones."""
MAX_SCOPES = 200
"""How many logs a query of the text index names. Other documents of the account are never looked at."""
MAX_OWNER_RANGES = 1_000
"""How many shared log ranges are looked at to find the owners whose vectors are searched."""
_CHUNK = 400
"""How many ids a statement names."""
_COLUMNS = "d.n, d.kind, d.log_id, d.number, d.role"
_UNINDEXED_COLUMNS = "SELECT u.account_id, u.log_id, u.is_stale, u.due_at FROM"
_NEWEST = "ORDER BY u.due_at DESC LIMIT ?"
_NOT_STALE = (
    "NOT EXISTS (SELECT 1 FROM unindexed u WHERE u.account_id = d.account_id AND u.log_id = d.log_id"
    " AND u.is_stale = 1)"
)
_IN_RANGE = (
    f"r.log_id = d.log_id AND (r.last_seq = {WHOLE_LOG}"
    " OR (d.kind = 'message' AND d.number BETWEEN r.first_seq AND r.last_seq))"
)
_NOT_OWN = (
    "NOT EXISTS (SELECT 1 FROM sessions b WHERE b.account_id = l.account_id AND b.log_id = l.base_id AND b.user_id = ?)"
)
_RIGHTS = (
    f"CASE WHEN s.user_id = ? THEN {OWNER_RIGHTS} ELSE"
    f" (SELECT g.rights FROM grants g WHERE {OF_GRANTEE} AND {IS_READABLE} AND g.log_id = s.log_id) END"
)
"""The rights of a grantee on a session that the grantee may read, or NULL. It has four parameters."""


class DocumentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents are wanted. An empty list, or None, means all."""

    kinds: Sequence[str] = ()
    log_ids: Sequence[int] | None = None
    since: int | None = None
    until: int | None = None
    """Documents from `since` on, and before `until`, in microseconds."""
    levels: Sequence[int] = ()
    tags: Sequence[str] = ()
    """Tags that a document has all of."""


class Candidate(NamedTuple):
    """A document of a shared log that was found: where it is, and who wrote it."""

    n: int
    kind: str
    log_id: int
    number: int
    role: str


def select_shared(tx: Tx, grantee: Grantee) -> list[Statement]:
    """Return the statements that read the ranges of other owners' logs that the grantee may read, for `to_shared`.

    These are the logs of sessions that grants open, and what these sessions and the grantee's own forks have inherited.
    """
    of_grantee = (tx.account, grantee.internal_id, grantee.agent_id)
    exists = (
        "EXISTS (SELECT 1 FROM sessions s WHERE s.account_id = g.account_id AND s.user_id = g.owner_id"
        " AND s.session_id = g.session_id AND s.log_id + 0 = g.log_id)"
    )
    granted = f"FROM grants g WHERE {OF_GRANTEE} AND {IS_READABLE} AND {exists}"
    inherited = "SELECT l.base_id, l.first_seq, l.last_seq FROM"
    joined, newest = "l.account_id = ? AND l.log_id = f.log_id", "ORDER BY l.base_id DESC LIMIT ?"
    forks = "SELECT s.log_id FROM sessions s WHERE s.account_id = ? AND s.user_id = ? AND s.fork_seq > 0"
    return [
        (f"SELECT g.log_id, 1, {WHOLE_LOG} {granted} ORDER BY g.log_id DESC LIMIT ?", (*of_grantee, MAX_SHARED_RANGES)),
        *(
            (
                f"{inherited} ({logs}) AS f CROSS JOIN lineage l WHERE {joined} AND {_NOT_OWN} {newest}",
                (*params, tx.account, grantee.internal_id, MAX_SHARED_RANGES),
            )
            for logs, params in ((forks, of_grantee[:2]), (f"SELECT g.log_id {granted}", of_grantee))
        ),
    ]


def to_shared(found: Sequence[Sequence[Row]]) -> list[LogRange]:
    """Return the ranges that the statements of `select_shared` have read, the newest logs first."""
    ranges = dict.fromkeys(LogRange(*row) for rows in found for row in rows)
    return sorted(ranges, key=lambda each: each.log_id, reverse=True)[:MAX_SHARED_RANGES]


def shared_candidates(
    tx: Tx, shared: Sequence[LogRange], terms: Sequence[Sequence[str]], wanted: DocumentFilter, limit: int
) -> list[list[Candidate]]:
    """For each term, list the newest documents in shared log ranges, from `to_shared`, that have all its words.

    An overview is shared with its session, and not with a part of its log.
    """
    logs = None if wanted.log_ids is None else set(wanted.log_ids)
    by_log: dict[int, list[LogRange]] = {}
    for each in shared:
        if logs is None or each.log_id in logs:
            by_log.setdefault(each.log_id, []).append(each)
    kinds = [[scopes.of_kind(kind) for kind in wanted.kinds]] if wanted.kinds else []
    filters, params = filter_conditions(wanted)
    sql = (
        f"SELECT {_COLUMNS} FROM ({tx.dialect.text_hits} ORDER BY n DESC LIMIT {MAX_HITS}) AS h"
        f" CROSS JOIN documents d CROSS JOIN ({tx.dialect.ranges}) AS r"
        f" WHERE {' AND '.join(['d.n = h.n AND d.account_id = ?', _IN_RANGE, *filters, _NOT_STALE])}"
        " ORDER BY h.n DESC LIMIT ?"
    )
    found: list[list[Candidate]] = [[] for _ in terms]
    log_ids = list(by_log)
    for first in range(0, len(log_ids), MAX_SCOPES):
        chunk = log_ids[first : first + MAX_SCOPES]
        within = [scopes.of_log(log_id) for log_id in chunk]
        after = [_as_json([each for log_id in chunk for each in by_log[log_id]]), tx.account, *params, limit]
        statements = [(sql, [*tx.dialect.text_query([within, *kinds], words), *after]) for words in terms if words]
        rows = iter(tx.all_of(statements))
        for index, words in enumerate(terms):
            found[index] += [Candidate(*row) for row in next(rows)] if words else []
    if len(log_ids) <= MAX_SCOPES:
        return found
    return [sorted(each, key=lambda candidate: -candidate.n)[:limit] for each in found]


def owners_of_ranges(tx: Tx, ranges: Sequence[LogRange], limit: int) -> list[str]:
    """List owners of documents in log ranges, those of the first ranges first."""
    owner = (
        "SELECT d.owner_id FROM documents d WHERE d.account_id = ? AND d.log_id = r.log_id AND d.kind = 'message'"
        " ORDER BY d.number LIMIT 1"
    )
    searched = _as_json(list(ranges)[:MAX_OWNER_RANGES])
    rows = tx.all(f"SELECT ({owner}) FROM ({tx.dialect.ranges}) AS r", (tx.account, searched))
    return [owner_id for owner_id in dict.fromkeys(row[0] for row in rows) if owner_id is not None][:limit]


def filter_conditions(wanted: DocumentFilter) -> tuple[list[str], list[str | int]]:
    """Return SQL conditions on `documents d`, with their parameters."""
    where, params = list[str](), list[str | int]()
    lists: tuple[tuple[str, Sequence[str | int]], ...] = (("d.kind", wanted.kinds), ("d.level", wanted.levels))
    for column, values in lists:
        if values:
            where.append(f"{column} IN ({', '.join('?' * len(values))})")
            params += values
    for condition, bound in (("d.created_at >= ?", wanted.since), ("d.created_at < ?", wanted.until)):
        if bound is not None:
            where.append(condition)
            params.append(bound)
    for tag in wanted.tags:
        where.append("d.tags LIKE ? ESCAPE '!'")
        params.append(f"%{_escape(msgspec.json.encode(tag).decode())}%")
    return where, params


def _escape(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _as_json(ranges: Sequence[LogRange]) -> str:
    """Encode log ranges as JSON, each document in one of them at most."""
    merged: list[tuple[int, int, int]] = []
    for each in sorted(ranges, key=lambda each: (each.log_id, each.first)):
        if merged and merged[-1][0] == each.log_id and each.first <= merged[-1][2] + 1:
            merged[-1] = each.log_id, merged[-1][1], max(merged[-1][2], each.last)
        else:
            merged.append((each.log_id, each.first, each.last))
    return msgspec.json.encode(merged).decode()


def pending_ranges(
    tx: Tx, unindexed: list[Row], grantee: Grantee, shared: Sequence[LogRange], wanted: DocumentFilter
) -> list[LogRange]:
    """List ranges of messages that the grantee may read and that are not indexed yet, those that wait shortest first.

    `unindexed` are the rows of `select_unindexed`. A stale log has no valid documents, so all its messages are listed.
    """
    rows = unindexed if len(unindexed) <= MAX_PENDING_LOGS else _readable_unindexed(tx, grantee, shared)
    logs = None if wanted.log_ids is None else set(wanted.log_ids)
    by_log: dict[int, list[LogRange]] = {}
    for each in shared:
        by_log.setdefault(each.log_id, []).append(each)
    found: list[LogRange] = []
    for log_id, is_stale, _, owner_id, indexed_seq, fork_seq, last_document in rows:
        if logs is not None and log_id not in logs:
            continue
        indexed = (last_document if owner_id is None else indexed_seq) or 0
        first = 1 + (fork_seq or 0 if is_stale else indexed)
        is_own = owner_id == grantee.internal_id
        readable = [LogRange(log_id, 1, WHOLE_LOG)] if is_own else by_log.get(log_id, [])
        found += [LogRange(log_id, max(first, each.first), each.last) for each in readable if each.last >= first]
    return found


def select_unindexed(tx: Tx) -> Statement:
    """Return the statement that reads logs of the account which are not indexed yet, those that wait shortest first."""
    of_account = f"{_UNINDEXED_COLUMNS} unindexed u WHERE u.account_id = ? {_NEWEST}"
    return _with_sessions(tx, of_account, (tx.account, MAX_PENDING_LOGS + 1))


def _readable_unindexed(tx: Tx, grantee: Grantee, shared: Sequence[LogRange]) -> list[Row]:
    """Read the grantee's own logs and the shared ones that are not indexed yet, whatever else waits."""
    joined = "CROSS JOIN unindexed u WHERE u.account_id = ? AND u.log_id"
    own = f"{_UNINDEXED_COLUMNS} sessions o {joined} = o.log_id AND o.account_id = ? AND o.user_id = ? {_NEWEST}"
    others = f"{_UNINDEXED_COLUMNS} ({tx.dialect.ranges}) AS r {joined} = r.log_id {_NEWEST}"
    log_ids = dict.fromkeys((each.log_id, 1, 1) for each in shared)
    own_params = (tx.account, tx.account, grantee.internal_id, MAX_SHARED_RANGES)
    other_params = (msgspec.json.encode(list(log_ids)).decode(), tx.account, MAX_SHARED_RANGES)
    found = tx.all_of([_with_sessions(tx, own, own_params), _with_sessions(tx, others, other_params)])
    return sorted([row for rows in found for row in rows], key=lambda row: row[2], reverse=True)


def _with_sessions(tx: Tx, select: str, params: Sequence[str | int]) -> Statement:
    """Add to unindexed logs what is known of their sessions and documents."""
    sql = (
        "SELECT u.log_id, u.is_stale, u.due_at, s.user_id, s.indexed_seq, s.fork_seq,"
        " (SELECT MAX(d.number) FROM documents d"
        " WHERE d.account_id = u.account_id AND d.log_id = u.log_id AND d.kind = 'message')"
        f" FROM ({select}) AS u LEFT JOIN sessions s ON s.account_id = u.account_id AND s.log_id = u.log_id"
        " WHERE u.account_id = ? ORDER BY u.due_at DESC"
    )
    return sql, (*params, tx.account)


def sessions_of_documents(tx: Tx, grantee: Grantee, places: Sequence[tuple[int, int]]) -> list[StoredSession | None]:
    """For each log and sequence number, find the session through which the grantee may read it, or None.

    It is the session of the log; if the grantee may not read that one, a fork that shares the message.
    """
    log_ids = sorted({log_id for log_id, _ in places})
    direct: dict[int, StoredSession] = {}
    for first in range(0, len(log_ids), _CHUNK):
        chunk = log_ids[first : first + _CHUNK]
        for row in _readable_sessions(tx, grantee, f"s.account_id = ? AND s.log_id IN ({_marks(chunk)})", chunk):
            session = StoredSession(*row)
            direct[session.log_id] = session
    orphans = [log_id for log_id in log_ids if log_id not in direct]
    forks = _find_forks(tx, grantee, orphans) if orphans else {}
    return [
        direct.get(log_id)
        or next((fork for fork, each in forks.get(log_id, []) if each.first <= seq <= each.last), None)
        for log_id, seq in places
    ]


def _find_forks(tx: Tx, grantee: Grantee, log_ids: Sequence[int]) -> dict[int, list[tuple[StoredSession, LogRange]]]:
    """Find the readable sessions that share parts of logs, own ones first, by the log."""
    found: dict[int, list[tuple[StoredSession, LogRange]]] = {}
    for first in range(0, len(log_ids), _CHUNK):
        chunk = log_ids[first : first + _CHUNK]
        rows = tx.all(
            "SELECT base_id, first_seq, last_seq, log_id FROM lineage"
            f" WHERE account_id = ? AND base_id IN ({_marks(chunk)}) ORDER BY log_id DESC LIMIT ?",
            (tx.account, *chunk, MAX_SHARED_RANGES),
        )
        fork_ids = sorted({row[3] for row in rows})
        sessions: dict[int, StoredSession] = {}
        for start in range(0, len(fork_ids), _CHUNK):
            part = fork_ids[start : start + _CHUNK]
            for row in _readable_sessions(tx, grantee, f"s.account_id = ? AND s.log_id IN ({_marks(part)})", part):
                session = StoredSession(*row)
                sessions[session.log_id] = session
        for base_id, first_seq, last_seq, log_id in rows:
            if log_id in sessions:
                found.setdefault(base_id, []).append((sessions[log_id], LogRange(base_id, first_seq, last_seq)))
    for forks in found.values():
        forks.sort(key=lambda fork: fork[0].owner_id != grantee.internal_id)
    return found


def _readable_sessions(tx: Tx, grantee: Grantee, condition: str, params: Sequence[int]) -> list[tuple[Any, ...]]:
    rights_params = (grantee.internal_id, tx.account, grantee.internal_id, grantee.agent_id)
    select = select_sessions(condition, rights=_RIGHTS, has_lateral_joins=tx.dialect.has_lateral_joins)
    rows = tx.all(select, (*rights_params, tx.account, *params))
    return [row for row in rows if row[-1] is not None]


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
