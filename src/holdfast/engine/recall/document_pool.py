"""Reads the candidates of a search and their neighbours, as the ranker needs them."""

import weakref
from collections.abc import Callable, Sequence
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
from holdfast.store.access import accounts, text_hits
from holdfast.store.database import Database, Tx
from holdfast.store.tables import documents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CACHED = 100_000
"""Messages that a process remembers of a database. A full cache is emptied."""

MIN_AVERAGE_LENGTH = 5.0
"""The average number of words of documents that BM25 assumes at least."""

_OwnerKey = tuple[str, int | None, str, int]
"""The account, when it was created, an owner, and the version of the last removal of the owner's documents."""
_CachedMessages = dict[tuple[_OwnerKey, Place], Document]
_by_database: "weakref.WeakKeyDictionary[Database, _CachedMessages]" = weakref.WeakKeyDictionary()
_lock = forking.Lock()


def cached_messages(db: Database) -> _CachedMessages:
    """Return the messages of owners that this process has read, each by its owner: a transfer changes that one."""
    with _lock:
        return _by_database.setdefault(db, {})


class DocumentReader:
    """Reads documents of one kind that the caller may read. Pending ones come from memory."""

    def __init__(self, tx: Tx, scope: Scope, kind: str, pending: dict[Place, Document], cache: _CachedMessages) -> None:
        self._tx = tx
        self._scope = scope
        self._kind = kind
        self._pending = pending
        self._cache = cache
        self._stale = frozenset(scope.stale_logs)
        owner_id = scope.grantee.internal_id
        self.statistics = documents.statistics(tx, owner_id)
        created_at = accounts.find_creation_time(tx, tx.account)
        self._owner: _OwnerKey = (tx.account, created_at, owner_id, self.statistics.removed_version)

    def read(self, places: Sequence[Place]) -> dict[Place, Document]:
        found = {place: self._pending[place] for place in places if place in self._pending}
        missing: list[Place] = []
        for place in places:
            if place in found:
                continue
            cached = self._cache.get((self._owner, place)) if self._is_cached else None
            if cached is None:
                missing.append(place)
            else:
                found[place] = cached
        for row in text_hits.read_documents(self._tx, self._kind, missing):
            document = Document(
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
                uri=row.uri,
            )
            found[document.place] = document
            if self._is_cached and self._is_own(document):
                if len(self._cache) >= MAX_CACHED:
                    self._cache.clear()
                self._cache[self._owner, document.place] = document
        return {place: document for place, document in found.items() if self._is_readable(document)}

    @property
    def _is_cached(self) -> bool:
        return self._kind == MESSAGE

    def is_candidate(self, document: Document, request: RetrievalRequest) -> bool:
        """Whether a document may be returned, and not only tell something about those before and after it."""
        return document.n < 0 or search_scope.is_wanted(self._scope, request, document, is_own=self._is_own(document))

    def _is_own(self, document: Document) -> bool:
        return document.owner_id == self._scope.grantee.internal_id

    def _is_readable(self, document: Document) -> bool:
        if document.n < 0:
            return True
        if document.log_id is None:
            return self._is_own(document)
        if document.log_id in self._stale:
            return False
        return self._is_own(document) or search_scope.is_readable(self._scope, document.log_id, document.number)


def build_pool(
    reader: DocumentReader,
    candidates: Candidates,
    cosines_of: "Callable[[Sequence[Document]], Array]",
    hotness_of: "Callable[[Sequence[Document]], Array]",
    request: RetrievalRequest,
) -> Pool:
    """Read the candidates and their neighbours."""
    places, statistics = candidates.places, reader.statistics
    in_logs = [place for place in places if place.log_id]
    around = [Place(place.log_id, place.number + step) for place in in_logs for step in (-1, 1)]
    found = reader.read(list(dict.fromkeys([*places, *around])))
    kept = [
        index for index, place in enumerate(places) if place in found and reader.is_candidate(found[place], request)
    ]
    chosen = [places[index] for index in kept]
    position = {place: index for index, place in enumerate(chosen)}
    pooled = [found[place] for place in chosen]
    for place, document in found.items():
        if place not in position:
            position[place] = len(pooled)
            pooled.append(document)
    previous, following = (
        np.array(
            [position.get(Place(place.log_id, place.number + step), -1) if place.log_id else -1 for place in chosen]
        )
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
        now=request.now,
        average_length=max(statistics.words / max(statistics.documents, 1), MIN_AVERAGE_LENGTH),
    )
