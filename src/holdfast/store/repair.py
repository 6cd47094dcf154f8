"""Repair of damaged rows: the row is kept in quarantine as it was found, and a readable one takes its place.

Each repair is a transaction of its own: one that fails does not prevent the others.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.archives import archive_id
from holdfast.model.parts import TextPart
from holdfast.store import damage, diagnostics, file_damage
from holdfast.store.checked import archive_rows, salvage
from holdfast.store.checked.message_rows import CHECKED_COLUMNS, Extra
from holdfast.store.checksums import checksum_of, seed_of_log
from holdfast.store.damage import Damage, Key, Progress
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.tables import documents

_encode = msgspec.json.Encoder().encode
_OF_LOG = "account_id = ? AND log_id = ?"
_MESSAGE_COLUMNS = f"{CHECKED_COLUMNS}, id_given, tokens_through, author, added_at, checksum"


_QUARANTINED = {
    "sessions": (_OF_LOG, "user_id, session_id, title, metadata, config, state, created_at, updated_at, live_from"),
    "messages": (f"{_OF_LOG} AND seq = ?", _MESSAGE_COLUMNS),
    "archives": (f"{_OF_LOG} AND number = ?", f"{archive_rows.COLUMNS}, {archive_rows.SUMMARIES}"),
    "blobs": ("account_id = ? AND hash = ?", "content, chars, refs"),
}
"""For each table the condition that finds a row by its key, and the columns that are kept."""


class Repaired(msgspec.Struct, frozen=True):
    result: str
    is_done: bool


def repair(database: Database, progress: Progress, clock: Callable[[], int]) -> Iterator[Repaired]:
    """Rebuild the indexes of a damaged file, then repair each damaged row."""
    if list(damage.find_in_file(database)):
        yield _attempt(database, "indexes", _rebuild_indexes)
        yield _attempt(database, "text index", _rebuild_text_index)
    found = list(damage.find_in_rows(database, progress))
    for number, each in enumerate(found):
        progress(number, len(found), each.table)
        yield _attempt(database, each.describe(), partial(_repair_row, found=each, now=clock()))
    deleted = file_damage.delete_unused(database)
    if deleted:
        yield Repaired(f"files: {deleted} blobs that nothing refers to were deleted", is_done=True)
    if diagnostics.find_text_index_problems(database):  # it had entries for messages that were missing
        yield _attempt(database, "text index", _rebuild_text_index)


def _attempt(database: Database, subject: str, transaction: Callable[[Tx], str | None]) -> Repaired:
    try:
        result = database.write(EVERY_ACCOUNT, transaction)
    except HoldfastError as error:
        return Repaired(f"{subject}: it cannot be repaired: {error.message}", is_done=False)
    if result is None:
        return Repaired(f"{subject}: it cannot be repaired; restore a backup", is_done=False)
    return Repaired(f"{subject}: {result}", is_done=True)


def _rebuild_indexes(tx: Tx) -> str:
    tx.run_script("REINDEX")
    return "rebuilt"


def _rebuild_text_index(tx: Tx) -> str:
    tx.execute("INSERT INTO document_text (document_text) VALUES ('delete-all')")
    documents.forget_all(tx)
    return "emptied; a worker indexes everything again in the background"


def _repair_row(tx: Tx, found: Damage, now: int) -> str | None:
    if found.key is None:
        return None
    if not found.is_missing:
        _quarantine(tx, found, found.key, now)
    match found.table:
        case "messages":
            return _replace_message(tx, found.key, salvage.MISSING if found.is_missing else "was damaged", now)
        case "archives" if not found.is_missing:
            return _replace_archive(tx, found.key)
        case "sessions":
            tx.execute(f"UPDATE sessions SET metadata = '{{}}', config = '{{}}' WHERE {_OF_LOG}", found.key[:2])
            return "its metadata and its settings are empty now"
        case "blobs":
            tx.execute("DELETE FROM blobs WHERE account_id = ? AND hash = ?", found.key[:2])
            return "kept in quarantine; messages show its beginning"
    return None


def _quarantine(tx: Tx, found: Damage, key: Key, now: int) -> None:
    account, log, number = key
    condition, names = _QUARANTINED[found.table]
    params, log_id = key[: condition.count("?")], 0 if found.table == "blobs" else int(log)
    content = {name: _raw_value(tx, found.table, name, condition, params) for name in names.split(", ")}
    name = f"{found.table}_{log}_{number}_{now}"
    tx.execute(
        "INSERT INTO quarantine (account_id, id, table_name, log_id, number, quarantined_at, reason, content)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (account, name, found.table, log_id, number, now, found.problem, _encode(content).decode()),
    )


def _raw_value(tx: Tx, table: str, column: str, condition: str, params: tuple[Any, ...]) -> Any:
    """The value of a column; a value that cannot be read as text as its bytes in hexadecimal."""
    try:
        row = tx.one(f"SELECT {column} FROM {table} WHERE {condition}", params)
    except tx.dialect.unreadable_row:
        row = tx.one(f"SELECT HEX({column}) FROM {table} WHERE {condition}", params)
        return {"hex": row[0] if row else ""}
    value = row[0] if row else None
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _replace_message(tx: Tx, key: Key, problem: str, now: int) -> str:
    """Put a placeholder in place of a damaged message, or of each missing one."""
    account, log, seq = key
    log_id = int(log)
    seed = seed_of_log(account, log_id)
    last = _last_missing(tx, key) if problem == salvage.MISSING else seq
    before = tx.one(
        f"SELECT tokens_through, added_at FROM messages WHERE {_OF_LOG} AND seq < ? ORDER BY seq DESC LIMIT 1", key
    )
    tokens_before = before[0] if before and isinstance(before[0], int) else 0
    time = before[1] if before and isinstance(before[1], int) and 0 <= before[1] <= now else now
    for number in range(seq, last + 1):
        text = salvage.placeholder_text(number, problem)
        parts = _encode([TextPart(text)]).decode()
        extra = _encode(Extra(damaged=True)).decode()
        stored = _stored_id(tx, (account, log_id, number))
        values = (stored or f"damaged_{number}", "assistant", time, number, 0, extra, parts)
        others = (tokens_before, time, checksum_of(values, seed))
        if problem == salvage.MISSING:
            tx.execute(
                f"INSERT INTO messages (account_id, log_id, {CHECKED_COLUMNS}, tokens_through, added_at, checksum,"
                " id_given, author) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, '')",
                (account, log_id, *values, *others),
            )
        else:  # the text index of SQLite refers to the row, so it is not replaced
            names = f"{CHECKED_COLUMNS}, tokens_through, added_at, checksum".split(", ")
            tx.execute(
                f"UPDATE messages SET {', '.join(f'{name} = ?' for name in names)}, id_given = 1, author = ''"
                f" WHERE {_OF_LOG} AND seq = ?",
                (*values, *others, account, log_id, number),
            )
    return "a placeholder takes its place" if last == seq else f"placeholders take the places up to {last}"


def _last_missing(tx: Tx, key: Key) -> int:
    account, log, seq = key
    row = tx.one(f"SELECT MIN(seq) FROM messages WHERE {_OF_LOG} AND seq > ?", (account, log, seq))
    last = row[0] - 1 if row and isinstance(row[0], int) else seq
    return min(last, seq + salvage.MAX_GAP)


def _stored_id(tx: Tx, key: Key) -> str | None:
    try:
        row = tx.one(f"SELECT id FROM messages WHERE {_OF_LOG} AND seq = ?", key)
    except tx.dialect.unreadable_row:
        return None
    return row[0] if row and isinstance(row[0], str) and row[0] else None


def _replace_archive(tx: Tx, key: Key) -> str | None:
    """Put an archive without a summary in place of a damaged one. `holdfast resummarise` makes the summary anew."""
    account, log, number = key
    log_id = int(log)
    first, last = _archived_range(tx, key)
    if first > last:
        return None
    text = f"{archive_id(number)} was damaged. Its messages are complete; `holdfast resummarise` summarises them again."
    tokens_shown = len(text) // 4
    values = archive_rows.NEW_ROW | {
        "number": number,
        "first_seq": first,
        "last_seq": last,
        "task_id": f"damaged_{number}",
        "state": "done",
        "abstract": text,
        "overview": text,
        "overview_tokens": tokens_shown,
        "rolling_abstract": text,
        "rolling": text,
        "rolling_tokens": tokens_shown,
    }
    tx.execute(f"DELETE FROM archives WHERE {_OF_LOG} AND number = ?", (account, log_id, number))
    archive_rows.insert_row(tx, log_id, tuple(values.values()), (None, None), account, sealed_at="NULL")
    return "an archive without a summary takes its place; run `holdfast resummarise` for its session"


def _archived_range(tx: Tx, key: Key) -> tuple[int, int]:
    """The messages between the archives before and after this one."""
    account, log, number = key
    row = tx.one(
        f"SELECT (SELECT last_seq FROM archives WHERE {_OF_LOG} AND number = ?),"
        f" (SELECT first_seq FROM archives WHERE {_OF_LOG} AND number = ?),"
        f" (SELECT live_from FROM sessions WHERE {_OF_LOG})",
        (account, log, number - 1, account, log, number + 1, account, log),
    )
    before, after, live_from = row or (None, None, None)
    first = before + 1 if isinstance(before, int) else 1
    end = after if isinstance(after, int) else live_from
    return first, end - 1 if isinstance(end, int) else 0
