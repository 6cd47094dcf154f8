"""Which tools a session called, and in which messages."""

from collections.abc import Sequence

from holdfast.store.database import Tx
from holdfast.store.tables.lineage import LogRange


def is_any(tx: Tx, log_ranges: Sequence[LogRange]) -> bool:
    where, params = _within(tx, log_ranges)
    return tx.one(f"SELECT 1 FROM calls WHERE {where} LIMIT 1", params) is not None


def tool_ids(tx: Tx, log_ranges: Sequence[LogRange], *, after: str, limit: int) -> list[str]:
    """Each once, in the order of their names, behind `after`."""
    where, params = _within(tx, log_ranges)
    rows = tx.all(
        f"SELECT DISTINCT tool_id FROM calls WHERE {where} AND tool_id > ? ORDER BY tool_id LIMIT ?",
        (*params, after, limit),
    )
    return [row[0] for row in rows]


def speaking_of(tx: Tx, log_ranges: Sequence[LogRange], tool_id: str, limit: int) -> list[LogRange]:
    """The messages that make or answer a call, as stretches of one."""
    where, params = _within(tx, log_ranges)
    rows = tx.all(
        f"SELECT log_id, seq FROM calls WHERE {where} AND tool_id = ? ORDER BY seq LIMIT ?", (*params, tool_id, limit)
    )
    return [LogRange(log_id, seq, seq) for log_id, seq in rows]


def _within(tx: Tx, log_ranges: Sequence[LogRange]) -> tuple[str, list[str | int]]:
    params: list[str | int] = [tx.account]
    for stretch in log_ranges:
        params += [stretch.log_id, stretch.first, stretch.last]
    any_of = " OR ".join(["(log_id = ? AND seq BETWEEN ? AND ?)"] * len(log_ranges)) or "FALSE"
    return f"account_id = ? AND ({any_of})", params
