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
from holdfast.engine.recall import search_scope, selection, vector_search
from holdfast.engine.recall.contents.content_search import ContentRequest, FoundContents, search_contents
from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS, MESSAGE
from holdfast.engine.recall.document_pool import DocumentReader, build_pool, cached_messages
from holdfast.engine.recall.files.stored_roots import readable_roots
from holdfast.engine.recall.indexing import new_document
from holdfast.engine.recall.owner_tables import OwnerTable, tables_of
from holdfast.engine.recall.pending import Pending, index_now, read_pending
from holdfast.engine.recall.retrieval import RankedDocument, Retrieval, RetrievalRequest
from holdfast.engine.recall.search_scope import Scope
from holdfast.engine.recall.selection import OwnMatches, Sources
from holdfast.engine.recall.uses import hotness_of_documents
from holdfast.engine.recall.vector_search import QueryVector, embed_query
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, SearchedTime
from holdfast.providers.static_vectors import word_vectors
from holdfast.search import ranking
from holdfast.search.documents import Document
from holdfast.search.features import Pool
from holdfast.search.matches import Candidates
from holdfast.search.query import Query, parse_query, without_speakers
from holdfast.search.terms import Vocabulary
from holdfast.search.times.periods import MICROSECONDS_PER_DAY
from holdfast.search.times.ranges import TimeRange
from holdfast.store.access.search import readable_documents, readable_nodes, search_state, text_hits
from holdfast.store.access.search.readable_documents import DocumentFilter
from holdfast.store.access.search.search_state import SearchState
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.embeddings import vectors
from holdfast.store.tables.embeddings.vectors import Spaces, VectorFilter
from holdfast.store.timestamps import from_micros
from holdfast.text.words import indexed_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

INDEXING_SECONDS = 5.0
"""How long a search indexes pending messages first, if there are too many to read them."""
MAX_SHARED = 2_000
"""Documents of other owners that are found by each word, the newest ones."""
MIN_FREQUENT, FREQUENT_DIVISOR = 20_000, 10
"""A word that at least 20,000 documents of an owner, and a tenth of them, have is counted but not looked up."""
MIN_SCORE = 0.001
"""What scores less has nothing to do with the query."""
MIN_TIME, MAX_TIME = -62_135_596_800_000_000, 253_402_300_799_000_000
"""The beginning of the year 1 and the end of the year 9999, in microseconds since 1970."""
NOTHING = Retrieval(documents=[], times=[], notes=[], searched=0, candidates=0)

_vocabulary = Vocabulary(word_vectors)
_vocabulary_lock = forking.Lock()


class _Asked(NamedTuple):
    """Who asks, and what is searched for."""

    principal: Principal
    request: RetrievalRequest
    query: Query
    vector: QueryVector | None


