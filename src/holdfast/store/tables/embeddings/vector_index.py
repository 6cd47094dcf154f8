"""An index of the vectors of owners who have many, with the extension `vector` of PostgreSQL.

Each space has a table with a copy of these vectors as `halfvec`, and an HNSW index on it. The rows of `vectors` stay
what counts: the table can be dropped at any time. It has the same policy as other tables, and the rows of an account
are deleted with the account.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.database import Statement, Tx
from holdfast.store.tables.embeddings.vectors import VectorFilter
from holdfast.store.tables.lineage import WHOLE_LOG

M = 24
EF_CONSTRUCTION = 128
"""The parameters of the index. With 16 and 64, a search finds .02 less of the 100 nearest of 100,000 vectors."""
MIN_EF_SEARCH, MAX_EF_SEARCH = 400, 1_000
MAX_SCANNED = 50_000
"""How many vectors a search looks at, if a filter allows few of them."""
MAX_DIMENSIONS = 4_000
"""The longest vectors that the extension can index."""
BUILD_MEMORY = "256MB"
_OF_SPACE = "account_id = ? AND owner_id = ? AND space = ?"


class IndexedHit(NamedTuple):
    n: int
    cosine: float


def is_available(tx: Tx) -> bool:
    """Whether the database has the extension. Only a superuser can create it."""
    if not tx.dialect.can_index_vectors:
        return False
    return tx.one("SELECT 1 FROM pg_extension WHERE extname = 'vector'") is not None


def table_of(space: str) -> str:
    return f"vector_index_{hashlib.blake2b(space.encode(), digest_size=8).hexdigest()}"


def indexed_version(tx: Tx, owner_id: str, space: str) -> int | None:
    """The version up to which the vectors of an owner are in the index, or None if they are not."""
    if not tx.dialect.can_index_vectors:
        return None
    rows = tx.all(*select_indexed_version(tx, owner_id, space))
    return int(rows[0][0]) if rows else None


def select_indexed_version(tx: Tx, owner_id: str, space: str) -> Statement:
    return f"SELECT version FROM indexed_vectors WHERE {_OF_SPACE}", (tx.account, owner_id, space)


def store_indexed_version(tx: Tx, owner_id: str, space: str, version: int) -> None:
    tx.execute(
        "INSERT INTO indexed_vectors (account_id, owner_id, space, version) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (account_id, owner_id, space) DO UPDATE SET version = excluded.version",
        (tx.account, owner_id, space, version),
    )


def create_table(tx: Tx, space: str, dimensions: int) -> None:
    """Create the table of a space without its index, unless it exists."""
    table = table_of(space)
    if tx.one("SELECT to_regclass(?)", (table,)) != (None,):
        return
    tx.run_script(
        f"CREATE TABLE {table} (n bigint NOT NULL PRIMARY KEY,"
        " account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE, owner_id text NOT NULL,"
        f" vector halfvec({int(dimensions)}) NOT NULL);"
        f" CREATE INDEX {table}_by_owner ON {table} (account_id, owner_id);"
        f" ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY;"
        f" CREATE POLICY own_account ON {table}"
        " USING (current_setting('holdfast.account', true) IN (account_id, '*'))"
    )


def create_index(tx: Tx, space: str) -> None:
    """Create the index of a space, unless it exists, and update the statistics of the planner."""
    tx.allow_long_statements()
    table = table_of(space)
    if tx.one("SELECT to_regclass(?)", (f"{table}_hnsw",)) == (None,):
        tx.run_script(
            f"SET LOCAL maintenance_work_mem = '{BUILD_MEMORY}'; CREATE INDEX {table}_hnsw ON {table}"
            f" USING hnsw (vector halfvec_ip_ops) WITH (m = {M}, ef_construction = {EF_CONSTRUCTION})"
        )
    tx.run_script(f"ANALYZE {table}")


def insert(tx: Tx, owner_id: str, space: str, rows: Sequence[tuple[int, str]]) -> None:
    """Add vectors in the text form of the extension."""
    if not rows:
        return
    params: list[str | int] = []
    for n, vector in rows:
        params += (n, tx.account, owner_id, vector)
    tx.execute(
        f"INSERT INTO {table_of(space)} (n, account_id, owner_id, vector)"
        f" VALUES {', '.join(['(?, ?, ?, ?::halfvec)'] * len(rows))}"
        " ON CONFLICT (n) DO UPDATE SET vector = excluded.vector, owner_id = excluded.owner_id",
        params,
    )


def delete_missing(tx: Tx, owner_id: str, space: str) -> None:
    """Delete the vectors of documents that do not exist any more."""
    tx.execute(
        f"DELETE FROM {table_of(space)} i WHERE i.account_id = ? AND i.owner_id = ? AND NOT EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.account_id = i.account_id AND v.owner_id = i.owner_id AND v.space = ?"
        " AND v.n = i.n)",
        (tx.account, owner_id, space),
    )


def nearest(tx: Tx, owner_id: str, space: str, query: str, k: int, wanted: VectorFilter) -> list[IndexedHit]:
    """Find the `k` nearest vectors of documents that a filter allows. `query` is in the text form of the extension."""
    condition, params = _condition(wanted)
    ef_search = min(max(MIN_EF_SEARCH, 4 * k), MAX_EF_SEARCH)
    settings = {
        "hnsw.ef_search": str(ef_search),
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": str(MAX_SCANNED),
        # Only the index returns vectors in their order, and only a nested loop keeps it.
        "enable_sort": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
    }
    select = (
        f"SELECT i.n, -(i.vector <#> ?::halfvec) FROM {table_of(space)} i"
        " JOIN documents d ON d.n = i.n AND d.account_id = i.account_id"
        f" WHERE i.account_id = ? AND i.owner_id = ? AND d.owner_id = i.owner_id AND {condition}"
        " ORDER BY i.vector <#> ?::halfvec LIMIT ?"
    )
    _, rows, _ = tx.all_of(
        [
            _set_config(settings),
            (select, (query, tx.account, owner_id, *params, query, k)),
            _set_config(dict.fromkeys((name for name in settings if name.startswith("enable_")), "on")),
        ]
    )
    return [IndexedHit(n, float(cosine)) for n, cosine in rows]


def _set_config(settings: dict[str, str]) -> Statement:
    calls = ", ".join(["set_config(?, ?, true)"] * len(settings))
    return f"SELECT {calls}", [text for pair in settings.items() for text in pair]


def _condition(wanted: VectorFilter) -> tuple[str, list[str | int]]:
    """A filter as a condition on documents `d`, with its parameters."""
    conditions, params = ["TRUE"], list[str | int]()
    for column, values in (("d.kind", wanted.kinds), ("d.level", wanted.levels)):
        if values:
            conditions.append(f"{column} IN ({', '.join('?' * len(values))})")
            params += values
    if wanted.without_logs:
        conditions.append(f"d.log_id NOT IN ({', '.join('?' * len(wanted.without_logs))})")
        params += wanted.without_logs
    if wanted.since is not None:
        conditions.append("d.created_at >= ?")
        params.append(wanted.since)
    if wanted.until is not None:
        conditions.append("d.created_at < ?")
        params.append(wanted.until)
    if wanted.ranges is not None:
        alternatives = ["FALSE"]
        whole = [each.log_id for each in wanted.ranges if each.last >= WHOLE_LOG]
        if whole:
            alternatives.append(f"d.log_id IN ({', '.join('?' * len(whole))})")
            params += whole
        for each in wanted.ranges:
            if each.last < WHOLE_LOG:
                alternatives.append("d.log_id = ? AND d.kind = 'message' AND d.number BETWEEN ? AND ?")
                params += (each.log_id, each.first, each.last)
        conditions.append(f"({' OR '.join(alternatives)})")
    return " AND ".join(conditions), params


def delete_account(tx: Tx, space: str) -> None:
    """Delete what the index of a space has of the account."""
    if not tx.dialect.can_index_vectors:
        return
    if tx.one("SELECT to_regclass(?)", (table_of(space),)) != (None,):
        tx.execute(f"DELETE FROM {table_of(space)} WHERE account_id = ?", (tx.account,))
    tx.execute("DELETE FROM indexed_vectors WHERE account_id = ? AND space = ?", (tx.account, space))
