"""Copy-on-write forks: which log holds which messages of a session."""

from collections.abc import Sequence

import msgspec

from holdfast.errors import DataDamagedError
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession

WHOLE_LOG = 2**62
"""The last sequence number of a log range without an end. Only such a range opens other kinds than messages."""


class LogRange(msgspec.Struct, frozen=True):
    """Messages `first` to `last` of a session are stored in the log `log_id` with the same sequence numbers."""

    log_id: int
    first: int
    last: int


def log_ranges(tx: Tx, session: StoredSession, first: int = 1, last: int | None = None) -> list[LogRange]:
    """The log ranges that hold messages `first` to `last`, in order."""
    end = session.last_seq if last is None else min(last, session.last_seq)
    own = LogRange(session.log_id, session.fork_seq + 1, session.last_seq)
    inherited = _inherited(tx, session.log_id) if first <= session.fork_seq else []
    if inherited or first <= session.fork_seq:
        _require_gapless(session, inherited)
    clipped = (LogRange(each.log_id, max(each.first, first), min(each.last, end)) for each in [*inherited, own])
    return [log_range for log_range in clipped if log_range.first <= log_range.last]


def _require_gapless(session: StoredSession, inherited: list[LogRange]) -> None:
    """Raise an error unless the inherited ranges are the messages 1 to `fork_seq`."""
    expected = 1
    for each in inherited:
        if each.first != expected or each.last < each.first:
            break
        expected = each.last + 1
    if expected != session.fork_seq + 1:
        raise DataDamagedError(
            f"the lineage of session {session.session_id} is damaged: its ranges do not end at {session.fork_seq}",
            table="lineage",
            row=session.session_id,
        )


def ranges_after(log_ranges: Sequence[LogRange], seq: int) -> list[LogRange]:
    """Return the parts of log ranges after message `seq`."""
    return [LogRange(each.log_id, max(each.first, seq + 1), each.last) for each in log_ranges if each.last > seq]


def ranges_until(log_ranges: Sequence[LogRange], seq: int) -> list[LogRange]:
    """Return the parts of log ranges up to message `seq`."""
    return [LogRange(each.log_id, each.first, min(each.last, seq)) for each in log_ranges if each.first <= seq]


def branch(tx: Tx, parent: StoredSession, at: int, log_id: int) -> None:
    """Make the log `log_id` share the messages of `parent` up to `at`. No message is copied."""
    columns = "account_id, log_id, first_seq, last_seq, base_id"
    tx.execute(
        f"INSERT INTO lineage ({columns}) SELECT account_id, ?, first_seq,"
        " CASE WHEN last_seq < ? THEN last_seq ELSE ? END, base_id"
        " FROM lineage WHERE account_id = ? AND log_id = ? AND first_seq <= ?",
        (log_id, at, at, tx.account, parent.log_id, at),
    )
    if at > parent.fork_seq:
        tx.execute(
            f"INSERT INTO lineage ({columns}) VALUES (?, ?, ?, ?, ?)",
            (tx.account, log_id, parent.fork_seq + 1, at, parent.log_id),
        )


def delete(tx: Tx, session: StoredSession) -> list[int]:
    """Delete the lineage of a deleted session. Return the logs that may now hold unreachable messages."""
    ancestors = [log_range.log_id for log_range in _inherited(tx, session.log_id)]
    tx.execute("DELETE FROM lineage WHERE account_id = ? AND log_id = ?", (tx.account, session.log_id))
    return [*ancestors, session.log_id]


def last_shared_seq(tx: Tx, log_id: int) -> int:
    """The sequence number of the last message of a log that a fork still shares, or 0."""
    row = tx.one("SELECT MAX(last_seq) FROM lineage WHERE account_id = ? AND base_id = ?", (tx.account, log_id))
    return row[0] or 0 if row else 0


def _inherited(tx: Tx, log_id: int) -> list[LogRange]:
    rows = tx.all(
        "SELECT base_id, first_seq, last_seq FROM lineage WHERE account_id = ? AND log_id = ? ORDER BY first_seq",
        (tx.account, log_id),
    )
    return [LogRange(*row) for row in rows]
