"""How much documents are raised by the uses that the caller has recorded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engine.gate.session_access import grantee_of
from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS
from holdfast.model.identity import Principal
from holdfast.search import hotness as formula
from holdfast.search.documents import Document
from holdfast.store.access.search import readable_documents
from holdfast.store.database import Tx
from holdfast.store.tables import usages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def hotness(tx: Tx, principal: Principal, uris: Sequence[str], now: int) -> dict[str, float]:
    """Return how hot documents are for the caller, from 0 to 1, by address. Those that were not used are missing.

    The addresses have the form of `search.requests.addresses.canonical_address`. `now` is in microseconds.
    """
    used = usages.find_counts(tx, principal.internal_id, uris)
    return {uri: formula.hotness(count, used_at, now) for uri, (count, used_at) in used.items()}


def hotness_of_documents(tx: Tx, principal: Principal, now: int, documents: Sequence[Document]) -> "Array":
    """Return how hot each document is for the caller."""
    values = np.zeros(len(documents))
    if not usages.has_counts(tx, principal.internal_id):
        return values
    in_logs = {document.log_id: document.number for document in documents if document.log_id is not None}
    found = readable_documents.sessions_of_documents(tx, grantee_of(principal), list(in_logs.items()))
    sessions = {log_id: session.uri for log_id, session in zip(in_logs, found, strict=True) if session is not None}
    uris = [_address(document, sessions) for document in documents]
    hot = hotness(tx, principal, [uri for uri in uris if uri], now)
    return np.array([hot.get(uri, 0.0) for uri in uris])


def _address(document: Document, sessions: dict[int, str]) -> str:
    """Return the address of a document, or an empty text if it has none."""
    if document.log_id is None:
        return ""
    session = sessions.get(document.log_id)
    return DOCUMENT_KINDS[document.kind].uri(session, document.number) if session else ""
