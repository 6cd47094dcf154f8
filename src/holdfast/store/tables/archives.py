"""Archives: sealed stretches of a session, numbered from 1."""

from typing import Any

import msgspec

from holdfast.model.archives import ArchiveInfo, ArchiveState, Run, archive_id, archive_uri
from holdfast.model.summaries import Cost, Summary, TokenUsage, cited_by_number
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

_COLUMNS = (
    "number, first_seq, last_seq, tokens, task_id, state, created_at, ended_at, failure, abstract, overview,"
    " overview_tokens, rolling_abstract, rolling, rolling_tokens, prompt_tokens, completion_tokens, total_tokens,"
    " cached_tokens, reasoning_tokens, embedding_tokens, rules_tokens, rules_left_out"
)
_OF_LOG = "account_id = ? AND log_id = ?"
_OPEN = "state <> 'done'"
"""In the words of the small index of such archives."""
_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_failure = msgspec.json.Decoder(dict[str, Any]).decode
_decode_seqs = msgspec.json.Decoder(list[int]).decode
_encode = msgspec.json.Encoder().encode


class StoredArchive(msgspec.Struct, frozen=True):
    """A row of `archives`. `rolling` is its overview and what the session has to know of the archives before it."""

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
    def left_out(self) -> list[int]:
        """The numbers of the messages with rules that `rolling` has no room for."""
        return _decode_seqs(self.rules_left_out)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens, self.completion_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens
        )


class UnfinishedArchive(msgspec.Struct, frozen=True):
    """An archive that is not done, and the task that is to do it."""

    number: int
    task_id: str


class Totals(msgspec.Struct, frozen=True):
    """What all archives of a session amount to."""

    count: int
    done: int
    failed: int
    last_at: int | None
    usage: TokenUsage
    embedding_tokens: int


class Texts(msgspec.Struct, frozen=True):
    """An archive in short."""

    abstract: str
    overview: str
    tokens: int
    summary: Summary
    rules_tokens: int
    """What the rules take of the overview."""
    rules_left_out: list[int] = []
    """The numbers of the messages with rules for which there was no room."""


class Rolling(msgspec.Struct, frozen=True):
    """A session in short, as of an archive: its overview, and what there is to know of the archives before it."""

    abstract: str
    overview: str
    tokens: int
    earlier: Summary | None
    rules_left_out: list[int] = []
    """The numbers of the messages with rules for which there was no room."""


def insert(tx: Tx, log_id: int, number: int, run: Run, task_id: str, now: int) -> None:
    tx.execute(
        "INSERT INTO archives (account_id, log_id, number, first_seq, last_seq, tokens, task_id, state, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (tx.account, log_id, number, run.first_seq, run.last_seq, run.tokens, task_id, run.state, now),
    )


def find(tx: Tx, log_id: int, number: int) -> StoredArchive | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    return StoredArchive(*row) if row else None


