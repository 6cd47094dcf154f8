"""The audit log: lines that wait to be sealed, and the chain of sealed lines.

A line is written in the transaction of what it records. Sealing gives it its number and its link. On SQLite a line is
sealed in its own transaction, because there is only one writer. On PostgreSQL it waits in `audit_unsealed`, so that
writers of an account do not wait for each other, and a later transaction seals all lines that wait.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, get_args

import msgspec

from holdfast import audit_chain
from holdfast.audit_chain import LineContent
from holdfast.model.audit import AuditLine, AuditOutcome, AuditRecord
from holdfast.store.database import Row, Tx
from holdfast.store.timestamps import from_micros

SLICE_LINES = 500
"""How many lines one transaction seals or removes."""
MAX_COUNTED = 10_001
"""How many unsealed lines are counted."""
_CONTENT = "id, at, user_id, role, action, resource, agent_id, address, key_id, version, outcome"
_RECORD = f"{_CONTENT}, erased_at, number"
_UNSEALED_RECORD = f"{_CONTENT}, NULL, NULL"
_PROVEN = f"{_CONTENT}, salt, digest, link, erased_at, number"
_TEXTS = {*_CONTENT.split(", "), "salt", "digest", "link"} - {"at"}
_HEAD = "number, link, pruned_number, pruned_link"
_ID_TIME_DIGITS = 12
_DAY_MILLIS = 86_400_000

NewSalt = Callable[[], str]
Selection = tuple[str, str, tuple[Any, ...]]
"""The columns that a query selects, the rest of the query, and its parameters."""


class NewLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is not stored yet."""

    id: str
    at: int
    user_id: str
    role: str
    action: str
    resource: str
    agent_id: str = ""
    address: str = ""
    key_id: str = ""
    version: str = ""
    outcome: str = "done"


class Head(msgspec.Struct, frozen=True):
    """The last line of a chain, and the last one that retention has removed."""

    number: int
    link: str
    pruned_number: int
    pruned_link: str


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines are listed. `chat_001` as `resource` also finds `chat_001 rights=read`."""

    resource: str | None = None
    user_id: str | None = None
    action: str | None = None
    outcome: str | None = None
    since: int | None = None
    until: int | None = None
    before: str | None = None


NO_FILTER = Filter()


def empty_head(account_id: str) -> Head:
    """The head of a chain without lines."""
    link = audit_chain.first_link(account_id)
    return Head(0, link, 0, link)


class Sealed(msgspec.Struct, frozen=True):
    """What one transaction has sealed."""

    lines: int
    has_more: bool
    """Whether lines may be left, because there are many or because another transaction seals at this time."""


def record(tx: Tx, line: NewLine, salt: str) -> bool:
    """Write a line, and return whether it is sealed."""
    values = msgspec.structs.astuple(line)
    digest = _digest(tx, values, salt)
    head = None if tx.dialect.lock_row else _head_to_append_to(tx)
    if head is not None:
        _append(tx, head, [(*values, salt, digest)])
        return True
    tx.execute(
        f"INSERT INTO audit_unsealed (account_id, {_CONTENT}, salt, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, *values, salt, digest),
    )
    return False


def _head_to_append_to(tx: Tx) -> Head | None:
    """The head of the chain, or None if other lines must be sealed first."""
    row = tx.one(
        f"SELECT {_HEAD}, EXISTS (SELECT 1 FROM audit_unsealed WHERE account_id = ?) FROM audit_heads"
        " WHERE account_id = ?",
        (tx.account, tx.account),
    )
    if row is not None:
        return None if row[-1] else Head(*row[:-1])
    if count_unsealed(tx):
        return None
    _insert_head(tx)
    return empty_head(tx.account)


def seal(tx: Tx, new_salt: NewSalt, limit: int = SLICE_LINES) -> Sealed:
    """Seal the oldest unsealed lines of the account. If another transaction does so at this time, seal nothing.

    The lines are deleted first: those that another transaction deletes with their account are then not sealed.
    """
    head = lock_head(tx, wait=False)
    if head is None and find_head(tx) is not None:
        return Sealed(0, has_more=True)
    rows = tx.all(
        "DELETE FROM audit_unsealed WHERE account_id = ? AND id IN"
        " (SELECT id FROM audit_unsealed WHERE account_id = ? ORDER BY id LIMIT ?)"
        f" RETURNING {_CONTENT}, salt, digest",
        (tx.account, tx.account, limit),
    )
    if not rows:
        return Sealed(0, has_more=False)
    if head is None:
        _insert_head(tx)
        head = lock_head(tx, wait=True) or empty_head(tx.account)
    lines = [_with_digest(tx, row, new_salt) for row in sorted(rows)]
    known = find_numbers(tx, [row[0] for row in lines])
    # A line with the id of another was inserted by hand. It must not stop the sealing. Under another id, its digest is
    # wrong, so that it is found.
    _append(tx, head, [(f"{row[0]}~{place}", *row[1:]) if row[0] in known else row for place, row in enumerate(lines)])
    return Sealed(len(rows), has_more=len(rows) == limit)


def append_sealed(tx: Tx, head: Head, line: NewLine, salt: str) -> Head:
    """Append one line to the chain at once. The caller has locked the head."""
    values = msgspec.structs.astuple(line)
    return _append(tx, head, [(*values, salt, _digest(tx, values, salt))])


def lock_head(tx: Tx, *, wait: bool) -> Head | None:
    """Lock the head of the account's chain. Return None if there is none, or if it is locked and `wait` is False."""
    lock = tx.dialect.lock_row + ("" if wait or not tx.dialect.lock_row else " SKIP LOCKED")
    return _head(tx, lock)


