"""Finds and ranks the documents that a caller may read."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.gate.session_access import grantee_of
from holdfast.model.access import RIGHT_BITS
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, Reason, SearchedTime
from holdfast.search.analysis import terms_of
from holdfast.store.access import shared_sessions
from holdfast.store.database import Tx
from holdfast.store.tables import archives, messages
from holdfast.store.tables.lineage import LogRange
from holdfast.store.tables.sessions import SessionFilter, StoredSession
from holdfast.store.timestamps import to_micros
from holdfast.text.words import searchable_text


class Target(msgspec.Struct, frozen=True):
    """Where to search. Without one, everything that the caller may read is searched."""

    owner_id: str | None = None
    """The internal id of the owner of the documents."""
    session_id: str | None = None
    """The session of the documents. It needs an owner."""
    uri_prefix: str | None = None
    """Documents with an address of their own, such as resources, have an address below this one."""


class RetrievalRequest(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    """What to search for, completed from the session if there is one."""
    kinds: list[ContextType]
    limit: int
    """How many documents of each kind to return."""
    targets: list[Target]
    """Where to search; empty for everywhere."""
    since: int | None
    """Documents of this time and later, in microseconds."""
    until: int | None
    """Documents before this time."""
    levels: list[int]
    tags: list[str]
    now: int
    """The time that expressions such as "yesterday" are relative to, in microseconds."""


class RankedDocument(msgspec.Struct, frozen=True, kw_only=True):
    kind: ContextType
    owner_id: str
    log_id: int | None
    number: int
    """The sequence number of a message, or the number of the archive of an overview."""
    level: int
    uri: str | None
    tags: list[str]
    created_at: int
    score: float
    reasons: list[Reason]


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    documents: list[RankedDocument]
    """Best first."""
    times: list[SearchedTime]
    notes: list[str]
    searched: int
    """How many documents could have been found."""
    candidates: int
    """How many of them were ranked."""


def retrieve(resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Retrieval:
    """Find and rank documents. It reads the database and may embed the query: call it outside a transaction."""
    words = set(terms_of(request.query))

    def read(tx: Tx) -> list[RankedDocument]:
        sessions = shared_sessions.page_with_own(tx, grantee_of(principal), SessionFilter(), 1_000)
        return [
            document
            for session in sessions
            if session.rights & RIGHT_BITS["read"] and _is_targeted(session, request.targets)
            for document in _documents(tx, session, words, request)
        ]

    found = resources.db.read(principal.account_id, read)
    matching = [
        document
        for document in found
        if document.score > 0
        and document.kind in request.kinds
        and (not request.levels or document.level in request.levels)
        and not request.tags
        and (request.since is None or document.created_at >= request.since)
        and (request.until is None or document.created_at < request.until)
    ]
    matching.sort(key=lambda document: (-document.score, -document.created_at))
    kept = [
        document
        for kind in request.kinds
        for document in [each for each in matching if each.kind == kind][: request.limit]
    ]
    kept.sort(key=lambda document: -document.score)
    return Retrieval(documents=kept, times=[], notes=[], searched=len(found), candidates=len(matching))


def _is_targeted(session: StoredSession, targets: list[Target]) -> bool:
    return not targets or any(
        target.uri_prefix is None
        and target.owner_id == session.owner_id
        and target.session_id in {None, session.session_id}
        for target in targets
    )


def _documents(tx: Tx, session: StoredSession, words: set[str], request: RetrievalRequest) -> Iterator[RankedDocument]:
    def document(kind: ContextType, number: int, level: int, created_at: int, text: str) -> RankedDocument:
        score = len(words & set(terms_of(text))) / max(1, len(words))
        return RankedDocument(
            kind=kind,
            owner_id=session.owner_id,
            log_id=session.log_id,
            number=number,
            level=level,
            uri=None,
            tags=[],
            created_at=created_at,
            score=score,
            reasons=[Reason("words", score)],
        )

    if "message" in request.kinds:
        own = LogRange(session.log_id, session.fork_seq + 1, session.last_seq)
        for message in messages.read(tx, [own], 10_000) if own.last >= own.first else ():
            text = f"{message.peer_id or ''} {searchable_text(message.parts)}"
            yield document("message", message.seq, 2, to_micros(message.created_at), text)
    if "overview" in request.kinds:
        for archive in archives.page(tx, session.log_id, after=0, limit=1_000):
            if archive.state == "done" and not archive.is_damaged:
                yield document("overview", archive.number, 1, archive.created_at, archive.overview)