def search(resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Retrieval:
    """Find and rank documents. Call it outside a transaction."""
    read = partial(resources.db.read, principal.account_id)
    in_logs = [kind for kind in request.kinds if kind in DOCUMENT_KINDS and not DOCUMENT_KINDS[kind].is_of_files]
    of_files = [kind for kind in request.kinds if kind in DOCUMENT_KINDS and DOCUMENT_KINDS[kind].is_of_files]
    known = read(lambda tx: _read_known(tx, resources, principal, in_logs, of_files))
    asked_for = parse_query(request.query, request.now + request.utc_offset)
    query = without_speakers(asked_for, _words_of(known.speakers))
    vector, notes = embed_query(resources, None if request.by_words else known.spaces, " ".join(query.words))
    retrieval = NOTHING
    if in_logs:
        limited = msgspec.structs.replace(request, kinds=in_logs)
        retrieval, unread_notes = _search_logs(resources, _Asked(principal, limited, query, vector))
        notes += unread_notes
    if known.has_files:
        asked = ContentRequest(principal, request, asked_for, vector)
        found = read(lambda tx: search_contents(tx, resources, asked, of_files, _rank_pool))
        retrieval = _with_contents(retrieval, found)
    return msgspec.structs.replace(
        retrieval,
        times=retrieval.times if in_logs else _searched_times(request, asked_for),
        notes=[*notes, *retrieval.notes],
    )


def _rank_pool(query: Query, pool: Pool, limit: int) -> list[ranking.Ranked]:
    with _vocabulary_lock:
        ranked = ranking.rank(query, pool, _vocabulary, limit)
    return [each for each in ranked if each.score >= MIN_SCORE]


def _with_contents(retrieval: Retrieval, found: FoundContents) -> Retrieval:
    documents = sorted([*retrieval.documents, *found.documents], key=lambda document: -document.score)
    return msgspec.structs.replace(
        retrieval,
        documents=documents,
        notes=[*retrieval.notes, *found.notes],
        searched=retrieval.searched + found.searched,
        candidates=retrieval.candidates + found.candidates,
    )


def _search_logs(resources: EngineResources, asked: _Asked) -> tuple[Retrieval, list[str]]:
    """Find and rank documents of logs. Pending messages are indexed first if there are many."""
    account = asked.principal.account_id
    read = partial(resources.db.read, account)
    notes: list[str] = []
    run = partial(_search, resources=resources, asked=asked)
    unread, retrieval = read(run)
    if unread:
        index_now(resources, account, unread, time.monotonic() + INDEXING_SECONDS)
        unread, retrieval = read(partial(run, is_last=True))
        if unread:
            notes.append(f"messages of {len(unread)} sessions are not indexed yet; search again later")
    return retrieval, notes


class _Known(NamedTuple):
    """What must be known before the query is parsed and embedded."""

    speakers: tuple[str, ...]
    spaces: Spaces | None
    has_files: bool
    """Whether the caller may read roots in which files are, or were."""


def _read_known(
    tx: Tx, resources: EngineResources, principal: Principal, in_logs: Sequence[str], of_files: Sequence[str]
) -> _Known:
    owner_id, speakers = principal.internal_id, tuple[str, ...]()
    if in_logs:
        speakers = tables_of(resources.db).read(tx, owner_id, documents.statistics(tx, owner_id)).speaker_names
    has_files = bool(of_files) and bool(readable_nodes.read_versions(tx, list(readable_roots(principal))))
    return _Known(speakers, vectors.find_spaces(tx), has_files)


def _words_of(speakers: Sequence[str]) -> frozenset[str]:
    return frozenset(word for speaker in speakers for word in speaker.split())


def _read_pending(tx: Tx, scope: Scope, state: SearchState, request: RetrievalRequest) -> Pending:
    level = DOCUMENT_KINDS[MESSAGE].level
    if MESSAGE not in request.kinds or (request.levels and level not in request.levels) or request.tags:
        return Pending([], [])
    logs = None
    if scope.own_ranges is not None:
        logs = list({each.log_id for each in [*scope.own_ranges, *scope.shared]})
    wanted = DocumentFilter(log_ids=logs)
    ranges = readable_documents.pending_ranges(tx, state.unindexed, scope.grantee, scope.shared, wanted)
    return read_pending(tx, ranges)


def _search(tx: Tx, *, resources: EngineResources, asked: _Asked, is_last: bool = False) -> tuple[list[int], Retrieval]:
    """Return the logs with too many pending messages to read, and what was found if there are none, or if `is_last`."""
    request, vector, owner_id = asked.request, asked.vector, asked.principal.internal_id
    grantee = grantee_of(asked.principal)
    state = search_state.read(tx, grantee, vector.space if vector else None)
    scope = search_scope.resolve(tx, grantee, request, state)
    pending = _read_pending(tx, scope, state, request)
    if pending.unread_logs and not is_last:
        return pending.unread_logs, NOTHING
    table = tables_of(resources.db).read(tx, owner_id, state.statistics)
    waiting = _pending_documents(pending, scope, table, request)
    speakers = _words_of([*table.speaker_names, *(document.speaker for document in waiting)])
    query = without_speakers(asked.query, speakers)
    terms = [indexed_words(word) for word in query.words]
    sources = Sources(
        scope=scope,
        table=table,
        allowed=search_scope.allowed_rows(tx, scope, table, request),
        cosines=vector_search.cosines_of_table(
            tx, resources, owner_id, table, vector, state, _vector_filter(scope, request)
        ),
        own=[
            OwnMatches(hits.documents, table.rows_of(hits.numbers))
            for hits in text_hits.find_numbers(tx, owner_id, terms, scope.own_ranges, _max_hits(state))
        ],
        shared=readable_documents.shared_candidates(tx, scope.shared, terms, _filter(request), MAX_SHARED),
        near=vector_search.find_near(tx, resources, scope.shared, vector, _vector_filter(scope, request)),
        pending=waiting,
    )
    retrieval = _rank_all(tx, resources, asked._replace(query=query), sources, state)
    return pending.unread_logs, retrieval


def _max_hits(state: SearchState) -> int:
    """Return from how many documents on a word says too little to look at each document that has it."""
    return max(MIN_FREQUENT, state.statistics.documents // FREQUENT_DIVISOR)


def _rank_all(tx: Tx, resources: EngineResources, asked: _Asked, sources: Sources, state: SearchState) -> Retrieval:
    ranked: list[RankedDocument] = []
    searched = chosen = 0
    for kind in asked.request.kinds:
        selected = selection.select(kind, sources, asked.query)
        if selected is not None:
            searched += selected.searched
            best, count = _rank(tx, resources, kind, sources, selected.candidates, asked, state)
            ranked += best
            chosen += count
    ranked.sort(key=lambda document: -document.score)
    times = _searched_times(asked.request, asked.query)
    return Retrieval(documents=ranked, times=times, notes=[], searched=searched, candidates=chosen)


def _filter(request: RetrievalRequest) -> DocumentFilter:
    return DocumentFilter(
        kinds=request.kinds, since=request.since, until=request.until, levels=request.levels, tags=request.tags
    )


def _vector_filter(scope: Scope, request: RetrievalRequest) -> VectorFilter:
    return VectorFilter(
        kinds=request.kinds,
        levels=request.levels,
        ranges=scope.own_ranges,
        without_logs=scope.stale_logs,
        since=request.since,
        until=request.until,
    )


def _searched_times(request: RetrievalRequest, query: Query) -> list[SearchedTime]:
    return [_searched_time(request, query, each) for each in query.times]


def _searched_time(request: RetrievalRequest, query: Query, found: TimeRange) -> SearchedTime:
    """Return a time of the query, in the asker's time zone; `until` is the end of its last day."""
    since, until = (
        from_micros(min(max(day * MICROSECONDS_PER_DAY - request.utc_offset, MIN_TIME), MAX_TIME))
        for day in (found.first_day, found.last_day + 1)
    )
    return SearchedTime(query.text[found.start : found.end], since, until)


def _pending_documents(pending: Pending, scope: Scope, table: OwnerTable, request: RetrievalRequest) -> list[Document]:
    """Analyse pending messages, as the indexer will, without those that the table has from another transaction."""
    documents: list[Document] = []
    logs = {message.log_id for message in pending.messages} - set(scope.stale_logs)
    indexed = np.isin(table.logs, list(logs)) if logs else np.zeros(len(table.logs), bool)
    known = set(zip(table.logs[indexed].tolist(), table.seqs[indexed].tolist(), strict=True))
    ranges = None if scope.own_ranges is None else [*scope.own_ranges, *scope.shared]
    for index, message in enumerate(pending.messages):
        log_id, seq, created_at = message.log_id, message.document.number, message.document.created_at
        if not search_scope.is_in_time(request, created_at) or (log_id, seq) in known:
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
            )
        )
    return documents