def page(tx: Tx, log_id: int, *, after: int, limit: int) -> list[StoredArchive]:
    """In order, behind number `after`."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND number > ? ORDER BY number LIMIT ?",
        (tx.account, log_id, after, limit),
    )
    return [StoredArchive(*row) for row in rows]


def holding(tx: Tx, log_id: int, first: int, last: int) -> list[int]:
    """The numbers of the archives that have messages between `first` and `last`."""
    rows = tx.all(
        f"SELECT number FROM archives WHERE {_OF_LOG} AND last_seq >= ? AND first_seq <= ? ORDER BY number",
        (tx.account, log_id, first, last),
    )
    return [row[0] for row in rows]


def last(tx: Tx, log_id: int) -> tuple[int, int]:
    """The number of the newest archive and when it was sealed; 0 and 0 if there is none."""
    row = tx.one(
        f"SELECT number, created_at FROM archives WHERE {_OF_LOG} ORDER BY number DESC LIMIT 1", (tx.account, log_id)
    )
    return (row[0], row[1]) if row else (0, 0)


def first_in(tx: Tx, log_id: int, state: ArchiveState) -> UnfinishedArchive | None:
    """The earliest archive that is still pending, or that failed."""
    row = tx.one(
        f"SELECT number, task_id FROM archives WHERE {_OF_LOG} AND state = ? AND {_OPEN} ORDER BY number LIMIT 1",
        (tx.account, log_id, state),
    )
    return UnfinishedArchive(*row) if row else None


def unfinished(tx: Tx, log_id: int) -> list[Run]:
    """The messages of all archives that are not done, in order: they still speak for themselves."""
    rows = tx.all(
        f"SELECT number, state, first_seq, last_seq, tokens FROM archives WHERE {_OF_LOG} AND {_OPEN} ORDER BY number",
        (tx.account, log_id),
    )
    return [Run(*row) for row in rows]


def latest_done(tx: Tx, log_id: int, before: int | None = None) -> StoredArchive | None:
    """The newest archive that is done; with `before`, the newest of those with a smaller number."""
    bound, params = ("", ()) if before is None else (" AND number < ?", (before,))
    row = tx.one(
        f"SELECT {_COLUMNS} FROM archives WHERE {_OF_LOG} AND state = 'done'{bound} ORDER BY number DESC LIMIT 1",
        (tx.account, log_id, *params),
    )
    return StoredArchive(*row) if row else None


def first_done(tx: Tx, log_id: int) -> int:
    """The first message of the earliest archive that is done."""
    row = tx.one(
        f"SELECT first_seq FROM archives WHERE {_OF_LOG} AND state = 'done' ORDER BY number LIMIT 1",
        (tx.account, log_id),
    )
    return row[0] if row else 0


def summaries(tx: Tx, log_id: int, number: int) -> tuple[Summary | None, Summary | None]:
    """An archive's own summary, and that of all before it."""
    row = tx.one(f"SELECT summary, earlier FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    own, earlier = row or (None, None)
    return own and _decode_summary(cited_by_number(own)), earlier and _decode_summary(cited_by_number(earlier))


def counts(tx: Tx, log_id: int) -> tuple[int, int]:
    """How many archives a session has, and how many of them failed."""
    number, _ = last(tx, log_id)  # they are numbered without a gap
    row = tx.one(
        f"SELECT COUNT(*) FROM archives WHERE {_OF_LOG} AND state = 'failed' AND {_OPEN}", (tx.account, log_id)
    )
    return number, row[0] if row else 0


def totals(tx: Tx, log_id: int) -> Totals:
    row = tx.one(
        "SELECT COUNT(*), SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END),"
        " SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), MAX(created_at), SUM(prompt_tokens),"
        " SUM(completion_tokens), SUM(total_tokens), SUM(cached_tokens), SUM(reasoning_tokens), SUM(embedding_tokens)"
        f" FROM archives WHERE {_OF_LOG}",
        (tx.account, log_id),
    )
    counts = [0] * 10 if row is None else [int(value or 0) for value in row]
    total, done, failed, last_at, *spent, embedding = counts
    return Totals(total, done, failed, last_at or None, TokenUsage(*spent), embedding)


def mark(tx: Tx, log_id: int, number: int, state: ArchiveState, *, ended_at: int | None, failure: str | None) -> None:
    tx.execute(
        f"UPDATE archives SET state = ?, ended_at = ?, failure = ? WHERE {_OF_LOG} AND number = ?",
        (state, ended_at, failure, tx.account, log_id, number),
    )


def spend(tx: Tx, log_id: int, number: int, spent: Cost) -> None:
    tx.execute(
        "UPDATE archives SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " total_tokens = total_tokens + ?, cached_tokens = cached_tokens + ?, reasoning_tokens = reasoning_tokens + ?,"
        f" embedding_tokens = embedding_tokens + ? WHERE {_OF_LOG} AND number = ?",
        (*msgspec.structs.astuple(spent.llm), spent.embedding_tokens, tx.account, log_id, number),
    )


def write(tx: Tx, log_id: int, number: int, texts: Texts) -> None:
    tx.execute(
        "UPDATE archives SET abstract = ?, overview = ?, overview_tokens = ?, rules_tokens = ?, summary = ?"
        f" WHERE {_OF_LOG} AND number = ?",
        (
            texts.abstract,
            texts.overview,
            texts.tokens,
            texts.rules_tokens,
            _encoded(texts.summary),
            tx.account,
            log_id,
            number,
        ),
    )


def write_rolling(tx: Tx, log_id: int, number: int, rolling: Rolling) -> None:
    tx.execute(
        "UPDATE archives SET rolling_abstract = ?, rolling = ?, rolling_tokens = ?, earlier = ?, rules_left_out = ?"
        f" WHERE {_OF_LOG} AND number = ?",
        (
            rolling.abstract,
            rolling.overview,
            rolling.tokens,
            None if rolling.earlier is None else _encoded(rolling.earlier),
            _encode(rolling.rules_left_out).decode(),
            tx.account,
            log_id,
            number,
        ),
    )


def _encoded(summary: Summary) -> str:
    return _encode(summary).decode()


def done_through(tx: Tx, log_id: int, at: int) -> int:
    """The last message up to `at` through which every message is in an archive that is done."""
    row = tx.one(
        f"SELECT MAX(last_seq) FROM archives WHERE {_OF_LOG} AND last_seq <= ? AND first_seq < COALESCE("
        f"(SELECT MIN(first_seq) FROM archives WHERE {_OF_LOG} AND {_OPEN}), ?)",
        (tx.account, log_id, at, tx.account, log_id, at + 1),
    )
    return row[0] or 0 if row else 0


def share(tx: Tx, parent: StoredSession, log_id: int, through: int) -> None:
    """Let a fork have the finished archives of its parent up to message `through`; what they cost stays there."""
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


def delete(tx: Tx, log_id: int) -> None:
    tx.execute(f"DELETE FROM archives WHERE {_OF_LOG}", (tx.account, log_id))


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
