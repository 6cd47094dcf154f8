"""Rows of `archives`, which have checksums."""

from collections.abc import Callable
from typing import Any, get_args

import msgspec

from holdfast.errors import DataDamagedError
from holdfast.model.archives import ArchiveState, archive_id
from holdfast.model.summaries import TokenUsage
from holdfast.store.checksums import are_intact, checksum_of, seed_of_log
from holdfast.store.database import NOW, Params, Row, Tx

CHECKED_COLUMNS = (
    "number, first_seq, last_seq, tokens, task_id, state, created_at, ended_at, failure, abstract, overview,"
    " overview_tokens, rolling_abstract, rolling, rolling_tokens, prompt_tokens, completion_tokens, total_tokens,"
    " cached_tokens, reasoning_tokens, embedding_tokens, rules_tokens, rules_left_out"
)
"""The columns of `checksum`, in order. The summaries are larger and seldom read: they have `summary_checksum`."""
NAMES = CHECKED_COLUMNS.split(", ")
COLUMNS = f"{CHECKED_COLUMNS}, checksum"
SUMMARIES = "summary, earlier, summary_checksum"
NEW_ROW: dict[str, Any] = dict.fromkeys(NAMES, 0) | {
    **dict.fromkeys(("ended_at", "failure")),
    **dict.fromkeys(("abstract", "overview", "rolling_abstract", "rolling"), ""),
    "rules_left_out": "[]",
}
"""The values of the columns of a new archive."""
MAX_MICROS = 2**52
_OF_LOG = "account_id = ? AND log_id = ?"
_decode_seqs = msgspec.json.Decoder(list[int]).decode
_encode = msgspec.json.Encoder().encode


class StoredArchive(msgspec.Struct, frozen=True):
    """A row of `archives`.

    `rolling` is the overview of the session up to this archive: the archive's own overview and a summary of the
    earlier archives.
    """

    number: int
    first_seq: int
    last_seq: int
    tokens: int
    task_id: str
    state: ArchiveState
    created_at: int
    ended_at: int | None
    failure: str | None
    abstract: str
    overview: str
    overview_tokens: int
    rolling_abstract: str
    rolling: str
    rolling_tokens: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    embedding_tokens: int
    rules_tokens: int
    rules_left_out: str
    is_damaged: bool = False
    """Whether the row is damaged. Its texts and its counts are then left out, and its range may be wrong."""

    @property
    def left_out_rule_seqs(self) -> list[int]:
        """Sequence numbers of the messages with rules that did not fit in `rolling`."""
        return _decode_seqs(self.rules_left_out)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens, self.completion_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens
        )


def insert_row(
    tx: Tx, log_id: int, values: Row, summaries: Row, account: str | None = None, sealed_at: str = NOW
) -> None:
    """Insert an archive of the transaction's account, or of `account` if the transaction is the operator's.

    `sealed_at` is an SQL expression.
    """
    owner = account or tx.account
    seed = seed_of_log(owner, log_id)
    row = (*values, checksum_of(values, seed), *summaries, checksum_of(summaries, seed))
    tx.execute(
        f"INSERT INTO archives (account_id, log_id, {COLUMNS}, {SUMMARIES}, sealed_at)"
        f" VALUES (?, ?{', ?' * len(row)}, {sealed_at})",
        (owner, log_id, *row),
    )


def damage_error(number: int) -> DataDamagedError:
    name = archive_id(number)
    return DataDamagedError(
        f"{name} is damaged; its messages can still be read, and a new summary made with `holdfast resummarise` after"
        " `holdfast doctor --fix`",
        table="archives",
        row=name,
    )


def select(tx: Tx, log_id: int, condition: str, params: Params) -> list[StoredArchive]:
    """Read archives of a log. `condition` may end with an order and a limit."""
    query = f"FROM archives WHERE {_OF_LOG} AND {condition}"
    try:
        rows = tx.all(f"SELECT {COLUMNS} {query}", (tx.account, log_id, *params))
    except tx.dialect.unreadable_row:
        numbers = tx.all(f"SELECT number {query}", (tx.account, log_id, *params))
        return [_read_one(tx, log_id, row[0]) for row in numbers]
    seed = seed_of_log(tx.account, log_id)
    if are_intact(tx, "archives", rows, seed):
        return [StoredArchive(*row[:-1]) for row in rows]
    return [_stored(row, is_intact=are_intact(tx, "archives", [row], seed)) for row in rows]


def _read_one(tx: Tx, log_id: int, number: int) -> StoredArchive:
    try:
        row = tx.all(f"SELECT {COLUMNS} FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))[0]
    except tx.dialect.unreadable_row:
        return _stored((number, *[None] * len(NAMES)), is_intact=False)
    return _stored(row, is_intact=are_intact(tx, "archives", [row], seed_of_log(tx.account, log_id)))


def _stored(row: Row, *, is_intact: bool) -> StoredArchive:
    if is_intact:
        return StoredArchive(*row[:-1])
    number, first, last, tokens = (value if isinstance(value, int) else 0 for value in row[:4])
    has_range = 0 < first <= last
    task_id, state, created_at = row[4:7]
    values = NEW_ROW | {
        "number": number,
        "first_seq": first if has_range else 1,
        "last_seq": last if has_range else 0,
        "tokens": max(0, tokens),
        "task_id": task_id if isinstance(task_id, str) else "",
        "state": state if state in get_args(ArchiveState) else "failed",
        "created_at": created_at if isinstance(created_at, int) and 0 <= created_at < MAX_MICROS else 0,
        "failure": _encode({"code": DataDamagedError.code, "error": damage_error(number).message}).decode(),
    }
    return StoredArchive(**values, is_damaged=True)


def read_summaries(tx: Tx, log_id: int, number: int) -> Row | None:
    """The stored summaries, or None if they are damaged or do not exist."""
    try:
        row = tx.one(f"SELECT {SUMMARIES} FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    except tx.dialect.unreadable_row:
        return None
    is_whole = row is not None and are_intact(tx, "archives", [row], seed_of_log(tx.account, log_id))
    return row[:-1] if row is not None and is_whole else None


def change(tx: Tx, log_id: int, number: int, compute: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change columns of an archive and its checksum. `compute` gets the present values and returns the new ones.

    The checksum of a damaged archive does not change: it stays recognisable.
    """
    row = tx.one(
        f"SELECT {COLUMNS} FROM archives WHERE {_OF_LOG} AND number = ?{tx.dialect.lock_row}",
        (tx.account, log_id, number),
    )
    if row is None:
        return
    seed = seed_of_log(tx.account, log_id)
    values = dict(zip(NAMES, row, strict=False))
    changed = compute(values)
    is_intact = are_intact(tx, "archives", [row], seed)
    changed["checksum"] = checksum_of(tuple((values | changed).values()), seed) if is_intact else row[-1]
    tx.execute(
        f"UPDATE archives SET {', '.join(f'{name} = ?' for name in changed)} WHERE {_OF_LOG} AND number = ?",
        (*changed.values(), tx.account, log_id, number),
    )


def write_summaries(tx: Tx, log_id: int, number: int, own: str | None, earlier: str | None) -> None:
    checksum = checksum_of((own, earlier), seed_of_log(tx.account, log_id))
    tx.execute(
        f"UPDATE archives SET summary = ?, earlier = ?, summary_checksum = ? WHERE {_OF_LOG} AND number = ?",
        (own, earlier, checksum, tx.account, log_id, number),
    )
