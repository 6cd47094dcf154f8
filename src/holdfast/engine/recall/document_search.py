"""Searches the index: chooses candidates among all documents that a caller may read, and ranks them."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from holdfast import forking
from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall import search_scope, vector_search
from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.document_pool import DocumentReader, build_pool, cached_messages
from holdfast.engine.recall.indexing import new_document
from holdfast.engine.recall.owner_tables import OwnerTable, tables_of
from holdfast.engine.recall.pending import Pending, index_now, read_pending
from holdfast.engine.recall.retrieval import RankedDocument, Retrieval, RetrievalRequest
from holdfast.engine.recall.search_scope import Scope
from holdfast.engine.recall.uses import hotness_of_documents
from holdfast.engine.recall.vector_search import QueryVector, TableCosines, embed_query
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, SearchedTime
from holdfast.providers.static_vectors import word_vectors
from holdfast.search import matches, ranking
from holdfast.search.documents import Document, Place
from holdfast.search.features import PERSON_ROLES, closeness_in_time
from holdfast.search.matches import Universe, WordMatches
from holdfast.search.query import Query, parse_query, without_speakers
from holdfast.search.stems import stem
from holdfast.search.terms import Vocabulary
from holdfast.search.times.ranges import TimeRange
from holdfast.store.access import readable_documents, text_hits
from holdfast.store.access.readable_documents import Candidate, DocumentFilter
from holdfast.store.database import Tx
from holdfast.store.tables.embeddings.vectors import VectorFilter
from holdfast.store.timestamps import from_micros
from holdfast.text.words import indexed_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

INDEXING_SECONDS = 5.0
"""How long a search indexes pending messages first, if there are too many to read them."""
MAX_SHARED = 2_000
"""Documents of other owners that are found by each word, the newest ones."""
MESSAGE_LEVEL = 2
DAY_MICROS = 86_400_000_000
_SPEAKER_WEIGHT, _TIME_WEIGHT = 1.4, 3.0
"""What a named speaker and a matching time count for the choice of candidates."""
NOTHING = Retrieval(documents=[], times=[], notes=[], searched=0, candidates=0)

_vocabulary = Vocabulary(word_vectors)
_vocabulary_lock = forking.Lock()


class _Sources(NamedTuple):
    """All that was found: the caller's own documents, those of others that match, and pending messages."""

    scope: Scope
    table: OwnerTable
    allowed: "Array"
    """Which rows of the table may be returned."""
    cosines: TableCosines
    """The cosine of each row of the table."""
    own: "list[Array]"
    """For each word of the query the rows that have it."""
    shared: list[list[Candidate]]
    """For each word of the query the documents of others that have it."""
    pending: list[Document]


