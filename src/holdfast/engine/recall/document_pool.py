"""Reads the candidates of a search and their neighbours, as the ranker needs them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engine.recall import search_scope
from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.search_scope import Scope
from holdfast.search.documents import Document, Place
from holdfast.search.features import Pool
from holdfast.search.matches import Candidates
from holdfast.store.access import accounts, text_hits
from holdfast.store.database import Tx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_CACHED = 100_000
"""Messages that a process remembers. A full cache is emptied."""

_cached_messages: dict[tuple[str, int | None, Place], Document] = {}
"""By account, the time when it was created, and place: a message at a place never changes."""


class DocumentReader:
    """Reads documents of one kind that the caller may read. Pending ones come from memory."""

    def __init__(self, tx: Tx, scope: Scope, kind: str, pending: dict[Place, Document]) -> None:
        self._tx = tx
        self._scope = scope
        self._kind = kind
        self._pending = pending
        self._created_at = accounts.find_creation_time(tx, tx.account)

    def read(self, places: Sequence[Place]) -> dict[Place, Document]:
        found = {place: self._pending[place] for place in places if place in self._pending}
        missing: list[Place] = []
        for place in places:
            if place in found:
                continue
            cached = _cached_messages.get((self._tx.account, self._created_at, place)) if self._is_cached else None
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
            if self._is_cached:
                if len(_cached_messages) >= MAX_CACHED:
                    _cached_messages.clear()
                _cached_messages[self._tx.account, self._created_at, document.place] = document
        return {place: document for place, document in found.items() if self._is_readable(document)}

    @property
    def _is_cached(self) -> bool:
        return self._kind == MESSAGE

    def _is_readable(self, document: Document) -> bool:
        return (
            document.n < 0
            or document.owner_id == self._scope.grantee.internal_id
            or (document.log_id is not None and search_scope.is_readable(self._scope, document.log_id, document.number))
        )


def build_pool(
    reader: DocumentReader,
    candidates: Candidates,
    cosines_of: "Callable[[Sequence[Document]], Array]",
    now: int,
    average_length: float,
) -> Pool:
    """Read the candidates and their neighbours."""
    places = candidates.places
    in_logs = [place for place in places if place.log_id]
    around = [Place(place.log_id, place.number + step) for place in in_logs for step in (-1, 1)]
    found = reader.read(list(dict.fromkeys([*places, *around])))
    kept = [index for index, place in enumerate(places) if place in found]
    chosen = [places[index] for index in kept]
    position = {place: index for index, place in enumerate(chosen)}
    documents = [found[place] for place in chosen]
    for place, document in found.items():
        if place not in position:
            position[place] = len(documents)
            documents.append(document)
    previous, following = (
        np.array(
            [position.get(Place(place.log_id, place.number + step), -1) if place.log_id else -1 for place in chosen]
        )
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
