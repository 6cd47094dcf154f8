"""Tool calls: which messages make or answer which call."""

from collections.abc import Iterable, Sequence

from holdfast.model.parts import OPEN_TOOL_STATUSES, Part, ToolPart
from holdfast.store.database import Tx
from holdfast.store.tables.lineage import LogRange


def insert(tx: Tx, log_id: int, seq: int, parts: Iterable[Part]) -> None:
    """Record the calls that the parts of a message make or answer."""
    open_by_id: dict[str, bool] = {}
    for part in parts:
        if type(part) is ToolPart and part.tool_id:
            is_open = part.tool_status in OPEN_TOOL_STATUSES and part.tool_output in (None, "")
            open_by_id[part.tool_id] = open_by_id.get(part.tool_id, True) and is_open
    for tool_id, is_open in open_by_id.items():
        tx.execute(
            "INSERT INTO calls (account_id, log_id, seq, tool_id, is_open) VALUES (?, ?, ?, ?, ?)",
            (tx.account, log_id, seq, tool_id, int(is_open)),
        )


def read_calls(tx: Tx, log_ranges: Sequence[LogRange]) -> list[tuple[int, str, bool]]:
    """List (message seq, call id, is open) in order of seq. An open call is made in that message but not answered."""
    rows: list[tuple[int, str, bool]] = []
    for log_range in log_ranges:
        rows += [
            (seq, tool_id, bool(is_open))
            for seq, tool_id, is_open in tx.all(
                "SELECT seq, tool_id, is_open FROM calls WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
                " ORDER BY seq",
                (tx.account, log_range.log_id, log_range.first, log_range.last),
            )
        ]
    return rows


def has_any(tx: Tx, log_ranges: Sequence[LogRange]) -> bool:
    """Whether any message in the ranges makes or answers a call."""
    where, params = _in_ranges(tx, log_ranges)
    return tx.one(f"SELECT 1 FROM calls WHERE {where} LIMIT 1", params) is not None


def seqs_of_call(tx: Tx, log_range: LogRange, tool_id: str, limit: int) -> list[int]:
    """The first messages of a range that make or answer a call."""
    rows = tx.all(
        "SELECT seq FROM calls WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ? AND tool_id = ?"
        " ORDER BY seq LIMIT ?",
        (tx.account, log_range.log_id, log_range.first, log_range.last, tool_id, limit),
    )
    return [row[0] for row in rows]


def delete_after(tx: Tx, log_id: int, seq: int) -> None:
    """Delete the calls of all messages of a log after `seq`."""
    tx.execute("DELETE FROM calls WHERE account_id = ? AND log_id = ? AND seq > ?", (tx.account, log_id, seq))


def _in_ranges(tx: Tx, log_ranges: Sequence[LogRange]) -> tuple[str, list[str | int]]:
    """A WHERE condition that matches the messages in the ranges, and its parameters."""
    params: list[str | int] = [tx.account]
    for log_range in log_ranges:
        params += [log_range.log_id, log_range.first, log_range.last]
    condition = " OR ".join(["(log_id = ? AND seq BETWEEN ? AND ?)"] * len(log_ranges)) or "FALSE"
    return f"account_id = ? AND ({condition})", params
