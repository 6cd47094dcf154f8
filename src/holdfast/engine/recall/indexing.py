"""Indexing: reads what is pending of some logs, analyses it, and writes documents. Each slice is one transaction.

A slice is read and analysed outside the transaction that writes it. That one locks the session and checks that nothing
was indexed meanwhile, so any number of processes can index the same logs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS, MESSAGE, IndexedLog, PendingDocument
from holdfast.search.analysis import analyse
from holdfast.store.database import Tx
from holdfast.store.tables import documents, lineage, sessions, unindexed
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.embeddings import unembedded
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.unindexed import UnindexedLog
from holdfast.text.words import indexed_words

SLICE_DOCUMENTS = 200
"""How many documents one transaction writes. Small, so that other writers do not wait long."""
SLICE_CHARS = 2_000_000
"""After so many characters, no further log is read for a slice."""
SLICE_LOGS = 20
"""How many logs one transaction locks."""
RunTransaction = Callable[[Callable[[Tx], Any]], Any]


class LogSlice(msgspec.Struct, frozen=True):
    """Documents of a log that are to be written."""

    log: IndexedLog
    documents: list[NewDocument]
    through: int
    """The last message of the log that is indexed afterwards."""


class Indexed(msgspec.Struct, frozen=True):
    """What one slice has done."""

    documents: int
    """How many were added."""
    unfinished: list[int]
    """The logs that have more to index."""


def index_slice(read: RunTransaction, write: RunTransaction, logs: Sequence[UnindexedLog]) -> Indexed:
    """Index the first documents of some logs, or remove invalid ones. `read` and `write` run transactions."""
    stale = [log.log_id for log in logs if log.is_stale]
    if stale:
        removed: Indexed = write(partial(_remove_stale, log_id=stale[0]))
        return removed
    log_ids = sorted(log.log_id for log in logs[:SLICE_LOGS])
    slices = [_analyse(log, pending) for log, pending in read(partial(_read_slices, log_ids=log_ids))]
    indexed: Indexed = write(partial(_write_slices, slices=slices))
    return indexed


def _read_slices(tx: Tx, log_ids: Sequence[int]) -> list[tuple[IndexedLog, dict[str, list[PendingDocument]]]]:
    found: list[tuple[IndexedLog, dict[str, list[PendingDocument]]]] = []
    count = chars = 0
    for log_id in log_ids:
        if found and (count >= SLICE_DOCUMENTS or chars > SLICE_CHARS):
            break
        log = _read_log(tx, sessions.find_by_log(tx, log_id), log_id)
        pending: dict[str, list[PendingDocument]] = {}
        for name, kind in DOCUMENT_KINDS.items():
            left = SLICE_DOCUMENTS - count
            read = kind.read_pending(tx, log, left) if left > 0 else []
            pending[name] = read
            count += len(read)
            chars += sum(len(each.text) for each in read)
        found.append((log, pending))
    return found


def _read_log(tx: Tx, session: StoredSession | None, log_id: int) -> IndexedLog:
    if session is not None:
        return IndexedLog(log_id, session.owner_id, session.indexed_seq, session.last_seq)
    return IndexedLog(log_id, documents.NOBODY, documents.last_number(tx, log_id), lineage.last_shared_seq(tx, log_id))


def _analyse(log: IndexedLog, pending: dict[str, list[PendingDocument]]) -> LogSlice:
    new = [new_document(name, log.log_id, each) for name, documents in pending.items() for each in documents]
    through = pending[MESSAGE][-1].number if pending[MESSAGE] else log.indexed_seq
    return LogSlice(log, new, through)


def new_document(kind: str, log_id: int | None, pending: PendingDocument) -> NewDocument:
    analysis = analyse(pending.text, pending.created_at)
    return NewDocument(
        kind=kind,
        log_id=log_id,
        number=pending.number,
        level=DOCUMENT_KINDS[kind].level,
        role=pending.role,
        speaker=pending.speaker,
        created_at=pending.created_at,
        flags=analysis.flags,
        dates=msgspec.json.encode(analysis.dates).decode(),
        words=analysis.words,
        text=" ".join(indexed_words(pending.text)),
        tags=msgspec.json.encode(pending.tags).decode(),
    )


def _write_slices(tx: Tx, slices: Sequence[LogSlice]) -> Indexed:
    by_owner: dict[str, list[NewDocument]] = {}
    unfinished: list[int] = []
    for each in slices:  # in the order of their logs: transactions that lock rows in one order cannot deadlock
        session = sessions.find_by_log(tx, each.log.log_id, lock=True)
        registered = unindexed.lock(tx, each.log.log_id)
        if registered is None:
            continue
        current = _read_log(tx, session, each.log.log_id)
        was_changed = (current.owner_id, current.indexed_seq) != (each.log.owner_id, each.log.indexed_seq)
        if registered.is_stale or was_changed or each.through > current.last_seq:
            unfinished.append(each.log.log_id)  # another process was faster, or the log has become stale
            continue
        by_owner.setdefault(each.log.owner_id, []).extend(each.documents)
        if session is not None and each.through != session.indexed_seq:
            sessions.set_indexed(tx, session, each.through)
    count = 0
    for owner_id in sorted(by_owner):
        count += len(documents.insert(tx, owner_id, by_owner[owner_id]))
        if by_owner[owner_id]:
            unembedded.add(tx, owner_id)
    written = [each for each in slices if each.log.log_id not in unfinished]
    return Indexed(count, [*unfinished, *_finish(tx, written)])


def _finish(tx: Tx, slices: Iterable[LogSlice]) -> list[int]:
    """Remove the logs that are indexed to their end from the list of unindexed ones. Return the others."""
    unfinished: list[int] = []
    for each in slices:
        current = _read_log(tx, sessions.find_by_log(tx, each.log.log_id), each.log.log_id)
        if any(kind.read_pending(tx, current, 1) for kind in DOCUMENT_KINDS.values()):
            unfinished.append(each.log.log_id)
            unindexed.postpone(tx, each.log.log_id)
        else:
            unindexed.delete(tx, each.log.log_id)
    return unfinished


def _remove_stale(tx: Tx, log_id: int) -> Indexed:
    """Remove some documents that are not valid any more. What is left of the log is indexed afterwards."""
    session = sessions.find_by_log(tx, log_id, lock=True)
    registered = unindexed.lock(tx, log_id)
    if registered is None or not registered.is_stale:
        return Indexed(0, [log_id])
    if documents.delete_slice(tx, log_id, SLICE_DOCUMENTS) == SLICE_DOCUMENTS:
        return Indexed(0, [log_id])
    if session is None and not lineage.last_shared_seq(tx, log_id):
        unindexed.delete(tx, log_id)
        return Indexed(0, [])
    unindexed.mark_clean(tx, log_id)
    return Indexed(0, [log_id])
