"""Operations on the vectors of documents."""

from holdfast.model.tasks import ReembeddingStarted
from holdfast.ops.table import Operation, operation


@operation("POST /system/reembed", role="admin", audit="task={result.task_id} space={result.space}")
class ReembedDocuments(Operation[ReembeddingStarted], frozen=True, kw_only=True):
    """Start a task that embeds all documents of the account with the configured embedder.

    Searches use the old vectors until all documents have new ones. If such a task is running, it is returned.
    """
