"""Copy-on-write forks: which log holds which stretch of a session."""

import msgspec

from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession


class LogRange(msgspec.Struct, frozen=True):
    """Messages `first` to `last` of a session are in the log `log_id`, under the same numbers."""

    log_id: int
    first: int
    last: int


def log_ranges(tx: Tx, session: StoredSession, first: int = 1, last: int | None = None) -> list[LogRange]:
    """Where messages `first` to `last` are, in order."""
    end = session.last_seq if last is None else min(last, session.last_seq)
    own = LogRange(session.log_id, session.fork_seq + 1, session.last_seq)
    inherited = _inherited(tx, session.log_id) if first <= session.fork_seq else []
    cut = (LogRange(s.log_id, max(s.first, first), min(s.last, end)) for s in [*inherited, own])
    return [stretch for stretch in cut if stretch.first <= stretch.last]


def branch(tx: Tx, parent: StoredSession, at: int, log_id: int) -> None:
    """Let the log `log_id` share the messages of `parent` up to `at`. Copies no message."""
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


def cut_off(tx: Tx, session: StoredSession) -> list[int]:
    """Forget what a deleted session shared; the logs that may now hold messages nobody can reach."""
    bases = [stretch.log_id for stretch in _inherited(tx, session.log_id)]
    tx.execute("DELETE FROM lineage WHERE account_id = ? AND log_id = ?", (tx.account, session.log_id))
    return [*bases, session.log_id]


def needed_through(tx: Tx, log_id: int) -> int:
    """The last message of a log that a fork still shares, or 0."""
    row = tx.one("SELECT MAX(last_seq) FROM lineage WHERE account_id = ? AND base_id = ?", (tx.account, log_id))
    return row[0] or 0 if row else 0


def _inherited(tx: Tx, log_id: int) -> list[LogRange]:
    rows = tx.all(
        "SELECT base_id, first_seq, last_seq FROM lineage WHERE account_id = ? AND log_id = ? ORDER BY first_seq",
        (tx.account, log_id),
    )
    return [LogRange(*row) for row in rows]
