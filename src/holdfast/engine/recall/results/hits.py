"""Turns ranked documents into hits: checks again what the caller may read, and reads their texts."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS, read_document_texts
from holdfast.engine.recall.files.stored_roots import readable_roots
from holdfast.engine.recall.requests.targets import Place, find_forks, is_in_places
from holdfast.engine.recall.results.live_messages import is_message_in
from holdfast.engine.recall.results.message_reading import FoundMessage, read_found
from holdfast.engine.recall.retrieval import RankedDocument
from holdfast.model.identity import Principal
from holdfast.model.search import Hit, MessageHit, message_uri
from holdfast.store.access.search import readable_documents, readable_nodes
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
    file_uri: str | None = None
    """Of a part of a file: the address of the file."""


def locate(
    tx: Tx, principal: Principal, documents: Sequence[RankedDocument], places: Sequence[Place]
) -> Iterator[Located]:
    """Yield the documents in the places that the caller may read now, each once, in order."""
    in_logs = [(document.log_id, document.number) for document in documents if document.log_id is not None]
    keys = list(dict.fromkeys(in_logs))
    found = readable_documents.sessions_of_documents(tx, grantee_of(principal), keys)
    readers = dict(zip(keys, found, strict=True))
    forks = find_forks(tx, principal, places)
    files = _locate_files(tx, principal, documents)
    seen = set[str]()
    for document in documents:
        if document.content_id is not None:
            place = files.get(document.content_id)
            if place is not None:
                # Its place was compared with those of the search before it was ranked.
                address = DOCUMENT_KINDS[document.kind].uri(place, document.number)
                yield Located(document, address, None, place if document.number else None)
            continue
        session = None if document.log_id is None else readers[document.log_id, document.number]
        for reader in (session, *(fork.session for fork in forks if is_message_in(document, fork.inherited))):
            uri = _address(document, reader)
            if uri is not None and uri not in seen and is_in_places(uri, places):
                seen.add(uri)
                yield Located(document, uri, reader)
                break


def _locate_files(tx: Tx, principal: Principal, documents: Sequence[RankedDocument]) -> dict[int, str]:
    """Return the addresses of the files and folders whose contents the caller may read now, by content."""
    content_ids = list(dict.fromkeys(each.content_id for each in documents if each.content_id is not None))
    tops = readable_roots(principal)
    found = readable_nodes.locate(tx, list(tops), content_ids) if content_ids else {}
    return {content_id: f"{tops[node.root]}/{node.path}" for content_id, node in found.items()}


def _address(document: RankedDocument, session: StoredSession | None) -> str | None:
    """Return the address of a document, or None if the caller may not read it, or if it does not exist any more."""
    if session is None:
        return None
    if document.kind == "message":
        return message_uri(session.uri, document.number) if document.number <= session.last_seq else None
    if session.log_id != document.log_id:
        return None  # a fork has copies of the archives that it shares
    return DOCUMENT_KINDS[document.kind].uri(session.uri, document.number)


def message_hits(tx: Tx, located: Sequence[Located], around: int, words: Sequence[str]) -> list[MessageHit]:
    """Return the hits of messages, in order."""
    readable = [(each, each.session) for each in located if each.session is not None]
    found = [FoundMessage(session, each.document.number) for each, session in readable]
    return [
        MessageHit(
            uri=each.uri,
            session_id=session.session_id,
            owner=session.owner_id,
            seq=each.document.number,
            score=each.document.score,
            reasons=each.document.reasons,
            message=read.message,
            around=read.around,
            is_shortened=read.is_shortened,
        )
        for (each, session), read in zip(readable, read_found(tx, found, around, words), strict=True)
    ]


def document_hits(tx: Tx, located: Sequence[Located], *, with_content: bool) -> tuple[list[Hit], int]:
    """Return the hits of other documents, in order, and how many have no content because an answer has a size."""
    hits: list[Hit] = []
    bytes_left, missing = CONTENT_BYTES, 0
    texts = read_document_texts(tx, [each.document for each in located])
    for each in located:
        text = texts.get(each.document.key)
        if text is None:
            continue
        content = (text.content if each.document.level else text.abstract) if with_content else None
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
                document=each.file_uri,
                part=each.document.number if each.file_uri else None,
                title=text.title,
                page=text.page,
            )
        )
    return hits, missing
