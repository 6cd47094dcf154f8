"""The kind of the tasks that add resources."""

from holdfast import lazy
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.task_kind import TaskKind, WriteResults
from holdfast.model.tree.resources import ADD_STAGES, AddPayload
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.tasks import StoredTask
from holdfast.store.tables.tree import blobs, contents, nodes, roots, unprocessed


def _perform(claimed: ClaimedTask) -> WriteResults:
    """Add the resource. The parsers are imported with the first task: many clients need none."""
    write_results: WriteResults = lazy.load("holdfast.engine.resources.add_task").add_resource(claimed)
    return write_results


def _lock(tx: Tx, task: StoredTask) -> bool:
    roots.lock(tx, [task.decode_payload(AddPayload).root])
    return True


def staging_root(task: StoredTask, payload: AddPayload) -> str:
    """Return the root in which a task prepares its files."""
    return roots.staging(task.task_id, roots.owner_of(payload.root))


def _discard(tx: Tx, _context: object, task: StoredTask, _cause: object) -> None:
    """Delete what a failed or cancelled task has prepared. Its bytes are deleted as unused."""
    tx.allow_long_statements()
    discard_staged(tx, staging_root(task, task.decode_payload(AddPayload)))
    blobs.delete_chunks_named(tx, f"{task.task_id}_")


def discard_staged(tx: Tx, root: str) -> None:
    """Delete all nodes of a staging root, with their contents and documents."""
    staged = list(nodes.walk(tx, root, ""))
    for node in staged:
        if node.content_id is not None:
            documents.delete_of_content(tx, node.content_id)
            contents.delete(tx, node.content_id)
    node_ids = [node.node_id for node in staged]
    nodes.delete(tx, node_ids)
    for first in range(0, len(node_ids), nodes.MAX_IDS):
        unprocessed.delete(tx, node_ids[first : first + nodes.MAX_IDS])


ADD_KIND = TaskKind(perform=_perform, failed=_discard, cancelled=_discard, lock=_lock, queued_stage=ADD_STAGES[0])