def search(resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Retrieval:
    """Find and rank documents. Call it outside a transaction."""
    read = partial(resources.db.read, principal.account_id)
    table: OwnerTable = read(lambda tx: tables_of(resources.db).read(tx, principal.internal_id))
    query = without_speakers(parse_query(request.query, request.now), _words_of(table.speaker_names))
    vector, notes = embed_query(resources, principal.account_id, " ".join(query.words))
    run = partial(_search, resources=resources, principal=principal, request=request, query=query, vector=vector)
    unread, retrieval = read(run)
    if unread:
        index_now(resources, principal.account_id, unread, time.monotonic() + INDEXING_SECONDS)
        unread, retrieval = read(partial(run, is_last=True))
        if unread:
            notes.append(f"messages of {len(unread)} sessions are not indexed yet; search again later")
    found: Retrieval = msgspec.structs.replace(retrieval, notes=notes)
    return found


def _words_of(speakers: Sequence[str]) -> frozenset[str]:
    return frozenset(word for speaker in speakers for word in speaker.split())


def _read_pending(tx: Tx, scope: Scope, request: RetrievalRequest) -> Pending:
    if MESSAGE not in request.kinds or (request.levels and MESSAGE_LEVEL not in request.levels) or request.tags:
        return Pending([], [])
    logs = None
    if scope.own_ranges is not None:
        logs = list({each.log_id for each in [*scope.own_ranges, *scope.shared]})
    return read_pending(tx, scope.grantee, scope.shared, DocumentFilter(log_ids=logs))


def _search(
    tx: Tx,
    *,
    resources: EngineResources,
    principal: Principal,
    request: RetrievalRequest,
    query: Query,
    vector: QueryVector | None,
    is_last: bool = False,
) -> tuple[list[int], Retrieval]:
    """Return the logs with too many pending messages to read, and what was found if there are none, or if `is_last`."""
    scope = search_scope.resolve(tx, grantee_of(principal), request)
    pending = _read_pending(tx, scope, request)
    if pending.unread_logs and not is_last:
        return pending.unread_logs, NOTHING
    table = tables_of(resources.db).read(tx, principal.internal_id)
    waiting = _pending_documents(pending, scope, table, request)
    query = without_speakers(query, _words_of([*table.speaker_names, *(document.speaker for document in waiting)]))
    terms = [indexed_words(word) for word in query.words]
    wanted = _filter(request)
    sources = _Sources(
        scope=scope,
        table=table,
        allowed=search_scope.allowed_rows(tx, scope, table, request),
        cosines=vector_search.cosines_of_table(
            tx, resources, principal.internal_id, table, vector, _vector_filter(scope, request)
        ),
        own=[table.rows_of(n) for n in text_hits.find_numbers(tx, principal.internal_id, terms, scope.own_ranges)],
        shared=readable_documents.shared_candidates(tx, scope.shared, terms, wanted, MAX_SHARED),
        pending=waiting,
    )
    ranked: list[RankedDocument] = []
    searched = chosen = 0
    for kind in request.kinds:
        found = _select_kind(kind, sources, query)
        searched += found.documents
        if found.documents:
            best, count = _rank(tx, resources, principal, kind, sources, found, query, vector, request)
            ranked += best
            chosen += count
    ranked.sort(key=lambda document: -document.score)
    times = [_searched_time(query, each) for each in query.times]
    retrieval = Retrieval(documents=ranked, times=times, notes=[], searched=searched, candidates=chosen)
    return pending.unread_logs, retrieval


def _filter(request: RetrievalRequest) -> DocumentFilter:
    return DocumentFilter(
        kinds=request.kinds, since=request.since, until=request.until, levels=request.levels, tags=request.tags
    )


def _vector_filter(scope: Scope, request: RetrievalRequest) -> VectorFilter:
    return VectorFilter(
        kinds=request.kinds,
        levels=request.levels,
        ranges=None if scope.uri_prefixes else scope.own_ranges,
        without_logs=scope.stale_logs,
        since=request.since,
        until=request.until,
    )


def _searched_time(query: Query, found: TimeRange) -> SearchedTime:
    """Return a time of the query; `until` is the end of its last day."""
    since, until = found.first_day * DAY_MICROS, (found.last_day + 1) * DAY_MICROS
    return SearchedTime(query.text[found.start : found.end], from_micros(since), from_micros(until))


def _pending_documents(pending: Pending, scope: Scope, table: OwnerTable, request: RetrievalRequest) -> list[Document]:
    """Analyse pending messages, as the indexer will, without those that the table has from another transaction."""
    documents: list[Document] = []
    logs = {message.log_id for message in pending.messages} - set(scope.stale_logs)
    indexed = np.isin(table.logs, list(logs)) if logs else np.zeros(len(table.logs), bool)
    known = set(zip(table.logs[indexed].tolist(), table.seqs[indexed].tolist(), strict=True))
    ranges = None if scope.own_ranges is None else [*scope.own_ranges, *scope.shared]
    for index, message in enumerate(pending.messages):
        log_id, seq, created_at = message.log_id, message.document.number, message.document.created_at
        if not (request.since or 0) <= created_at < (request.until or 2**63) or (log_id, seq) in known:
            continue
        if ranges is not None and not search_scope.is_in_ranges(ranges, log_id, seq):
            continue
        new = new_document(MESSAGE, message.log_id, message.document)
        documents.append(
            Document(
                n=-1 - index,
                kind=MESSAGE,
                owner_id="",
                log_id=message.log_id,
                number=new.number,
                level=new.level,
                role=new.role,
                speaker=new.speaker,
                created_at=new.created_at,
                words=" ".join(new.words),
                dates=new.dates,
                flags=new.flags,
                tags=new.tags,
                uri=None,
            )
        )
    return documents


class _Found(NamedTuple):
    """What was found of one kind of documents."""

    matches: list[WordMatches]
    universe: Universe
    documents: int
    """How many documents of the kind could be found."""


def _select_kind(kind: str, sources: _Sources, query: Query) -> _Found:
    """Select the documents of a kind, and the places where each word of the query occurs in them."""
    table = sources.table
    code = table.kind_names.index(kind) if kind in table.kind_names else -1
    is_wanted = sources.allowed & (table.kinds == code)
    pending = sources.pending if kind == MESSAGE else []
    pending_stems = [frozenset(stem(word) for word in document.words.split()) for document in pending]
    found: list[WordMatches] = []
    others = set[Place]()
    for word, rows, candidates in zip(query.words, sources.own, sources.shared, strict=True):
        shared = [each for each in candidates if each.kind == kind]
        waiting = [each for each, stems in zip(pending, pending_stems, strict=True) if stem(word) in stems]
        others.update(_place(each) for each in shared)
        found.append(_matches(table, rows[is_wanted[rows]], [*shared, *waiting]))
    rows = np.flatnonzero(is_wanted)
    own = _matches(table, rows, pending)
    universe = Universe(
        own.log_ids,
        own.numbers,
        _known(np.concatenate([sources.cosines.values[rows], np.full(len(pending), np.nan, np.float32)])),
        _closeness(table, rows, pending, query),
    )
    return _Found(found, universe, len(rows) + len(pending) + len(others))


def _matches(table: OwnerTable, rows: "Array", others: Sequence[Candidate | Document]) -> WordMatches:
    """Return rows of the caller's own table, and other documents, as places."""
    places = [_place(each) for each in others]
    logs = table.logs[rows]
    numbers = np.where(logs > 0, table.seqs[rows], table.numbers[rows])
    return WordMatches(
        np.concatenate([logs, np.array([place.log_id for place in places], np.int64)]),
        np.concatenate([numbers, np.array([place.number for place in places], np.int64)]),
        np.concatenate([table.persons[rows], np.array([each.role in PERSON_ROLES for each in others], bool)]),
    )


def _place(document: Candidate | Document) -> Place:
    return Place(document.log_id or 0, document.number if document.log_id else document.n)


def _known(cosines: "Array") -> "Array":
    """Return cosines, with their mean for documents without a vector."""
    known = ~np.isnan(cosines)
    return np.where(known, cosines, cosines[known].mean() if known.any() else 0.0)


def _closeness(table: OwnerTable, rows: "Array", pending: Sequence[Document], query: Query) -> "Array":
    """Return how well who wrote each document, and when, fit the query: rows of the table, then pending documents."""
    closeness = np.zeros(len(rows) + len(pending))
    days = np.concatenate([table.times[rows], np.array([each.created_at for each in pending], np.int64)]) // DAY_MICROS
    for each in query.times:
        closeness = np.maximum(closeness, _TIME_WEIGHT * closeness_in_time(days, each))
    speakers = dict.fromkeys([*table.speaker_names, *(document.speaker for document in pending)])
    named = [name for name in speakers if not query.mentioned.isdisjoint(name.split())]
    if len(named) == 1:
        code = table.speaker_names.index(named[0]) if named[0] in table.speaker_names else -1
        said = [document.speaker == named[0] for document in pending]
        closeness += _SPEAKER_WEIGHT * np.concatenate([table.speakers[rows] == code, np.array(said, bool)])
    return closeness


def _rank(
    tx: Tx,
    resources: EngineResources,
    principal: Principal,
    kind: ContextType,
    sources: _Sources,
    found: _Found,
    query: Query,
    vector: QueryVector | None,
    request: RetrievalRequest,
) -> tuple[list[RankedDocument], int]:
    """Rank the documents of a kind. Return the best ones, and how many were compared."""
    candidates = matches.choose(found.matches, found.documents, found.universe)
    pending = {document.place: document for document in sources.pending} if kind == MESSAGE else {}
    reader = DocumentReader(tx, sources.scope, kind, pending, cached_messages(resources.db))
    cosines_of = partial(_cosines, tx, resources, sources, vector)
    pool = build_pool(
        reader, candidates, cosines_of, partial(hotness_of_documents, tx, principal, request.now), request
    )
    if not pool.candidates:
        return [], 0
    with _vocabulary_lock:
        ranked = ranking.rank(query, pool, _vocabulary, request.limit)
    best = [(pool.documents[each.position], each) for each in ranked]
    return [
        RankedDocument(
            kind=kind,
            owner_id=document.owner_id,
            log_id=document.log_id,
            number=document.number,
            level=document.level,
            uri=document.uri,
            tags=msgspec.json.decode(document.tags),
            created_at=document.created_at,
            score=each.score,
            reasons=each.reasons,
        )
        for document, each in best
    ], pool.candidates


def _cosines(
    tx: Tx,
    resources: EngineResources,
    sources: _Sources,
    vector: QueryVector | None,
    documents: Sequence[Document],
) -> "Array":
    """Return the cosine of each document, or not a number for one without a vector."""
    cosines = np.full(len(documents), np.nan, dtype=np.float32)
    own_id = sources.scope.grantee.internal_id
    by_owner: dict[str, list[int]] = {}
    for index, document in enumerate(documents):
        if document.n > 0:
            by_owner.setdefault(document.owner_id, []).append(index)
    for owner_id, indexes in by_owner.items():
        numbers = [documents[index].n for index in indexes]
        if owner_id == own_id and sources.cosines.is_exact:
            at = np.minimum(np.searchsorted(sources.table.numbers, numbers), len(sources.table.numbers) - 1)
            values = np.where(sources.table.numbers[at] == numbers, sources.cosines.values[at], np.nan)
        else:
            values = vector_search.cosines_of_documents(tx, resources, owner_id, numbers, vector)
        cosines[indexes] = values
    return cosines
