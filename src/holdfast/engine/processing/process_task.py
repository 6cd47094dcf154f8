"""Processes the nodes of an account that are due: files first, then folders, the deepest first."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.processing.files import FileToProcess, process_file, read_file, write_files
from holdfast.engine.processing.folders import read_folder, summarise, write_folder
from holdfast.engine.processing.removals import forget_removed
from holdfast.engine.tasks.claimed_task import MIN_PAUSE_SECONDS, ClaimedTask, LeaseLostError
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.model.tasks import PROCESSING
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import nodes, roots, unprocessed
from holdfast.store.tables.tree.nodes import Node

BATCH_NODES = 32
BATCH_BYTES = 4_000_000
"""How much of files is read at once, unless one file is larger."""
MAX_SECONDS = 10.0
"""How long one task works. What is due then is left to the next one, so that other tasks get their turn."""


class Processing:
    """One run of the task, with its progress."""

    def __init__(self, claimed: ClaimedTask) -> None:
        self._claimed = claimed
        self.done = 0

    def run(self) -> None:
        deadline = time.monotonic() + MAX_SECONDS
        while time.monotonic() < deadline:
            due = self._claimed.read(lambda tx: nodes.read(tx, unprocessed.list_due(tx, BATCH_NODES)))
            if not due and not self._drop_missing():
                return
            begun = time.monotonic()
            self._process(due)
            time.sleep(max(MIN_PAUSE_SECONDS, (time.monotonic() - begun) / 4))

    def _process(self, due: Sequence[Node]) -> None:
        removed = [node for node in due if node.removed_at is not None]
        files: Sequence[Node] = [node for node in due if node.removed_at is None and not node.is_folder]
        folders = [node for node in due if node.removed_at is None and node.is_folder]
        for node in removed:
            while not self._write(partial(_forget, node=node), 1):
                self._claimed.observe("removed files are forgotten")
                time.sleep(MIN_PAUSE_SECONDS)
        while files:
            files = self._process_files(files)
        if any(not node.is_folder for node in due):
            return  # further files may be due, whose abstracts the folders need
        for node in sorted(folders, key=lambda node: -node.path.count("/")):
            folder = self._claimed.read(partial(read_folder, node=node))
            self._claimed.observe("folder is read")
            summary = summarise(folder)
            self._write(partial(write_folder, folder=folder, summary=summary), 1)

    def _process_files(self, files: Sequence[Node]) -> Sequence[Node]:
        """Process the first files that fit into memory. Return the others."""
        count, size = 0, 0
        while count < len(files) and (count == 0 or size + files[count].size <= BATCH_BYTES):
            size += files[count].size
            count += 1
        batch = files[:count]
        read: list[FileToProcess | None] = self._claimed.read(lambda tx: [read_file(tx, node) for node in batch])
        self._claimed.observe("files are read")
        processed = [process_file(self._claimed.compute, file) for file in read if file is not None]
        finished = [node for node, file in zip(batch, read, strict=True) if file is None]

        def write(tx: Tx, _context: CallContext) -> None:
            roots.hold(tx, [node.root for node in batch])  # before their nodes, as all changes of the tree do
            write_files(tx, processed)
            unprocessed.delete(tx, _unchanged(tx, finished))

        self._write(write, count)
        self._claimed.observe("files are written")
        return files[count:]

    def _drop_missing(self) -> bool:
        """Forget nodes that do not exist any more. Return whether there were any."""

        def drop(tx: Tx, _context: CallContext) -> bool:
            due = unprocessed.list_due(tx, BATCH_NODES)
            found = {node.node_id for node in nodes.read(tx, due)}
            missing = [node_id for node_id in due if node_id not in found]
            unprocessed.delete(tx, missing)
            return bool(missing)

        return bool(self._claimed.write(drop))

    def _write(self, transaction: Callable[[Tx, CallContext], Any], count: int) -> Any:
        done = self.done + count

        def write(tx: Tx, context: CallContext) -> Any:
            if not tasks.is_held(tx, self._claimed.claim):
                raise LeaseLostError
            result = transaction(tx, context)
            worked = self._claimed.working_time()
            tasks.advance(
                tx, self._claimed.claim, stage=PROCESSING, done=done, total=done, worked=worked, now=context.now
            )
            return result

        result = self._claimed.write(write)
        self.done = done
        return result


def _unchanged(tx: Tx, finished: Sequence[Node]) -> list[int]:
    """Return the nodes that are still as they were read. Others have something to process now."""
    current = {node.node_id: node for node in nodes.read(tx, [node.node_id for node in finished])}
    return [
        node.node_id
        for node in finished
        if (found := current.get(node.node_id)) is None or _version(found) == _version(node)
    ]


def _version(node: Node) -> tuple[int | None, str, int | None]:
    return node.content_id, node.root, node.removed_at


def _forget(tx: Tx, _context: CallContext, node: Node) -> bool:
    return forget_removed(tx, node)


def process_due_nodes(claimed: ClaimedTask) -> WriteResults:
    """Process the nodes that are due."""
    processing = Processing(claimed)
    processing.run()
    return lambda _tx, _context: {"nodes": processing.done}
