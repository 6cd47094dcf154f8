"""Large tool outputs: the content once per account by its hash, and which message parts show it."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.model.messages import ToolResult, ToolResultSlice
from holdfast.store.database import Tx
from holdfast.store.tables.lineage import LogRange
from holdfast.store.timestamps import from_micros


class Output(msgspec.Struct, frozen=True):
    """An output that is too large for its message: the `part`-th part of the `message`-th of an append."""

    message: int
    part: int
    hash: str
    content: str
    tool_id: str
    tool_name: str


def insert(tx: Tx, log_id: int, seq: int, output: Output, created_at: int) -> None:
    tx.execute(
        "INSERT INTO blobs (account_id, hash, chars, refs, content) VALUES (?, ?, ?, 1, ?)"
        " ON CONFLICT (account_id, hash) DO UPDATE SET refs = blobs.refs + 1",
        (tx.account, output.hash, len(output.content), output.content),
    )
    tx.execute(
        "INSERT INTO tool_results (account_id, log_id, seq, part, hash, tool_id, tool_name, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, log_id, seq, output.part, output.hash, output.tool_id, output.tool_name, created_at),
    )


def newest(tx: Tx, log_ranges: Sequence[LogRange], tool_name: str | None, limit: int) -> list[ToolResult]:
    named, name = ("", []) if tool_name is None else (" AND t.tool_name = ?", [tool_name])
    results: list[ToolResult] = []
    for stretch in reversed(log_ranges):
        rows = tx.all(
            "SELECT t.hash, t.tool_id, t.tool_name, t.seq, b.chars, t.created_at FROM tool_results t"
            " JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
            f" WHERE t.account_id = ? AND t.log_id = ? AND t.seq BETWEEN ? AND ?{named}"
            " ORDER BY t.seq DESC, t.part DESC LIMIT ?",
            (tx.account, stretch.log_id, stretch.first, stretch.last, *name, limit - len(results)),
        )
        results += [
            ToolResult(
                tool_result_id=row[0],
                tool_id=row[1],
                tool_name=row[2],
                seq=row[3],
                chars=row[4],
                created_at=from_micros(row[5]),
            )
            for row in rows
        ]
        if len(results) == limit:
            break
    return results


def count(tx: Tx, log_ranges: Sequence[LogRange]) -> int:
    rows = [
        tx.one(
            "SELECT COUNT(*) FROM tool_results WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?",
            (tx.account, stretch.log_id, stretch.first, stretch.last),
        )
        for stretch in log_ranges
    ]
    return sum(row[0] for row in rows if row)


def read(
    tx: Tx, log_ranges: Sequence[LogRange], tool_result_id: str, offset: int, limit: int | None
) -> ToolResultSlice | None:
    """Characters `offset` to `offset + limit` of an output that a message of `log_ranges` shows."""
    for stretch in log_ranges:
        row = tx.one(
            "SELECT t.tool_name, SUBSTR(b.content, ?, ?), b.chars FROM tool_results t"
            " JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
            " WHERE t.account_id = ? AND t.log_id = ? AND t.seq BETWEEN ? AND ? AND t.hash = ? LIMIT 1",
            (
                offset + 1,
                limit or 2**31 - 1,
                tx.account,
                stretch.log_id,
                stretch.first,
                stretch.last,
                tool_result_id,
            ),
        )
        if row:
            tool_name, content, chars = row
            return ToolResultSlice(
                tool_result_id=tool_result_id,
                tool_name=tool_name,
                content=content,
                offset=offset,
                chars=chars,
                has_more=offset + len(content) < chars,
            )
    return None


def content(tx: Tx, tool_result_id: str) -> str | None:
    """The whole output that a message of this account names."""
    row = tx.one("SELECT content FROM blobs WHERE account_id = ? AND hash = ?", (tx.account, tool_result_id))
    return None if row is None else str(row[0])


def delete_after(tx: Tx, ends: Sequence[tuple[int, int]]) -> None:
    """Drop what messages behind the `seq` of each log show; content that nobody shows any more goes with it."""
    behind = "account_id = ? AND log_id = ? AND seq > ?"
    shown: Counter[str] = Counter()
    for log_id, seq in ends:
        rows = tx.all(f"SELECT hash FROM tool_results WHERE {behind}", (tx.account, log_id, seq))
        shown.update(row[0] for row in rows)
    # In one order for everyone: two transactions that share outputs must not wait for each other in a circle.
    for hash_, times in sorted(shown.items()):
        tx.execute("UPDATE blobs SET refs = refs - ? WHERE account_id = ? AND hash = ?", (times, tx.account, hash_))
        tx.execute("DELETE FROM blobs WHERE account_id = ? AND hash = ? AND refs <= 0", (tx.account, hash_))
    for log_id, seq in ends:
        tx.execute(f"DELETE FROM tool_results WHERE {behind}", (tx.account, log_id, seq))
