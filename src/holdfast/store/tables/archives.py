"""Archives: sealed ranges of a session's messages, numbered from 1."""

from typing import Any, Literal

import msgspec

from holdfast.model.archives import ArchiveInfo, ArchiveState, MessageRange, archive_id, archive_uri
from holdfast.model.summaries import Cost, RenderedSummary, RollingSummary, Summary, TokenUsage, replace_source_ids
from holdfast.store.checked import archive_rows
from holdfast.store.checked.archive_rows import StoredArchive
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

LISTED_AT_ONCE = 100
"""How many archives are read at once for a list without overviews."""
_OF_LOG = "account_id = ? AND log_id = ?"
_UNFINISHED = "state <> 'done'"
"""Spelled exactly as in the partial index on unfinished archives, so that queries can use it."""
_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_failure = msgspec.json.Decoder(dict[str, Any]).decode
_COST_COLUMNS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "embedding_tokens",
)
NO_NUMBER = 2**62
"""Larger than the number of any archive."""
COPIED_AT_ONCE = 100
_encode = msgspec.json.Encoder().encode


class ArchiveTotals(msgspec.Struct, frozen=True):
    """Counts and token usage of all archives of a session."""

    count: int
    done: int
    failed: int
    last_at: int | None
    usage: TokenUsage
    embedding_tokens: int


def insert(tx: Tx, log_id: int, number: int, sealed: MessageRange, task_id: str, now: int) -> None:
    values = archive_rows.NEW_ROW | {
        "number": number,
        "first_seq": sealed.first_seq,
        "last_seq": sealed.last_seq,
        "tokens": sealed.tokens,
        "task_id": task_id,
        "state": sealed.state,
        "created_at": now,
    }
    archive_rows.insert_row(tx, log_id, tuple(values.values()), (None, None))


def find(tx: Tx, log_id: int, number: int) -> StoredArchive | None:
    """Find an archive. Raises an error if it is damaged."""
    found = archive_rows.select(tx, log_id, "number = ?", (number,))
    if found and found[0].is_damaged:
        raise archive_rows.damage_error(number)
    return found[0] if found else None


def page(tx: Tx, log_id: int, *, after: int, limit: int, with_overviews: bool = True) -> list[StoredArchive]:
    """Return up to `limit` archives with a number greater than `after`, in order, with damaged ones.

    Without overviews, not all of them are in memory at once.
    """
    if with_overviews:
        return archive_rows.select(tx, log_id, "number > ? ORDER BY number LIMIT ?", (after, limit))
    listed: list[StoredArchive] = []
    while len(listed) < limit:
        at_once = min(LISTED_AT_ONCE, limit - len(listed))
        found = page(tx, log_id, after=after, limit=at_once)
        listed += [msgspec.structs.replace(archive, overview="", rolling="") for archive in found]
        if len(found) < at_once:
            break
        after = found[-1].number
    return listed


def numbers_in_range(tx: Tx, log_id: int, first: int, last: int) -> list[int]:
    """Return the numbers of the archives with messages between `first` and `last`."""
    rows = tx.all(
        f"SELECT number FROM archives WHERE {_OF_LOG} AND last_seq >= ? AND first_seq <= ? ORDER BY number",
        (tx.account, log_id, first, last),
    )
    return [row[0] for row in rows]


def last_number(tx: Tx, log_id: int) -> int:
    """Return the number of the newest archive, or 0 if there is none."""
    row = tx.one(f"SELECT number FROM archives WHERE {_OF_LOG} ORDER BY number DESC LIMIT 1", (tx.account, log_id))
    return int(row[0]) if row else 0


def created_at(tx: Tx, log_id: int, number: int) -> int:
    """Return when an archive was created, or 0 if it does not exist. A damaged archive does not prevent this."""
    row = tx.one(f"SELECT created_at FROM archives WHERE {_OF_LOG} AND number = ?", (tx.account, log_id, number))
    return row[0] if row and isinstance(row[0], int) else 0


def first_in_state(tx: Tx, log_id: int, state: Literal["pending", "failed", "cancelled"]) -> StoredArchive | None:
    """Return the earliest unfinished archive in `state`."""
    found = archive_rows.select(tx, log_id, f"state = ? AND {_UNFINISHED} ORDER BY number LIMIT 1", (state,))
    return found[0] if found else None


def unfinished_ranges(tx: Tx, log_id: int) -> list[MessageRange]:
    """Return the message ranges of all unfinished archives, in order, without damaged ones."""
    return [
        MessageRange(archive.number, archive.state, archive.first_seq, archive.last_seq, archive.tokens)
        for archive in archive_rows.select(tx, log_id, f"{_UNFINISHED} ORDER BY number", ())
        if not archive.is_damaged
    ]


