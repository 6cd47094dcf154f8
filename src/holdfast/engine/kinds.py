"""The table of the kinds of tasks."""

from holdfast.engine.commits.commit_kind import COMMIT_KIND
from holdfast.engine.commits.resummaries import RESUMMARY_KIND
from holdfast.engine.processing.process_kind import PROCESSING_KIND, PROCESSING_QUEUE
from holdfast.engine.processing.reindexing import REINDEXING_KIND
from holdfast.engine.recall.embeddings.embedding import EMBEDDING_KIND, EMBEDDING_QUEUE
from holdfast.engine.recall.embeddings.reembedding import REEMBEDDING_KIND
from holdfast.engine.recall.embeddings.vector_index_kind import VECTOR_INDEX_KIND
from holdfast.engine.recall.index_kind import INDEX_KIND, INDEX_QUEUE
from holdfast.engine.resources.add_kind import ADD_KIND
from holdfast.engine.resources.watching import WATCH_QUEUE
from holdfast.engine.sessions.deletion import DELETION_KIND
from holdfast.engine.tasks.backfill import BACKFILL_KIND
from holdfast.engine.tasks.task_kind import TASK_KINDS
from holdfast.model.tasks import (
    ADD_RESOURCE,
    BACKFILL,
    COMMIT,
    DELETION,
    EMBEDDING,
    INDEX,
    PROCESSING,
    REEMBEDDING,
    REINDEXING,
    RESUMMARY,
    VECTOR_INDEX,
)

TASK_KINDS.update(
    {
        COMMIT: COMMIT_KIND,
        RESUMMARY: RESUMMARY_KIND,
        DELETION: DELETION_KIND,
        BACKFILL: BACKFILL_KIND,
        EMBEDDING: EMBEDDING_KIND,
        REEMBEDDING: REEMBEDDING_KIND,
        VECTOR_INDEX: VECTOR_INDEX_KIND,
        INDEX: INDEX_KIND,
        PROCESSING: PROCESSING_KIND,
        REINDEXING: REINDEXING_KIND,
        ADD_RESOURCE: ADD_KIND,
    }
)

QUEUES = (INDEX_QUEUE, PROCESSING_QUEUE, EMBEDDING_QUEUE, WATCH_QUEUE)
"""The queues of accounts that workers start tasks for."""

__all__ = ["QUEUES", "TASK_KINDS"]
