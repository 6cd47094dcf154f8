"""Turns ranked documents into hits: checks again what the caller may read, and reads their texts."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall.requests.targets import Place, SearchedFork, find_forks, is_in_places
from holdfast.engine.recall.results.message_reading import FoundMessage, read_found
from holdfast.engine.recall.retrieval import RankedDocument
from holdfast.model.archives import archive_uri
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, Hit, MessageHit, message_uri
from holdfast.store.access import readable_documents
from holdfast.store.checked import archive_rows
from holdfast.store.database import Tx
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.timestamps import from_micros

CONTENT_BYTES = 512 * 1024
"""How many bytes of whole texts an answer has, besides messages. Further hits have no content."""


class Located(msgspec.Struct, frozen=True):
    """A document that the caller may read, with its address."""

    document: RankedDocument
    uri: str
    session: StoredSession | None


class DocumentText(msgspec.Struct, frozen=True):
    abstract: str
    content: str


def locate(
    tx: Tx, principal: Principal, documents: Sequence[RankedDocument], places: Sequence[Place]
) -> Iterator[Located]:
    """Yield the documents in some places that the caller may read now, each once, in order.

    A message has the address of the session of its log. If the caller may not read that one, or searches a fork that
    inherited the message, it has the address of the fork.
    """
    in_logs = {_in_log(document): None for document in documents if document.log_id is not None}
    found = readable_documents.sessions_of_documents(tx, grantee_of(principal), list(in_logs))
    sessions = dict(zip(in_logs, found, strict=True))
    forks = find_forks(tx, principal, places)
    seen = set[str]()
    for document in documents:
        session = None if document.log_id is None else sessions[_in_log(document)]
        uri = _address(document, session)
        if uri is None or not is_in_places(uri, places):
            session = _searched_fork(document, forks)
            uri = None if session is None else _address(document, session)
        if uri is not None and uri not in seen and is_in_places(uri, places):
            seen.add(uri)
            yield Located(document, uri, session)


def _in_log(document: RankedDocument) -> tuple[int, int]:
    """Return the log and the number of a message. Forks inherit nothing but messages."""
    return document.log_id or 0, document.number if document.kind == "message" else 0


def _searched_fork(document: RankedDocument, forks: Sequence[SearchedFork]) -> StoredSession | None:
    """Return the first fork that has inherited a message."""
    log_id, seq = _in_log(document)
    for fork in forks:
        if any(each.log_id == log_id and each.first <= seq <= each.last for each in fork.inherited):
            return fork.session
    return None


def _address(document: RankedDocument, session: StoredSession | None) -> str | None:
    """Return the address of a document, or None if the caller may not read it, or if it does not exist any more."""
    if document.log_id is None:
        return document.uri
    if session is None:
        return None
    if document.kind == "message":
        return message_uri(session.uri, document.number) if document.number <= session.last_seq else None
    return document.uri or archive_uri(session.owner_id, session.session_id, document.number)


def message_hits(tx: Tx, located: Sequence[Located], around: int, words: Sequence[str]) -> list[MessageHit]:
    """Return the hits of messages, in order."""
    found = [FoundMessage(each.session, each.document.number) for each in located if each.session is not None]
    return [
        MessageHit(
            uri=each.uri,
            session_id=hit.session.session_id,
            owner=hit.session.owner_id,
            seq=hit.seq,
            score=each.document.score,
            reasons=each.document.reasons,
            message=read.message,
            around=read.around,
            is_shortened=read.is_shortened,
        )
        for each, hit, read in zip(located, found, read_found(tx, found, around, words), strict=True)
    ]


def document_hits(tx: Tx, located: Sequence[Located], *, with_content: bool) -> tuple[list[Hit], int]:
    """Return the hits of other documents, in order, and how many have no content because an answer has a size."""
    hits: list[Hit] = []
    bytes_left, missing = CONTENT_BYTES, 0
    for each in located:
        text = TEXT_READERS[each.document.kind](tx, each)
        if text is None:
            continue
        content = text.content if with_content else None
        if content is not None:
            bytes_left -= len(content.encode())
            if bytes_left < 0:
                content, missing = None, missing + 1
        hits.append(
            Hit(
                context_type=each.document.kind,
                uri=each.uri,
                level=each.document.level,
                score=each.document.score,
                abstract=text.abstract,
                tags=each.document.tags,
                created_at=from_micros(each.document.created_at),
                reasons=each.document.reasons,
                content=content,
            )
        )
    return hits, missing


def _read_overview(tx: Tx, located: Located) -> DocumentText | None:
    document = located.document
    if document.log_id is None:
        return None
    found = archive_rows.select(tx, document.log_id, "number = ? AND state = 'done'", (document.number,))
    if not found or found[0].is_damaged:
        return None
    return DocumentText(found[0].abstract, found[0].overview)


TEXT_READERS: dict[ContextType, Callable[[Tx, Located], DocumentText | None]] = {"overview": _read_overview}
"""How the text of a document of each kind is read, except that of messages. None if it does not exist any more."""