def find_head(tx: Tx) -> Head | None:
    return _head(tx, "")


def _head(tx: Tx, lock: str) -> Head | None:
    row = tx.one(f"SELECT {_HEAD} FROM audit_heads WHERE account_id = ?{lock}", (tx.account,))
    return None if row is None else Head(*row)


def _insert_head(tx: Tx) -> None:
    link = audit_chain.first_link(tx.account)
    tx.execute(
        "INSERT INTO audit_heads (account_id, number, link, pruned_link) VALUES (?, 0, ?, ?) ON CONFLICT DO NOTHING",
        (tx.account, link, link),
    )


def _append(tx: Tx, head: Head, rows: Sequence[Row]) -> Head:
    number, link = head.number, head.link
    for row in rows:
        number += 1
        link = audit_chain.link_of(link, number, row[0], row[-1])
        tx.execute(
            f"INSERT INTO audit (account_id, number, {_CONTENT}, salt, digest, link)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (tx.account, number, *row, link),
        )
    tx.execute("UPDATE audit_heads SET number = ?, link = ? WHERE account_id = ?", (number, link, tx.account))
    return msgspec.structs.replace(head, number=number, link=link)


def _with_digest(tx: Tx, row: Row, new_salt: NewSalt) -> Row:
    """A line of an earlier version has no digest. Any other keeps its own, so that a change since then is found."""
    if row[-1] is not None:
        return row
    salt = new_salt()
    return (*row[:-2], salt, _digest(tx, row[:-2], salt))


def _digest(tx: Tx, values: Sequence[Any], salt: str) -> str:
    content = LineContent(values[0], audit_chain.time_text(values[1]), *values[2:])
    return audit_chain.digest_of(tx.account, content, salt)


def account_with_unsealed(tx: Tx, after: str) -> str | None:
    """The next account after the account `after` that has unsealed lines. Only for the operator."""
    row = tx.one("SELECT account_id FROM audit_unsealed WHERE account_id > ? ORDER BY account_id LIMIT 1", (after,))
    return None if row is None else str(row[0])


def heads(tx: Tx, after: str, limit: int) -> list[tuple[str, Head]]:
    """The heads of accounts, in the order of their names. Only for the operator."""
    rows = tx.all(
        "SELECT account_id, number, link, pruned_number, pruned_link FROM audit_heads"
        " WHERE account_id > ? ORDER BY account_id LIMIT ?",
        (after, limit),
    )
    return [(row[0], Head(*row[1:])) for row in rows]


