"""What background tasks have to do and did, by queue. A queue has the tasks of one purpose."""

from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.system import QueueCounts
from holdfast.model.tasks import EMBEDDING, INDEX, REEMBEDDING, RESUMMARY, VECTOR_INDEX
from holdfast.store.access import task_lists
from holdfast.store.database import Tx
from holdfast.store.tables import unindexed
from holdfast.store.tables.embeddings import unembedded

QUEUES = ("Embedding", "Semantic", "AddResource", "Reindex", "ContentWrite", "SessionCommit")
"""The queues that clients know, whether they have tasks or not."""
_QUEUES_OF_KINDS = {
    INDEX: "Embedding",
    EMBEDDING: "Embedding",
    VECTOR_INDEX: "Embedding",
    REEMBEDDING: "Reindex",
    RESUMMARY: "Semantic",
    "process": "Semantic",
}
MAX_ERRORS = 10

Scope = tuple[str | None, str | None]
"""The account and the internal id of the user whose data a caller sees. None means all."""


def own_scope(principal: Principal) -> Scope:
    """What belongs to the caller; for the operator, everything."""
    return (None, None) if principal == OPERATOR else (principal.account_id, principal.internal_id)


def visible_scope(principal: Principal) -> Scope:
    """What the caller may see the counts of: an administrator those of the account."""
    account_id, user_id = own_scope(principal)
    return account_id, None if principal.role in {"admin", "root"} else user_id


def queue_of(kind: str) -> str:
    """Return the queue of a kind of task. A kind that no client knows is its own queue.

    >>> queue_of("session_commit"), queue_of("embed"), queue_of("backfill")
    ('SessionCommit', 'Embedding', 'backfill')
    """
    camel_case = "".join(word.capitalize() for word in kind.split("_"))
    return _QUEUES_OF_KINDS.get(kind) or (camel_case if camel_case in QUEUES else kind)


def count_queues(tx: Tx, scope: Scope, *, with_messages: bool) -> dict[str, QueueCounts]:
    """Count the tasks of each queue. Without `with_messages`, errors are only named by their codes."""
    counted = {name: {"pending": 0} for name in QUEUES}

    def add(queue: str, **counts: int) -> None:
        found = counted.setdefault(queue, {})
        for name, count in counts.items():
            found[name] = found.get(name, 0) + count

    for kind, by_status in task_lists.counts_by_kind(tx, *scope).items():
        add(
            queue_of(kind),
            pending=by_status.get("pending", 0),
            in_progress=by_status.get("running", 0),
            failed=by_status.get("failed", 0),
            requeue_count=by_status["retried"],
        )
    for kind, (done, retries) in task_lists.done_by_kind(tx, *scope).items():
        add(queue_of(kind), processed=done, requeue_count=retries)
    add("Embedding", pending=unindexed.count(tx, *scope) + unembedded.count(tx, *scope))
    errors: dict[str, list[str]] = {}
    for kind, code, message in task_lists.latest_errors(tx, *scope, MAX_ERRORS):
        errors.setdefault(queue_of(kind), []).append(message if with_messages and message else code)
    return {
        name: QueueCounts(**counts, error_count=counts.get("failed", 0), errors=errors.get(name, []))
        for name, counts in counted.items()
    }