def _rank(
    tx: Tx,
    resources: EngineResources,
    kind: ContextType,
    sources: Sources,
    candidates: Candidates,
    asked: _Asked,
    state: SearchState,
) -> tuple[list[RankedDocument], int]:
    """Rank the documents of a kind. Return the best ones, and how many were compared."""
    principal, request, query, vector = asked
    pending = {document.place: document for document in sources.pending} if kind == MESSAGE else {}
    reader = DocumentReader(tx, sources.scope, kind, state.statistics, pending, cached_messages(resources.db))
    pool = build_pool(
        reader,
        candidates,
        partial(_cosines, tx, resources, sources, vector),
        partial(hotness_of_documents, tx, principal, request.now),
        request,
    )
    if not pool.candidates:
        return [], 0
    best = [(pool.documents[each.position], each) for each in _rank_pool(query, pool, request.limit)]
    return [
        RankedDocument(
            kind=kind,
            owner_id=document.owner_id,
            log_id=document.log_id,
            number=document.number,
            level=document.level,
            tags=search_scope.tags_of(document),
            created_at=document.created_at,
            score=each.score,
            reasons=each.reasons,
        )
        for document, each in best
    ], pool.candidates


def _cosines(
    tx: Tx,
    resources: EngineResources,
    sources: Sources,
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