def has_line(tx: Tx, line: NewLine, since: int, until: int) -> bool:
    """Whether a sealed line records that a user has done the same to the same session between two times."""
    log_id = line.version.partition("-")[0]
    found = tx.one(
        "SELECT 1 FROM audit WHERE account_id = ? AND resource = ? AND id >= ? AND id < ? AND user_id = ?"
        " AND action = ? AND substr(version, 1, ?) = ? LIMIT 1",
        (
            *(tx.account, line.resource, first_id(since), first_id(until), line.user_id),
            *(line.action, len(log_id), log_id),
        ),
    )
    return found is not None


def count_unsealed(tx: Tx) -> int:
    row = tx.all(
        "SELECT COUNT(*) FROM (SELECT id FROM audit_unsealed WHERE account_id = ? LIMIT ?) AS waiting",
        (tx.account, MAX_COUNTED),
    )[0]
    return int(row[0])


def lines_after(tx: Tx, after: int | None, limit: int) -> list[AuditLine]:
    """Sealed lines in the order of the chain, with everything that proves them."""
    condition, params = ("", []) if after is None else (" AND number > ?", [after])
    rest = f" FROM audit WHERE account_id = ?{condition} AND number > COALESCE({_PRUNED}, 0) ORDER BY number LIMIT ?"
    rows = _select(tx, [(_PROVEN, rest, (tx.account, *params, tx.account, limit))])
    return [
        AuditLine(
            **dict(zip(LineContent.__struct_fields__, row, strict=False))
            | {"at": "" if row[14] is not None and row[2] == "" else audit_chain.time_text(row[1])},
            salt=row[11],
            digest=row[12],
            link=row[13],
            erased=row[14] is not None,
            number=row[15],
        )
        for row in rows
    ]


_PRUNED = "(SELECT pruned_number FROM audit_heads WHERE account_id = ?)"


def page(tx: Tx, limit: int, filter: Filter = NO_FILTER) -> list[AuditRecord]:
    """List lines, newest first."""
    conditions, params = _conditions(filter)
    # `+ 0`, so that the index on the number is not used: its order is not that of the ids.
    sealed = f" FROM audit WHERE account_id = ? AND number + 0 > COALESCE({_PRUNED}, 0){conditions}"
    unsealed = f" FROM audit_unsealed WHERE account_id = ?{conditions}"
    own, order = (tx.account, tx.account), " ORDER BY id DESC LIMIT ?"
    statements: list[Selection] = []
    name = filter.resource
    if name is None:
        statements.append((_RECORD, f"{sealed}{order}", (*own, *params, limit)))
        statements.append((_UNSEALED_RECORD, f"{unsealed}{order}", (tx.account, *params, limit)))
    else:
        # Two statements: the first one reads the index in its order. `!` is the character after the space.
        statements = [
            (_RECORD, f"{sealed} AND resource = ?{order}", (*own, *params, name, limit)),
            (
                _RECORD,
                f"{sealed} AND resource >= ? AND resource < ?{order}",
                (*own, *params, f"{name} ", f"{name}!", limit),
            ),
            (
                _UNSEALED_RECORD,
                f"{unsealed} AND (resource = ? OR substr(resource, 1, ?) = ?){order}",
                (tx.account, *params, name, len(name) + 1, f"{name} ", limit),
            ),
        ]
    rows = _select(tx, statements)
    return [_to_record(row) for row in sorted(rows, key=lambda row: str(row[0]), reverse=True)[:limit]]


def _select(tx: Tx, selections: Sequence[Selection]) -> list[Row]:
    """Return the rows of all selections. In a damaged text, a replacement character stands for what is not UTF-8."""
    try:
        found = tx.all_of([(f"SELECT {columns}{rest}", params) for columns, rest, params in selections])
    except tx.dialect.unreadable_row:
        found = tx.all_of([(f"SELECT {_as_bytes(columns)}{rest}", params) for columns, rest, params in selections])
    return [_as_text(row) for rows in found for row in rows]


def _as_bytes(columns: str) -> str:
    return ", ".join(f"CAST({name} AS BLOB)" if name in _TEXTS else name for name in columns.split(", "))


