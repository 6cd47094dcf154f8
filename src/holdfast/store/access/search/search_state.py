"""What a search must know before it looks for documents, read in one round trip."""

from typing import NamedTuple

from holdfast.store.access.grants import Grantee
from holdfast.store.access.search import readable_documents
from holdfast.store.database import Row, Statement, Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import OwnerStatistics
from holdfast.store.tables.embeddings import vector_index
from holdfast.store.tables.lineage import LogRange


class SearchState(NamedTuple):
    shared: list[LogRange]
    """The ranges of other owners' logs that the caller may read."""
    stale_logs: list[int]
    """The logs of the account whose documents are not valid any more."""
    unindexed: list[Row]
    """Rows for `readable_documents.pending_ranges`."""
    statistics: OwnerStatistics
    """Of the caller's own documents."""
    has_vector_index: bool
    """Whether the database has an index of the caller's own vectors."""


def read(tx: Tx, grantee: Grantee, space: str | None) -> SearchState:
    """Read what a search needs that compares vectors of a space, or none."""
    stale: Statement = "SELECT log_id FROM unindexed WHERE account_id = ? AND is_stale = 1", (tx.account,)
    statements = [stale, readable_documents.select_unindexed(tx), documents.select_statistics(tx, grantee.internal_id)]
    can_have_index = space is not None and tx.dialect.can_index_vectors
    if space is not None and can_have_index:
        statements.append(vector_index.select_indexed_version(tx, grantee.internal_id, space))
    found = tx.all_of([*statements, *readable_documents.select_shared(tx, grantee)])
    return SearchState(
        shared=readable_documents.to_shared(found[len(statements) :]),
        stale_logs=[row[0] for row in found[0]],
        unindexed=found[1],
        statistics=documents.to_statistics(found[2]),
        has_vector_index=can_have_index and bool(found[3]),
    )
