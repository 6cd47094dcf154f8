"""Which messages speak of which tool call, so that a call and its result can be kept together."""

from collections.abc import Iterable, Sequence

from holdfast.model.parts import Part, ToolPart
from holdfast.store.database import Tx
from holdfast.store.tables.lineage import LogRange

UNANSWERED = {"pending", "running"}


def insert(tx: Tx, log_id: int, seq: int, said: Iterable[Part]) -> None:
    """Note the calls that a message makes or answers."""
    found: dict[str, bool] = {}
    for part in said:
        if type(part) is ToolPart and part.tool_id:
            is_open = part.tool_status in UNANSWERED and part.tool_output in (None, "")
            found[part.tool_id] = found.get(part.tool_id, True) and is_open
    for tool_id, is_open in found.items():
        tx.execute(
            "INSERT INTO calls (account_id, log_id, seq, tool_id, is_open) VALUES (?, ?, ?, ?, ?)",
            (tx.account, log_id, seq, tool_id, int(is_open)),
        )


def read(tx: Tx, log_ranges: Sequence[LogRange]) -> list[tuple[int, str, bool]]:
    """Message, call, and whether the call is only made there, in order."""
    rows: list[tuple[int, str, bool]] = []
    for stretch in log_ranges:
        rows += [
            (seq, tool_id, bool(is_open))
            for seq, tool_id, is_open in tx.all(
                "SELECT seq, tool_id, is_open FROM calls WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
                " ORDER BY seq",
                (tx.account, stretch.log_id, stretch.first, stretch.last),
            )
        ]
    return rows


def delete_after(tx: Tx, log_id: int, seq: int) -> None:
    tx.execute("DELETE FROM calls WHERE account_id = ? AND log_id = ? AND seq > ?", (tx.account, log_id, seq))
