"""Archives: sealed ranges of a session's messages, numbered from 1."""

from typing import Any, Literal

import msgspec

from holdfast.model.archives import ArchiveInfo, ArchiveState, MessageRange, archive_id, archive_uri
from holdfast.model.summaries import Cost, RenderedSummary, RollingSummary, Summary, TokenUsage, replace_source_ids
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

_COLUMNS = (
    "number, first_seq, last_seq, tokens, task_id, state, created_at, ended_at, failure, abstract, overview,"
    " overview_tokens, rolling_abstract, rolling, rolling_tokens, prompt_tokens, completion_tokens, total_tokens,"
    " cached_tokens, reasoning_tokens, embedding_tokens, rules_tokens, rules_left_out"
)
_COLUMNS_WITHOUT_OVERVIEWS = _COLUMNS.replace(" overview,", " '',").replace(" rolling,", " '',")
_OF_LOG = "account_id = ? AND log_id = ?"
_UNFINISHED = "state <> 'done'"
"""Spelled exactly as in the partial index on unfinished archives, so that queries can use it."""
_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_failure = msgspec.json.Decoder(dict[str, Any]).decode
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

    @property
    def left_out_rule_seqs(self) -> list[int]:
        """Sequence numbers of the messages with rules that did not fit in `rolling`."""
        return _decode_seqs(self.rules_left_out)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens, self.completion_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens
        )


class ArchiveTotals(msgspec.Struct, frozen=True):
    """Counts and token usage of all archives of a session."""

    count: int
    done: int
    failed: int
    last_at: int | None
    usage: TokenUsage
    embedding_tokens: int


def insert(tx: Tx, log_id: int, number: int, sealed: MessageRange, task_id: str, now: int) -> None:
    tx.execute(
        "INSERT INTO archives (account_id, log_id, number, first_seq, last_seq, tokens, task_id, state, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tx.account,
            log_id,
            number,
            sealed.first_seq,
            sealed.last_seq,
            sealed.tokens,
            task_id,
            sealed.state,
            now,
        ),
    )


def find(tx: Tx, log_id: int, number: int) -> StoredArchive | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    return StoredArchive(*row) if row else None


def page(tx: Tx, log_id: int, *, after: int, limit: int, with_overviews: bool = True) -> list[StoredArchive]:
    """Return up to `limit` archives with a number greater than `after`, in order. Their overviews may be left out."""
    columns = _COLUMNS if with_overviews else _COLUMNS_WITHOUT_OVERVIEWS
    rows = tx.all(
        f"SELECT {columns} FROM archives WHERE {_OF_LOG} AND number > ? ORDER BY number LIMIT ?",
        (tx.account, log_id, after, limit),
    )
    return [StoredArchive(*row) for row in rows]


def numbers_in_range(tx: Tx, log_id: int, first: int, last: int) -> list[int]:
    """Return the numbers of the archives with messages between `first` and `last`."""
    rows = tx.all(
        f"SELECT number FROM archives WHERE {_OF_LOG} AND last_seq >= ? AND first_seq <= ? ORDER BY number",
        (tx.account, log_id, first, last),
    )
    return [row[0] for row in rows]


def last_number_and_time(tx: Tx, log_id: int) -> tuple[int, int]:
    """Return the number and the creation time of the newest archive, or 0 and 0 if there is none."""
    row = tx.one(
        f"SELECT number, created_at FROM archives WHERE {_OF_LOG} ORDER BY number DESC LIMIT 1", (tx.account, log_id)
    )
    return (row[0], row[1]) if row else (0, 0)


