"""Searches the index: chooses candidates among all documents that a caller may read, and ranks them."""

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall import search_scope
from holdfast.engine.recall.document_kinds import MESSAGE
from holdfast.engine.recall.document_pool import DocumentReader, build_pool
from holdfast.engine.recall.indexing import new_document
from holdfast.engine.recall.owner_tables import OwnerTable, tables_of
from holdfast.engine.recall.pending import Pending, index_now, read_pending
from holdfast.engine.recall.retrieval import RankedDocument, Retrieval, RetrievalRequest
from holdfast.engine.recall.search_scope import Scope
from holdfast.engine.recall.vector_search import QueryVector, embed_query
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, SearchedTime
from holdfast.providers.static_vectors import word_vectors
from holdfast.search import matches, ranking
from holdfast.search.documents import Document
from holdfast.search.features import PERSON_ROLES, closeness_in_time
from holdfast.search.matches import Universe, WordMatches
from holdfast.search.query import Query, parse_query, without_speakers
from holdfast.search.stems import stem
from holdfast.search.terms import Vocabulary
from holdfast.store.access import readable_documents, text_hits
from holdfast.store.access.readable_documents import Candidate, DocumentFilter
from holdfast.store.database import Tx
from holdfast.store.timestamps import from_micros
from holdfast.text.words import indexed_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

INDEXING_SECONDS = 5.0
"""How long a search indexes pending messages first, if there are too many to read them."""
MAX_SHARED = 2_000
"""Documents of other owners that are found by each word, the newest ones."""
DAY_MICROS = 86_400_000_000
_SPEAKER_WEIGHT, _TIME_WEIGHT = 1.4, 3.0
"""What a named speaker and a matching time count for the choice of candidates."""

_vocabulary = Vocabulary(word_vectors)
_vocabulary_lock = threading.Lock()


class _Found(NamedTuple):
    """What was found of one kind of documents."""

    matches: list[WordMatches]
    universe: Universe
    documents: int
    """How many documents of the kind could be found."""


def search(resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Retrieval:
    """Find and rank documents. Call it outside a transaction."""
    query = parse_query(request.query, request.now)
    vector, notes = embed_query(resources, principal.account_id, " ".join(query.words))
    read = partial(resources.db.read, principal.account_id)
    grantee = grantee_of(principal)
    pending: Pending = read(lambda tx: _read_pending(tx, resources, principal, request))
    if pending.unread_logs:
        index_now(resources, principal.account_id, pending.unread_logs, time.monotonic() + INDEXING_SECONDS)
        pending = read(lambda tx: _read_pending(tx, resources, principal, request))
        if pending.unread_logs:
            notes = [*notes, f"messages of {len(pending.unread_logs)} sessions are not indexed yet; search again later"]
    del grantee
    found: Retrieval = read(lambda tx: _Search(tx, resources, principal, request, query, vector, pending).run())
    return msgspec.structs.replace(found, notes=notes)


def _read_pending(tx: Tx, resources: EngineResources, principal: Principal, request: RetrievalRequest) -> Pending:
    del resources
    if MESSAGE not in request.kinds or (request.levels and 2 not in request.levels) or request.tags:
        return Pending([], [])
    scope = search_scope.resolve(tx, grantee_of(principal), request)
    if not scope.is_own and not scope.shared:
        return Pending([], [])
    logs = None
    if request.targets and scope.own_ranges is not None:
        logs = list({each.log_id for each in [*scope.own_ranges, *scope.shared]})
    return read_pending(tx, scope.grantee, scope.shared, DocumentFilter(log_ids=logs))
