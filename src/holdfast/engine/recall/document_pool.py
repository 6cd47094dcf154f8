"""Reads the candidates of a search and their neighbours, as the ranker needs them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.search_scope import Scope
from holdfast.search.documents import Document, Place
from holdfast.search.features import Pool
from holdfast.search.matches import Candidates
from holdfast.store.access import text_hits
from holdfast.store.access.readable_documents import DocumentFilter
from holdfast.store.database import Tx
from holdfast.store.tables.documents import Document as StoredDocument
from holdfast.store.tables.lineage import LogRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CACHED = 100_000
"""Messages that a process remembers. A full cache is emptied."""

_cached_messages: dict[tuple[str, int | None], dict[Place, Document]] = {}
"""By account and the time when it was created, then by place: a message at a place never changes."""


class DocumentReader:
    """Reads documents of one kind that the caller may read. Pending ones come from memory."""

    def __init__(
        self, tx: Tx, scope: Scope, kind: str, account_created_at: int | None, pending: dict[Place, Document]
    ) -> None:
        self._tx = tx
        self._own_id = scope.grantee.internal_id
        self._kind = kind
        self._pending = pending
        self._shared: dict[int, list[LogRange]] = {}
        for each in scope.shared:
            self._shared.setdefault(each.log_id, []).append(each)
        self._cache: dict[Place, Document] = {}
        if kind == MESSAGE:
            self._cache = _cached_messages.setdefault((tx.account, account_created_at), {})

    def read(self, places: Iterable[Place]) -> dict[Place, Document]:
        found: dict[Place, Document] = {}
        missing: list[Place] = []
        pending, cache = self._pending, self._cache
        for place in places:
            document = pending.get(place) or cache.get(place)
            if document is None:
                missing.append(place)
            else:
                found[place] = document
        if missing:
            found.update(self._read_missing(missing))
        own_id = self._own_id
        return {
            place: document
            for place, document in found.items()
            if document.owner_id == own_id or document.n < 0 or self._is_shared(document)
        }

    def _read_missing(self, places: Sequence[Place]) -> dict[Place, Document]:
        read = [_document(row) for row in text_hits.read_documents(self._tx, self._kind, places)]
        found = {document.place: document for document in read}
        if self._kind == MESSAGE:
            if sum(map(len, _cached_messages.values())) > MAX_CACHED:
                _cached_messages.clear()
            self._cache.update(found)
        return found

    def _is_shared(self, document: Document) -> bool:
        ranges = self._shared.get(document.log_id or 0, ())
        return any(each.first <= document.number <= each.last for each in ranges)


def _document(row: StoredDocument) -> Document:
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
        uri=row.uri,
    )


def build_pool(
    reader: DocumentReader,
    candidates: Candidates,
    cosines_of: "Callable[[Sequence[Document]], Array]",
    wanted: DocumentFilter,
    now: int,
    average_length: float,
) -> Pool:
    """Read the candidates and their neighbours. Only those that are wanted stay candidates."""
    places = candidates.places
    before, after = ([Place(log_id, number + step) for log_id, number in places if log_id] for step in (-1, 1))
    found = reader.read(dict.fromkeys([*places, *before, *after]))
    kept = [index for index, place in enumerate(places) if place in found and _is_wanted(found[place], wanted)]
    chosen = [places[index] for index in kept]
    position = dict(zip(chosen, range(len(chosen)), strict=True))
    documents = [found[place] for place in chosen]
    for place, document in found.items():
        if place not in position:
            position[place] = len(documents)
            documents.append(document)
    previous, following = (
        np.array([position.get(Place(log_id, number + step), -1) if log_id else -1 for log_id, number in chosen])
        for step in (-1, 1)
    )
    return Pool(
        documents=documents,
        candidates=len(chosen),
        previous=previous.astype(np.int64),
        following=following.astype(np.int64),
        segment=candidates.segment[kept],
        session=candidates.session[kept],
        idf=candidates.idf,
        cosines=cosines_of(documents),
        hotness=np.zeros(len(chosen)),
        now=now,
        average_length=average_length,
    )


def _is_wanted(document: Document, wanted: DocumentFilter) -> bool:
    """Whether a document is wanted. Next to a document of another owner is one that the database has not filtered."""
    if wanted.since is not None and document.created_at < wanted.since:
        return False
    if wanted.until is not None and document.created_at >= wanted.until:
        return False
    if wanted.levels and document.level not in wanted.levels:
        return False
    return not wanted.tags or set(wanted.tags) <= set(msgspec.json.decode(document.tags))