def latest_done(tx: Tx, log_id: int, before: int | None = None) -> StoredArchive | None:
    """Return the newest finished archive that is not damaged; with `before`, the newest with a smaller number."""
    bound = NO_NUMBER if before is None else before
    while found := archive_rows.select(
        tx, log_id, "state = 'done' AND number < ? ORDER BY number DESC LIMIT 1", (bound,)
    ):
        if not found[0].is_damaged:
            return found[0]
        bound = min(found[0].number, bound - 1)
    return None


def done_numbers(tx: Tx, log_id: int) -> list[int]:
    """Return the numbers of the finished archives, in order."""
    rows = tx.all(
        f"SELECT number FROM archives WHERE {_OF_LOG} AND state = 'done' ORDER BY number", (tx.account, log_id)
    )
    return [row[0] for row in rows]


def numbers_to_index(tx: Tx, log_id: int, limit: int) -> list[int]:
    """Return the numbers of the first finished archives that have no document."""
    rows = tx.all(
        "SELECT a.number FROM archives a WHERE a.account_id = ? AND a.log_id = ? AND a.state = 'done' AND NOT EXISTS"
        " (SELECT 1 FROM documents d WHERE d.account_id = a.account_id AND d.log_id = a.log_id AND d.kind = 'overview'"
        " AND d.number = a.number) ORDER BY a.number LIMIT ?",
        (tx.account, log_id, limit),
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
    """Return the summary of an archive and the combined summary of all earlier archives. None if it is damaged."""
    own, earlier = archive_rows.read_summaries(tx, log_id, number) or (None, None)
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
    archive_rows.change(tx, log_id, number, lambda _: {"state": state, "ended_at": ended_at, "failure": failure})


def add_cost(tx: Tx, log_id: int, number: int, cost: Cost) -> None:
    spent = msgspec.structs.asdict(cost.llm) | {"embedding_tokens": cost.embedding_tokens}
    archive_rows.change(
        tx, log_id, number, lambda values: {name: values[name] + tokens for name, tokens in spent.items()}
    )


def write_summary(tx: Tx, log_id: int, number: int, summary: Summary, rendered: RenderedSummary) -> None:
    """Store the summary of an archive and its text."""
    archive_rows.change(
        tx,
        log_id,
        number,
        lambda _: {
            "abstract": rendered.abstract,
            "overview": rendered.overview,
            "overview_tokens": rendered.overview_tokens,
            "rules_tokens": rendered.rules_tokens,
        },
    )
    _, earlier = archive_rows.read_summaries(tx, log_id, number) or (None, None)
    archive_rows.write_summaries(tx, log_id, number, _encode_summary(summary), earlier)


def write_rolling_summary(tx: Tx, log_id: int, number: int, rolling: RollingSummary) -> None:
    """Store the session's summary up to an archive."""
    earlier, rendered = rolling.earlier, rolling.text
    archive_rows.change(
        tx,
        log_id,
        number,
        lambda _: {
            "rolling_abstract": rendered.abstract,
            "rolling": rendered.overview,
            "rolling_tokens": rendered.overview_tokens,
            "rules_left_out": _encode(rendered.rules_left_out).decode(),
        },
    )
    own, _ = archive_rows.read_summaries(tx, log_id, number) or (None, None)
    archive_rows.write_summaries(tx, log_id, number, own, None if earlier is None else _encode_summary(earlier))


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
    after = 0
    while copied := archive_rows.select(
        tx, parent.log_id, "number > ? AND last_seq <= ? ORDER BY number LIMIT ?", (after, through, COPIED_AT_ONCE)
    ):
        for archive in copied:
            if not archive.is_damaged:
                values = msgspec.structs.asdict(archive) | dict.fromkeys(_COST_COLUMNS, 0) | {"failure": None}
                summaries = archive_rows.read_summaries(tx, parent.log_id, archive.number) or (None, None)
                archive_rows.insert_row(tx, log_id, tuple(values[name] for name in archive_rows.NAMES), summaries)
        after = max(archive.number for archive in copied)
    tx.execute(
        "UPDATE archives SET sealed_at = (SELECT p.sealed_at FROM archives p WHERE p.account_id = ? AND p.log_id = ?"
        f" AND p.number = archives.number) WHERE {_OF_LOG}",
        (tx.account, parent.log_id, tx.account, log_id),
    )


def info(session: StoredSession, archive: StoredArchive) -> ArchiveInfo:
    return ArchiveInfo(
        archive_id=archive_id(archive.number),
        uri=archive_uri(session.owner_id, session.session_id, archive.number),
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
        damaged=archive.is_damaged,
    )
