"""Reads the candidates of a search and their neighbours, as the ranker needs them."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import forking
from holdfast.engine.recall import search_scope
from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.retrieval import RetrievalRequest
from holdfast.engine.recall.search_scope import Scope
from holdfast.search.documents import Document, Place
from holdfast.search.features import Pool
from holdfast.search.matches import Candidates
from holdfast.store.access.search import text_hits
from holdfast.store.database import Database, Tx
from holdfast.store.tables.documents import Document as StoredDocument
from holdfast.store.tables.documents import OwnerStatistics
from holdfast.store.tables.lineage import LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CACHED = 100_000
"""Messages that a process remembers of a database. A full cache is emptied."""
MIN_AVERAGE_LENGTH = 5.0
"""The average number of words of documents that BM25 assumes at least."""

_OwnerKey = tuple[str, int | None, str, int]
"""The account, when it was created, an owner, and the version of the last removal of the owner's documents."""
_CachedMessages = dict[_OwnerKey, dict[Place, Document]]
_by_database: "weakref.WeakKeyDictionary[Database, _CachedMessages]" = weakref.WeakKeyDictionary()
_lock = forking.Lock()


def cached_messages(db: Database) -> _CachedMessages:
    """Return the messages of owners that this process has read, each by its owner: a transfer changes that one."""
    with _lock:
        return _by_database.setdefault(db, {})


class DocumentReader:
    """Reads documents of one kind that the caller may read. Pending ones come from memory."""

    def __init__(
        self,
        tx: Tx,
        scope: Scope,
        kind: str,
        statistics: OwnerStatistics,
        pending: dict[Place, Document],
        cache: _CachedMessages,
    ) -> None:
        self.statistics = statistics
        self._tx = tx
        self._scope = scope
        self._own_id = scope.grantee.internal_id
        self._kind = kind
        self._pending = pending
        self._stale = frozenset(scope.stale_logs)
        self._shared: dict[int, list[LogRange]] = {}
        for each in scope.shared:
            self._shared.setdefault(each.log_id, []).append(each)
        self._all_cached = cache
        self._cached: dict[Place, Document] = {}
        if kind == MESSAGE:
            key = (tx.account, statistics.account_created_at, self._own_id, statistics.removed_version)
            self._cached = cache.setdefault(key, {})

    def read(self, places: Iterable[Place]) -> dict[Place, Document]:
        found: dict[Place, Document] = {}
        missing: list[Place] = []
        pending, cache = self._pending, self._cached
        for place in places:
            document = pending.get(place) or cache.get(place)
            if document is None:
                missing.append(place)
            else:
                found[place] = document
        if missing:
            found.update(self._read_missing(missing))
        return {place: document for place, document in found.items() if self._is_readable(document)}

    def _read_missing(self, places: Sequence[Place]) -> dict[Place, Document]:
        read = [to_document(row) for row in text_hits.read_documents(self._tx, self._kind, places)]
        if self._kind == MESSAGE:
            if sum(map(len, self._all_cached.values())) > MAX_CACHED:
                self._all_cached.clear()
            self._cached.update({document.place: document for document in read if document.owner_id == self._own_id})
        return {document.place: document for document in read}

    def are_candidates(self, documents: Sequence[Document], request: RetrievalRequest) -> list[bool]:
        """Whether each document may be returned, and not only tell something about those before and after it."""
        limits = (request.since, request.until, request.levels or None, request.tags or None, self._scope.own_ranges)
        if all(limit is None for limit in limits):
            return [True] * len(documents)
        return [
            document.n < 0
            or search_scope.is_wanted(self._scope, request, document, is_own=document.owner_id == self._own_id)
            for document in documents
        ]

    def _is_readable(self, document: Document) -> bool:
        if document.n < 0:
            return True
        is_own = document.owner_id == self._own_id
        if document.log_id is None:
            return is_own
        if document.log_id in self._stale:
            return False
        ranges = () if is_own else self._shared.get(document.log_id, ())
        return is_own or any(each.first <= document.number <= each.last for each in ranges)


def to_document(row: StoredDocument) -> Document:
    return Document(
        n=row.n,
        kind=row.kind,
        owner_id=row.owner_id,
        log_id=row.log_id,
        number=row.number,
        level=row.level,
        role=row.role,
        speaker=row.speaker,
        created_at=row.created_at,
        words=row.words,
        dates=row.dates,
        flags=row.flags,
        tags=row.tags,
    )


def build_pool(
    reader: DocumentReader,
    candidates: Candidates,
    cosines_of: "Callable[[Sequence[Document]], Array]",
    hotness_of: "Callable[[Sequence[Document]], Array]",
    request: RetrievalRequest,
) -> Pool:
    """Read the candidates and their neighbours."""
    places, statistics = candidates.places, reader.statistics
    before, after = ([Place(log_id, number + step) for log_id, number in places if log_id] for step in (-1, 1))
    found = reader.read(dict.fromkeys([*places, *before, *after]))
    kept = [index for index, place in enumerate(places) if place in found]
    are_candidates = reader.are_candidates([found[places[index]] for index in kept], request)
    kept = [index for index, is_candidate in zip(kept, are_candidates, strict=True) if is_candidate]
    chosen = [places[index] for index in kept]
    position = dict(zip(chosen, range(len(chosen)), strict=True))
    pooled = [found[place] for place in chosen]
    for place, document in found.items():
        if place not in position:
            position[place] = len(pooled)
            pooled.append(document)
    previous, following = (
        np.array([position.get(Place(log_id, number + step), -1) if log_id else -1 for log_id, number in chosen])
        for step in (-1, 1)
    )
    return Pool(
        documents=pooled,
        candidates=len(chosen),
        previous=previous.astype(np.int64),
        following=following.astype(np.int64),
        presence=candidates.presence[kept],
        segment=candidates.segment[kept],
        session=candidates.session[kept],
        idf=candidates.idf,
        cosines=cosines_of(pooled),
        hotness=hotness_of(pooled[: len(chosen)]),
        folder=np.zeros(len(chosen)),
        now=request.now,
        average_length=max(statistics.words / max(statistics.documents, 1), MIN_AVERAGE_LENGTH),
    )