def _as_text(row: Row) -> Row:
    return tuple(value.decode(errors="replace") if isinstance(value, bytes) else value for value in row)


def _conditions(filter: Filter) -> tuple[str, list[Any]]:
    """The conditions of a filter, except for the resource.

    An id begins with its time, so that a range of ids limits what is read. It may be later than the time of its line,
    after the clock was set back.
    """
    terms = [
        ("user_id = ?", filter.user_id),
        ("action = ?", filter.action),
        ("outcome = ?", filter.outcome),
        ("at >= ?", filter.since),
        ("id >= ?", None if filter.since is None else first_id(filter.since)),
        ("at < ?", filter.until),
        ("id < ?", None if filter.until is None else first_id(filter.until + _DAY_MILLIS * 1_000)),
        ("id < ?", filter.before),
    ]
    given = [(term, value) for term, value in terms if value is not None]
    return "".join(f" AND {term}" for term, _ in given), [value for _, value in given]


def first_id(micros: int) -> str:
    """The smallest id of a line that was written at this time."""
    return f"aud_{max(0, micros) // 1_000:0{_ID_TIME_DIGITS}x}"


def _to_record(row: Row) -> AuditRecord:
    line_id, at, *texts, erased_at, number = row
    fields = dict(zip(NewLine.__struct_fields__[2:], texts, strict=True))
    if fields["outcome"] not in get_args(AuditOutcome):
        fields["outcome"] = "done"  # an erased line has none
    return AuditRecord(id=line_id, at=_readable_time(at), **fields, erased=erased_at is not None, number=number)


def _readable_time(micros: int) -> datetime:
    try:
        return from_micros(micros)
    except OverflowError:  # the row was damaged; verifying the chain names it
        return from_micros(0)


def find_numbers(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """The number and the action of each sealed line with one of these ids."""
    places = ", ".join("?" * len(ids))
    rows = tx.all(f"SELECT id, number, action FROM audit WHERE account_id = ? AND id IN ({places})", (tx.account, *ids))
    return {row[0]: (row[1], row[2]) for row in rows}


def erase(tx: Tx, numbers: Sequence[int], now: int) -> None:
    """Erase the content of lines, and the salts: without them, a digest reveals nothing."""
    for number in numbers:
        tx.execute(
            "UPDATE audit SET at = ?, user_id = '', role = '', action = '', resource = '', agent_id = '',"
            " address = '', key_id = '', version = '', outcome = '', salt = '', erased_at = ?"
            " WHERE account_id = ? AND number = ? AND erased_at IS NULL",
            (now, now, tx.account, number),
        )


def last_before(tx: Tx, head: Head, micros: int) -> tuple[int, str] | None:
    """The last line, with its link, of which all lines up to it were written before a time. None if there is none."""
    row = tx.all(
        "SELECT MIN(number) FROM"
        " (SELECT number FROM audit WHERE account_id = ? AND id >= ? ORDER BY id LIMIT ?) AS kept",
        (tx.account, first_id(micros), SLICE_LINES),
    )[0]
    last = head.number if row[0] is None else row[0] - 1
    if last <= head.pruned_number:
        return None
    found = tx.one("SELECT number, link FROM audit WHERE account_id = ? AND number = ?", (tx.account, last))
    return None if found is None else (found[0], found[1])


def set_pruned(tx: Tx, number: int, link: str) -> None:
    """Hide the lines up to `number`. `delete_pruned` deletes them."""
    tx.execute(
        "UPDATE audit_heads SET pruned_number = ?, pruned_link = ? WHERE account_id = ?", (number, link, tx.account)
    )


def delete_pruned(tx: Tx, limit: int = SLICE_LINES) -> int:
    """Delete some of the lines that retention has hidden, and return how many."""
    rows = tx.all(
        "DELETE FROM audit WHERE account_id = ? AND number IN (SELECT number FROM audit WHERE account_id = ?"
        f" AND number <= COALESCE({_PRUNED}, 0) ORDER BY number LIMIT ?) RETURNING number",
        (tx.account, tx.account, tx.account, limit),
    )
    return len(rows)
