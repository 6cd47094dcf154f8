"""Large tool outputs. The content is stored once per account by its hash; rows link it to message parts."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.errors import DataDamagedError
from holdfast.model.messages import ToolResult, ToolResultSlice
from holdfast.store import read_memory
from holdfast.store.database import Params, Row, Tx
from holdfast.store.tables.lineage import LogRange
from holdfast.store.timestamps import from_micros


class LargeOutput(msgspec.Struct, frozen=True):
    """A tool output that is too large to be stored in its message."""

    message_index: int
    """The position of the message in its append."""
    part_index: int
    """The position of the part in its message."""
    hash: str
    content: str
    tool_id: str
    tool_name: str


def insert(tx: Tx, log_id: int, seq: int, output: LargeOutput, created_at: int) -> None:
    tx.execute(
        "INSERT INTO blobs (account_id, hash, chars, refs, content) VALUES (?, ?, ?, 1, ?)"
        " ON CONFLICT (account_id, hash) DO UPDATE SET refs = blobs.refs + 1",
        (tx.account, output.hash, len(output.content), output.content),
    )
    tx.execute(
        "INSERT INTO tool_results (account_id, log_id, seq, part, hash, tool_id, tool_name, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, log_id, seq, output.part_index, output.hash, output.tool_id, output.tool_name, created_at),
    )


def list_newest(tx: Tx, log_ranges: Sequence[LogRange], tool_name: str | None, limit: int) -> list[ToolResult]:
    name_condition, name_params = ("", []) if tool_name is None else (" AND t.tool_name = ?", [tool_name])
    results: list[ToolResult] = []
    for log_range in reversed(log_ranges):
        rows = tx.all(
            "SELECT t.hash, t.tool_id, t.tool_name, t.seq, b.chars, t.created_at FROM tool_results t"
            " JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
            f" WHERE t.account_id = ? AND t.log_id = ? AND t.seq BETWEEN ? AND ?{name_condition}"
            " ORDER BY t.seq DESC, t.part DESC LIMIT ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last, *name_params, limit - len(results)),
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


def seqs_with_outputs(tx: Tx, log_range: LogRange) -> list[int]:
    """List the sequence numbers of the messages that have large outputs, in order."""
    rows = tx.all(
        "SELECT DISTINCT seq FROM tool_results WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?"
        " ORDER BY seq",
        (tx.account, log_range.log_id, log_range.first, log_range.last),
    )
    return [row[0] for row in rows]


def count(tx: Tx, log_ranges: Sequence[LogRange]) -> int:
    rows = [
        tx.one(
            "SELECT COUNT(*) FROM tool_results WHERE account_id = ? AND log_id = ? AND seq BETWEEN ? AND ?",
            (tx.account, log_range.log_id, log_range.first, log_range.last),
        )
        for log_range in log_ranges
    ]
    return sum(row[0] for row in rows if row)


def read(
    tx: Tx, log_ranges: Sequence[LogRange], tool_result_id: str, offset: int, limit: int | None
) -> ToolResultSlice | None:
    """Read the characters from `offset` to `offset + limit` of an output in a message of `log_ranges`."""
    for log_range in log_ranges:
        row = _find(
            tx,
            tool_result_id,
            # To check a part of a text, the whole text is read.
            "SELECT t.tool_name, CASE WHEN OCTET_LENGTH(b.content) <= ? THEN b.content END, b.chars,"
            " OCTET_LENGTH(b.content) FROM tool_results t"
            " JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
            " WHERE t.account_id = ? AND t.log_id = ? AND t.seq BETWEEN ? AND ? AND t.hash = ? LIMIT 1",
            (
                read_memory.largest_row(),
                tx.account,
                log_range.log_id,
                log_range.first,
                log_range.last,
                tool_result_id,
            ),
        )
        if row:
            tool_name, whole, chars, size = row
            read_memory.require(size)
            if _is_damaged(tool_result_id, whole) or len(whole) != chars:
                raise damage_error(tool_result_id)
            content = whole[offset : None if limit is None else offset + limit]
            return ToolResultSlice(
                tool_result_id=tool_result_id,
                tool_name=tool_name,
                content=content,
                offset=offset,
                chars=chars,
                has_more=offset + len(content) < chars,
            )
    return None


def _find(tx: Tx, tool_result_id: str, sql: str, params: Params) -> Row | None:
    try:
        return tx.one(sql, params)
    except tx.dialect.unreadable_row:
        raise damage_error(tool_result_id) from None


def list_of_tool(
    tx: Tx, log_ranges: Sequence[LogRange], tool_id: str, tool_result_id: str | None = None
) -> list[tuple[str, int]]:
    """List the outputs of a tool id, or only the given one: their ids and their sizes in bytes, by first use."""
    id_condition, id_params = ("", []) if tool_result_id is None else (" AND t.hash = ?", [tool_result_id])
    sizes: dict[str, int] = {}
    for log_range in log_ranges:
        rows = tx.all(
            "SELECT t.hash, OCTET_LENGTH(b.content) FROM tool_results t"
            " JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
            f" WHERE t.account_id = ? AND t.log_id = ? AND t.seq BETWEEN ? AND ? AND t.tool_id = ?{id_condition}"
            " ORDER BY t.seq, t.part",
            (tx.account, log_range.log_id, log_range.first, log_range.last, tool_id, *id_params),
        )
        sizes |= dict(rows)
    return list(sizes.items())


def read_content(tx: Tx, tool_result_id: str) -> str | None:
    """Read the whole content of an output. None if it does not exist or is damaged."""
    try:
        row = tx.one(
            "SELECT CASE WHEN OCTET_LENGTH(content) <= ? THEN content END, OCTET_LENGTH(content) FROM blobs"
            " WHERE account_id = ? AND hash = ?",
            (read_memory.largest_row(), tx.account, tool_result_id),
        )
    except tx.dialect.unreadable_row:
        return None
    if row is None:
        return None
    read_memory.require(row[1])
    return None if _is_damaged(tool_result_id, row[0]) else str(row[0])


def id_of_content(content: str) -> str:
    """The id of an output: a hash of its content."""
    return f"tr_{hashlib.sha256(content.encode()).hexdigest()[:40]}"


def _is_damaged(tool_result_id: str, content: object) -> bool:
    return not isinstance(content, str) or id_of_content(content) != tool_result_id


def damage_error(tool_result_id: str) -> DataDamagedError:
    return DataDamagedError(f"the tool output {tool_result_id} is damaged", table="blobs", row=tool_result_id)


def sizes(tx: Tx, log_id: int, after: int) -> list[tuple[int, int]]:
    """The message and the number of characters of each output in messages after `after`, newest first."""
    rows = tx.all(
        "SELECT t.seq, b.chars FROM tool_results t JOIN blobs b ON b.account_id = t.account_id AND b.hash = t.hash"
        " WHERE t.account_id = ? AND t.log_id = ? AND t.seq > ? ORDER BY t.seq DESC",
        (tx.account, log_id, after),
    )
    return [(row[0], row[1]) for row in rows]


def delete_after(tx: Tx, log_id: int, seq: int) -> None:
    """Delete the outputs of all messages of a log after `seq`, and content that is no longer referenced."""
    # The rows are deleted first: a reference that two transactions delete is counted by one of them.
    rows = tx.all(
        "DELETE FROM tool_results WHERE account_id = ? AND log_id = ? AND seq > ? RETURNING hash",
        (tx.account, log_id, seq),
    )
    # Sorted: every transaction locks shared content in the same order, which prevents deadlocks.
    for hash_, times in sorted(Counter(row[0] for row in rows).items()):
        tx.execute("UPDATE blobs SET refs = refs - ? WHERE account_id = ? AND hash = ?", (times, tx.account, hash_))
        tx.execute("DELETE FROM blobs WHERE account_id = ? AND hash = ? AND refs <= 0", (tx.account, hash_))
