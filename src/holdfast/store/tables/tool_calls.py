"""Which tools a session called, and in which messages."""

from collections.abc import Sequence

from holdfast.store.database import Tx
from holdfast.store.tables.lineage import Stretch


def is_any(tx: Tx, stretches: Sequence[Stretch]) -> bool:
    where, params = _within(tx, stretches)
    return tx.one(f"SELECT 1 FROM calls WHERE {where} LIMIT 1", params) is not None


def tool_ids(tx: Tx, stretches: Sequence[Stretch], *, after: str, limit: int) -> list[str]:
    """Each once, in the order of their names, behind `after`."""
    where, params = _within(tx, stretches)
    rows = tx.all(
        f"SELECT DISTINCT tool_id FROM calls WHERE {where} AND tool_id > ? ORDER BY tool_id LIMIT ?",
        (*params, after, limit),
    )
    return [row[0] for row in rows]


def speaking_of(tx: Tx, stretches: Sequence[Stretch], tool_id: str, limit: int) -> list[Stretch]:
    """The messages that make or answer a call, as stretches of one."""
    where, params = _within(tx, stretches)
    rows = tx.all(
        f"SELECT log_id, seq FROM calls WHERE {where} AND tool_id = ? ORDER BY seq LIMIT ?", (*params, tool_id, limit)
    )
    return [Stretch(log_id, seq, seq) for log_id, seq in rows]


def _within(tx: Tx, stretches: Sequence[Stretch]) -> tuple[str, list[str | int]]:
    params: list[str | int] = [tx.account]
    for stretch in stretches:
        params += [stretch.log_id, stretch.first, stretch.last]
    any_of = " OR ".join(["(log_id = ? AND seq BETWEEN ? AND ?)"] * len(stretches)) or "FALSE"
    return f"account_id = ? AND ({any_of})", params
