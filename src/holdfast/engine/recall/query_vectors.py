"""The vector of a query, in the space that serves. A model that is down costs a note, never the search."""

from typing import Any, NamedTuple

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.errors import FailedPreconditionError, UnavailableError
from holdfast.store.tables import vectors


class QueryVector(NamedTuple):
    space: str | None = None
    vector: Any = None
    """Of length one. None if documents are to be ranked by their text alone."""
    note: str | None = None
    """Why there is no vector, if that is not as it should be."""


def embed_query(resources: EngineResources, account: str, query: str) -> QueryVector:
    """Embed a query with the embedder of the space that serves the account. Call it outside a transaction."""
    spaces = resources.db.read(account, vectors.find_spaces)
    if spaces is None or not query.strip():
        return QueryVector()
    try:
        embedder = resources.models.query_embedder_of(spaces.space)
        if embedder is None:
            note = (
                f"the vectors of {spaces.space} need another embedder than the configured one; run `holdfast reembed`"
            )
            return QueryVector(note=note)
        vector = embedder.embed([query]).vectors[0]
    except (UnavailableError, FailedPreconditionError) as error:
        return QueryVector(note=f"no vectors were used: {error.message}")
    return QueryVector(spaces.space, vector) if vector.any() else QueryVector()
