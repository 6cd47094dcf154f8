"""Contexts and skills that a session used, and how often and when each user used a document."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from holdfast.json_documents import json_decoder
from holdfast.model.sessions import SkillUse, Usage
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros

_OVERHEAD_BYTES = 200
"""The approximate size of a use in a response, without its details."""
MAX_COUNTED_BYTES = 1_000
"""A longer address is not counted: an index cannot hold it."""
_URIS_AT_ONCE = 500
"""How many addresses one statement selects."""
_decode_skill = json_decoder(SkillUse).decode


class Use(msgspec.Struct, frozen=True):
    kind: Literal["context", "skill"]
    uri: str
    detail: str | None
    """JSON with the input, output and success of a skill."""


def insert(tx: Tx, id: str, log_id: int, author: str, use: Use, now: int) -> None:
    tx.execute(
        "INSERT INTO usages (account_id, log_id, id, kind, uri, detail, author, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, log_id, id, use.kind, use.uri, use.detail, author, now),
    )


def read(tx: Tx, log_id: int, after: str | None, limit: int, *, skip: int = 0) -> list[Usage]:
    """Read usages in the order in which they were recorded, starting after the id `after` and `skip` more usages."""
    rows = tx.all(
        "SELECT id, kind, uri, detail, created_at FROM usages WHERE account_id = ? AND log_id = ? AND id > ?"
        " ORDER BY id LIMIT ? OFFSET ?",
        (tx.account, log_id, after or "", limit, skip),
    )
    return [_usage(*row) for row in rows]


def read_page(tx: Tx, log_id: int, after: str | None, limit: int) -> tuple[list[Usage], bool]:
    """As `read`, but return at most as much as a read may hold at once, and whether there are more."""
    if not read_memory.is_limited():
        return read(tx, log_id, after, limit), False
    largest = read_memory.largest_row()
    size = f"COALESCE(OCTET_LENGTH(detail), 0) + {_OVERHEAD_BYTES}"
    rows, has_more = tx.all_within(
        f"SELECT id, kind, uri, CASE WHEN {size} <= ? THEN detail END AS detail, created_at, {size} AS bytes"
        " FROM usages WHERE account_id = ? AND log_id = ? AND id > ? ORDER BY id LIMIT ?",
        (largest, tx.account, log_id, after or "", limit),
        read_memory.page_bytes(),
        "id",
    )
    if rows:
        read_memory.require(rows[0][-1])
    return [_usage(*row[:-1]) for row in rows], has_more


def detail_sizes(tx: Tx, log_id: int, after: str | None, limit: int, *, skip: int = 0) -> list[int]:
    """The sizes in bytes of the details of the usages that `read` returns for the same arguments."""
    rows = tx.all(
        "SELECT COALESCE(OCTET_LENGTH(detail), 0) FROM usages WHERE account_id = ? AND log_id = ? AND id > ?"
        " ORDER BY id LIMIT ? OFFSET ?",
        (tx.account, log_id, after or "", limit, skip),
    )
    return [row[0] for row in rows]


def totals(tx: Tx, log_id: int) -> tuple[int, int]:
    """Count the contexts and the skills."""
    rows = tx.all(
        "SELECT kind, COUNT(*) FROM usages WHERE account_id = ? AND log_id = ? GROUP BY kind",
        (tx.account, log_id),
    )
    counts: dict[str, int] = dict(rows)
    return counts.get("context", 0), counts.get("skill", 0)


def used_between(tx: Tx, log_id: int, after: int, through: int, limit: int) -> list[tuple[str, str, int]]:
    """List the users and addresses of the contexts and skills that were recorded in a period, and the last use of each.

    An id begins with its milliseconds. At most `limit`, those that were used last. A skill without an address is not
    listed: there is no document that its use could raise.
    """
    rows = tx.all(
        "SELECT author, uri, MAX(created_at) FROM usages WHERE account_id = ? AND log_id = ? AND id >= ? AND id < ?"
        " AND uri <> '' GROUP BY author, uri ORDER BY 3 DESC, 1, 2 LIMIT ?",
        (tx.account, log_id, f"use_{after // 1_000 + 1:012x}", f"use_{through // 1_000 + 1:012x}", limit),
    )
    return [(author, uri, used_at) for author, uri, used_at in rows]


def count(tx: Tx, owner_id: str, used: Mapping[str, int]) -> None:
    """Count a use of each address by a user. `used` has the times of the last uses, in microseconds."""
    for uri, used_at in sorted(used.items()):  # transactions that lock rows in the same order cannot deadlock
        if len(uri.encode()) > MAX_COUNTED_BYTES:
            continue
        tx.execute(
            "INSERT INTO document_uses (account_id, owner_id, uri, active_count, last_used_at) VALUES (?, ?, ?, 1, ?)"
            " ON CONFLICT (account_id, owner_id, uri) DO UPDATE SET active_count = document_uses.active_count + 1,"
            " last_used_at = CASE WHEN document_uses.last_used_at > excluded.last_used_at"
            " THEN document_uses.last_used_at ELSE excluded.last_used_at END",
            (tx.account, owner_id, uri, used_at),
        )


def find_counts(tx: Tx, owner_id: str, uris: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return how often a user used documents, and when last, by address. Without a use, an address is missing."""
    found: dict[str, tuple[int, int]] = {}
    for at in range(0, len(uris), _URIS_AT_ONCE):
        some = uris[at : at + _URIS_AT_ONCE]
        rows = tx.all(
            "SELECT uri, active_count, last_used_at FROM document_uses"
            f" WHERE account_id = ? AND owner_id = ? AND uri IN ({', '.join('?' * len(some))})",
            (tx.account, owner_id, *some),
        )
        found |= {uri: (count, used_at) for uri, count, used_at in rows}
    return found


def has_counts(tx: Tx, owner_id: str) -> bool:
    """Whether any use by a user was counted."""
    sql = "SELECT 1 FROM document_uses WHERE account_id = ? AND owner_id = ? LIMIT 1"
    return tx.one(sql, (tx.account, owner_id)) is not None


def forget_below(tx: Tx, uri: str) -> None:
    """Forget how users used what is at or below an address: another document may get the same address."""
    tx.execute(
        "DELETE FROM document_uses WHERE account_id = ? AND (uri = ? OR SUBSTR(uri, 1, ?) IN (?, ?))",
        (tx.account, uri, len(uri) + 1, f"{uri}#", f"{uri}/"),
    )


def _usage(id: str, kind: Literal["context", "skill"], uri: str, detail: str | None, created_at: int) -> Usage:
    skill = SkillUse(uri) if detail is None else _decode_skill(detail)
    return Usage(
        id=id,
        kind=kind,
        uri=uri,
        input=skill.input,
        output=skill.output,
        success=skill.success,
        created_at=from_micros(created_at),
    )
