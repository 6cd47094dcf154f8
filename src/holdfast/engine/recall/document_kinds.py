"""The kinds of documents. Each kind that a search finds has one entry; there is no second search path."""

from collections.abc import Callable, Sequence

import msgspec

from holdfast.engine.recall.files import part_texts
from holdfast.engine.recall.retrieval import DocumentKey, DocumentText, RankedDocument
from holdfast.model.archives import archive_id
from holdfast.model.messages import Message
from holdfast.model.search import message_uri
from holdfast.search.results.recalled import own_parts
from holdfast.search.speakers import speaker_of
from holdfast.store.checked import archive_rows
from holdfast.store.database import Tx
from holdfast.store.tables import archives, messages
from holdfast.store.tables.documents import NOBODY
from holdfast.store.tables.lineage import LogRange
from holdfast.store.timestamps import to_micros
from holdfast.text.words import searchable_text

MAX_BYTES = 1_000_000
"""How much of messages is read at once."""
MESSAGE, OVERVIEW, RESOURCE, SKILL = "message", "overview", "resource", "skill"


class IndexedLog(msgspec.Struct, frozen=True):
    """A log, and how much of it is indexed."""

    log_id: int
    owner_id: str
    """The internal id of the owner of its session, or `NOBODY` if only forks share it."""
    indexed_seq: int
    """Its messages up to here are indexed."""
    last_seq: int
    """Its last message; without a session, the last one that a fork shares."""


class PendingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is not indexed yet."""

    number: int
    role: str = ""
    speaker: str = ""
    created_at: int
    text: str
    tags: list[str] = []


class DocumentKind(msgspec.Struct, frozen=True, kw_only=True):
    level: int
    """How detailed its documents are: 0 is an abstract, 1 an overview, 2 the whole text."""
    read_texts: Callable[[Tx, int, Sequence[int]], dict[int, DocumentText]]
    """Reads the texts of some documents of a log or of a content, by number. Damaged and deleted ones are missing."""
    read_pending: Callable[[Tx, IndexedLog, int], list[PendingDocument]] = lambda _tx, _log, _limit: []
    """Reads up to a number of documents of a log that are not indexed yet, in order. A damaged one is empty."""
    uri: Callable[[str, int], str] = lambda place, number: f"{place}#{number}" if number else place
    """The address of a document, from that of its session or file and from its number."""
    is_of_files: bool = False
    """Whether its documents are parts of stored files, and not of a log. The processing of files writes them."""


def _pending_messages(tx: Tx, log: IndexedLog, limit: int) -> list[PendingDocument]:
    first = log.indexed_seq + 1
    if log.owner_id == NOBODY:  # it is not known where the log of a deleted session begins
        first = messages.next_seq(tx, LogRange(log.log_id, first, log.last_seq)) or log.last_seq + 1
    if first > log.last_seq:
        return []
    return read_messages(tx, LogRange(log.log_id, first, log.last_seq), limit, MAX_BYTES)


def read_messages(tx: Tx, log_range: LogRange, limit: int, max_bytes: int) -> list[PendingDocument]:
    """Read the first messages of a range as documents."""
    last = messages.last_fitting(tx, log_range, limit, max_bytes)
    found = messages.read(tx, [LogRange(log_range.log_id, log_range.first, last)], limit)
    pending: list[PendingDocument] = []
    for message in found:
        text = _text_of(message)
        pending.append(
            PendingDocument(
                number=message.seq,
                role=message.role,
                speaker=speaker_of(message.peer_id, text),
                created_at=to_micros(message.created_at),
                text=text,
            )
        )
    return pending


def _text_of(message: Message) -> str:
    """Return what is searched of a message. What a search has recalled before is not found a second time."""
    return "" if message.damaged else searchable_text(own_parts(message))


def _message_texts(tx: Tx, log_id: int, seqs: Sequence[int]) -> dict[int, DocumentText]:
    found = messages.read_seqs(tx, log_id, sorted(set(seqs)))
    return {message.seq: DocumentText("", _text_of(message)) for message in found if not message.damaged}


def _overview_texts(tx: Tx, log_id: int, numbers: Sequence[int]) -> dict[int, DocumentText]:
    condition = f"number IN ({', '.join('?' * len(numbers))}) AND state = 'done'"
    found = archive_rows.select(tx, log_id, condition, tuple(numbers))
    return {each.number: DocumentText(each.abstract, each.overview) for each in found if not each.is_damaged}


def _pending_overviews(tx: Tx, log: IndexedLog, limit: int) -> list[PendingDocument]:
    if log.owner_id == NOBODY:
        return []  # the archives of a deleted session are deleted; those of a fork are its own
    pending: list[PendingDocument] = []
    for number in archives.numbers_to_index(tx, log.log_id, limit):
        found = archive_rows.select(tx, log.log_id, "number = ?", (number,))
        is_readable = bool(found) and not found[0].is_damaged
        pending.append(
            PendingDocument(
                number=number,
                created_at=found[0].ended_at or found[0].created_at if is_readable else 0,
                text=found[0].overview if is_readable else "",
            )
        )
    return pending


DOCUMENT_KINDS: dict[str, DocumentKind] = {
    MESSAGE: DocumentKind(level=2, read_pending=_pending_messages, read_texts=_message_texts, uri=message_uri),
    OVERVIEW: DocumentKind(
        level=1,
        read_pending=_pending_overviews,
        read_texts=_overview_texts,
        uri=lambda session, number: f"{session}/history/{archive_id(number)}",
    ),
    RESOURCE: DocumentKind(level=2, read_texts=part_texts.read_texts, is_of_files=True),
    SKILL: DocumentKind(level=2, read_texts=part_texts.read_texts, is_of_files=True),
}
"""The kinds by name. They are indexed in this order."""


def read_document_texts(tx: Tx, documents: Sequence[RankedDocument]) -> dict[DocumentKey, DocumentText]:
    """Read the texts of documents, those of one log or file together. What does not exist any more is missing."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for kind, container, number in dict.fromkeys(document.key for document in documents):
        numbers.setdefault((kind, container), []).append(number)
    found: dict[DocumentKey, DocumentText] = {}
    for (kind, container), some in numbers.items():
        texts = DOCUMENT_KINDS[kind].read_texts(tx, container, some)
        found.update(((kind, container, number), text) for number, text in texts.items())
    return found