def first_in_state(tx: Tx, log_id: int, state: Literal["pending", "failed", "cancelled"]) -> StoredArchive | None:
    """Return the earliest unfinished archive in `state`."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND state = ? AND {_UNFINISHED} ORDER BY number LIMIT 1",
        (tx.account, log_id, state),
    )
    return StoredArchive(*row) if row else None


def unfinished_ranges(tx: Tx, log_id: int) -> list[MessageRange]:
    """Return the message ranges of all unfinished archives, in order."""
    rows = tx.all(
        "SELECT number, state, first_seq, last_seq, tokens FROM archives"
        f" WHERE {_OF_LOG} AND {_UNFINISHED} ORDER BY number",
        (tx.account, log_id),
    )
    return [MessageRange(*row) for row in rows]


def latest_done(tx: Tx, log_id: int, before: int | None = None) -> StoredArchive | None:
    """Return the newest finished archive; with `before`, the newest with a smaller number."""
    bound, params = ("", ()) if before is None else (" AND number < ?", (before,))
    row = tx.one(
        f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND state = 'done'{bound} ORDER BY number DESC LIMIT 1",
        (tx.account, log_id, *params),
    )
    return StoredArchive(*row) if row else None


def done_numbers(tx: Tx, log_id: int) -> list[int]:
    """Return the numbers of the finished archives, in order."""
    rows = tx.all(
        f"SELECT number FROM archives WHERE {_OF_LOG} AND state = 'done' ORDER BY number", (tx.account, log_id)
    )
    return [row[0] for row in rows]


def first_done_seq(tx: Tx, log_id: int) -> int:
    """Return the first sequence number of the earliest finished archive, or 0 if there is none."""
    row = tx.one(
        f"SELECT first_seq FROM archives WHERE {_OF_LOG} AND state = 'done' ORDER BY number LIMIT 1",
        (tx.account, log_id),
    )
    return row[0] if row else 0


def read_summaries(tx: Tx, log_id: int, number: int) -> tuple[Summary | None, Summary | None]:
    """Return the summary of an archive and the combined summary of all earlier archives."""
    row = tx.one(f"SELECT summary, earlier FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    own, earlier = row or (None, None)
    return own and _decode_summary(replace_source_ids(own)), earlier and _decode_summary(replace_source_ids(earlier))


def totals(tx: Tx, log_id: int) -> ArchiveTotals:
    row = tx.one(
        "SELECT COUNT(*), SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END),"
        " SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), MAX(created_at), SUM(prompt_tokens),"
        " SUM(completion_tokens), SUM(total_tokens), SUM(cached_tokens), SUM(reasoning_tokens), SUM(embedding_tokens)"
        f" FROM archives WHERE {_OF_LOG}",
        (tx.account, log_id),
    )
    values = [0] * 10 if row is None else [int(value or 0) for value in row]
    count, done, failed, last_at, *llm_tokens, embedding_tokens = values
    return ArchiveTotals(count, done, failed, last_at or None, TokenUsage(*llm_tokens), embedding_tokens)


def set_state(
    tx: Tx, log_id: int, number: int, state: ArchiveState, *, ended_at: int | None, failure: str | None
) -> None:
    tx.execute(
        f"UPDATE archives SET state = ?, ended_at = ?, failure = ? WHERE {_OF_LOG} AND number = ?",
        (state, ended_at, failure, tx.account, log_id, number),
    )


def add_cost(tx: Tx, log_id: int, number: int, cost: Cost) -> None:
    tx.execute(
        "UPDATE archives SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " total_tokens = total_tokens + ?, cached_tokens = cached_tokens + ?, reasoning_tokens = reasoning_tokens + ?,"
        f" embedding_tokens = embedding_tokens + ? WHERE {_OF_LOG} AND number = ?",
        (*msgspec.structs.astuple(cost.llm), cost.embedding_tokens, tx.account, log_id, number),
    )


def write_summary(tx: Tx, log_id: int, number: int, summary: Summary, rendered: RenderedSummary) -> None:
    """Store the summary of an archive and its text."""
    tx.execute(
        "UPDATE archives SET abstract = ?, overview = ?, overview_tokens = ?, rules_tokens = ?, summary = ?"
        f" WHERE {_OF_LOG} AND number = ?",
        (
            rendered.abstract,
            rendered.overview,
            rendered.overview_tokens,
            rendered.rules_tokens,
            _encode_summary(summary),
            tx.account,
            log_id,
            number,
        ),
    )


def write_rolling_summary(tx: Tx, log_id: int, number: int, rolling: RollingSummary) -> None:
    """Store the session's summary up to an archive."""
    earlier, rendered = rolling.earlier, rolling.text
    tx.execute(
        "UPDATE archives SET rolling_abstract = ?, rolling = ?, rolling_tokens = ?, earlier = ?, rules_left_out = ?"
        f" WHERE {_OF_LOG} AND number = ?",
        (
            rendered.abstract,
            rendered.overview,
            rendered.overview_tokens,
            None if earlier is None else _encode_summary(earlier),
            _encode(rendered.rules_left_out).decode(),
            tx.account,
            log_id,
            number,
        ),
    )


def _encode_summary(summary: Summary) -> str:
    return _encode(summary).decode()


def done_through(tx: Tx, log_id: int, at: int) -> int:
    """Return the last sequence number up to `at` such that all messages through it are in finished archives."""
    row = tx.one(
        f"SELECT MAX(last_seq) FROM archives WHERE {_OF_LOG} AND last_seq <= ? AND first_seq < COALESCE("
        f"(SELECT MIN(first_seq) FROM archives WHERE {_OF_LOG} AND {_UNFINISHED}), ?)",
        (tx.account, log_id, at, tx.account, log_id, at + 1),
    )
    return row[0] or 0 if row else 0


def copy_to_fork(tx: Tx, parent: StoredSession, log_id: int, through: int) -> None:
    """Copy the finished archives of `parent` up to message `through` to a fork's log, without their token usage."""
    columns = (
        "number, first_seq, last_seq, tokens, task_id, state, created_at, ended_at, abstract, overview,"
        " overview_tokens, rolling_abstract, rolling, rolling_tokens, summary, earlier, rules_tokens,"
        " rules_left_out"
    )
    tx.execute(
        f"INSERT INTO archives (account_id, log_id, {columns}) SELECT account_id, ?, {columns} FROM archives"
        f" WHERE {_OF_LOG} AND last_seq <= ?",
        (log_id, tx.account, parent.log_id, through),
    )


def info(session: StoredSession, archive: StoredArchive) -> ArchiveInfo:
    return ArchiveInfo(
        archive_id=archive_id(archive.number),
        uri=archive_uri(session.user_id, session.session_id, archive.number),
        state=archive.state,
        task_id=archive.task_id,
        abstract=archive.abstract,
        first_seq=archive.first_seq,
        last_seq=archive.last_seq,
        message_count=archive.last_seq - archive.first_seq + 1,
        tokens=archive.tokens,
        overview_tokens=archive.overview_tokens,
        created_at=from_micros(archive.created_at),
        ended_at=None if archive.ended_at is None else from_micros(archive.ended_at),
        failure=None if archive.failure is None else _decode_failure(archive.failure),
        token_usage=archive.usage,
    )
