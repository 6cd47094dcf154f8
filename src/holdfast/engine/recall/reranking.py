"""Lets a service rank the best documents of a search again, if the settings name one."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.document_kinds import read_document_texts
from holdfast.engine.recall.retrieval import RankedDocument, Retrieval
from holdfast.errors import HoldfastError
from holdfast.model.search import Reason
from holdfast.store.database import Tx

if TYPE_CHECKING:
    from holdfast.providers.rerank import RankedText

MAX_DOCUMENTS = 50
"""How many documents the service ranks."""
MAX_TEXT_CHARS = 2_000
SHARE = 0.7
"""How much of a score the service decides."""


def rerank(resources: EngineResources, account: str, query: str, retrieval: Retrieval) -> Retrieval:
    """Return the documents in their new order. A service that is down costs a note."""
    reranker = resources.models.reranker
    if reranker is None or not retrieval.documents:
        return retrieval
    best = retrieval.documents[:MAX_DOCUMENTS]
    texts = resources.db.read(account, lambda tx: _texts(tx, best))
    try:
        ranked = reranker.rerank(query, texts)
    except HoldfastError as error:
        return msgspec.structs.replace(retrieval, notes=[*retrieval.notes, f"not reranked: {error.message}"])
    relevance = _relevance(ranked)
    documents = [
        _with_relevance(document, relevance.get(position, 0.0)) for position, document in enumerate(retrieval.documents)
    ]
    documents.sort(key=lambda document: -document.score)
    return msgspec.structs.replace(retrieval, documents=documents)


def _texts(tx: Tx, documents: Sequence[RankedDocument]) -> list[str]:
    found = read_document_texts(tx, documents)
    return [found[document.key].content[:MAX_TEXT_CHARS] if document.key in found else "" for document in documents]


def _relevance(ranked: "Sequence[RankedText]") -> dict[int, float]:
    """Return the relevance of each position from 0 to 1. Scores on another scale are taken for logits."""
    is_probability = all(0 <= text.score <= 1 for text in ranked)
    return {text.position: text.score if is_probability else _logistic(text.score) for text in ranked}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(min(value, 50.0), -50.0)))


def _with_relevance(document: RankedDocument, relevance: float) -> RankedDocument:
    """Return a document whose score, and its reasons, the service has decided in part."""
    reasons = [Reason(reason.signal, (1 - SHARE) * reason.share) for reason in document.reasons]
    if relevance > 0:
        reasons.append(Reason("rerank", SHARE * relevance))
    reasons.sort(key=lambda reason: -reason.share)
    score = (1 - SHARE) * document.score + SHARE * relevance
    return msgspec.structs.replace(document, score=score, reasons=reasons)
