"""The task that adds a resource: it stages and processes new and changed files, and places them at once.

All progress is in the staged nodes: a restarted task skips those that are stored, and those that are processed.
"""

import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.documents import FileSummary
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.processing.files import FileToProcess, ProcessedFile, process_file, read_file, write_files
from holdfast.engine.processing.folders import FolderToSummarise, read_folder, summarise, write_folder
from holdfast.engine.resources import naming
from holdfast.engine.resources.chunk_writing import require_held
from holdfast.engine.resources.placement import Placement
from holdfast.engine.resources.sources import SourceFiles, open_source
from holdfast.engine.resources.staging import FETCHING, Staging
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.task_kind import WriteResults
from holdfast.errors import DocumentError, ProcessingError
from holdfast.model.tree.resources import AddPayload, FileProblem, QueueProgress, QueueStatus, ResourceOutcome
from holdfast.model.uris import decode_path
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import contents, nodes
from holdfast.store.tables.tree.nodes import Node

BATCH_FILES = 32
BATCH_BYTES = 4 << 20
PARSING, FINALIZING, PROCESSING_QUEUE = "parsing", "finalizing", "processing_queue"
MAX_NAMED = 1_000
"""How many files a result names."""


class StoredMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource remembers of its last addition."""

    source: str = ""
    reason: str = ""
    instruction: str = ""
    description: str = ""
    source_hash: str = ""
    """The hash of the source and of how its files were chosen. Empty if the addition was not complete."""
    tree_hash: str = ""
    """The hash of the paths and contents of the files that the resource had then."""


_decode_meta = msgspec.json.Decoder(StoredMeta).decode


def add_resource(claimed: ClaimedTask) -> WriteResults:
    """Add the resource of a task."""
    payload = claimed.task.decode_payload(AddPayload)
    addition = Addition(claimed, payload)
    addition.advance(FETCHING, 0, 1)
    try:
        return _add(claimed, payload, addition)
    except DocumentError as error:
        raise ProcessingError(error.details["problem"], name=payload.source.name) from None


def _add(claimed: ClaimedTask, payload: AddPayload, addition: "Addition") -> WriteResults:
    with open_source(claimed, payload) as source:
        if not source.files and not source.problems:
            raise ProcessingError(f"{payload.source.name} has no files to add; check include and exclude")
        if addition.is_unchanged(source):
            return addition.unchanged(len(source.files))
        return addition.run(source)


class Addition:
    """The work of one attempt."""

    def __init__(self, claimed: ClaimedTask, payload: AddPayload) -> None:
        self._claimed = claimed
        self._payload = payload
        self._kept = 0
        """How many staged files can be placed."""
        self._target: Node | None = claimed.read(lambda tx: nodes.find(tx, payload.root, payload.path))

    def is_unchanged(self, source: SourceFiles) -> bool:
        """Whether the resource was made of the same source, and has the same files as then."""
        if self._target is None or not source.digest:
            return False
        meta = _decode_meta(self._target.meta)
        if not meta.source_hash or meta.source_hash != self._source_hash(source):
            return False
        wishes = self._payload.options
        if (meta.reason, meta.instruction) != (wishes.reason, wishes.instruction) or wishes.tags:
            return False
        return meta.tree_hash == self._claimed.read(self._tree_hash)

    def unchanged(self, files: int) -> WriteResults:
        def write(tx: Tx, _context: CallContext) -> ResourceOutcome:
            count = 1 + nodes.count_subtree(tx, self._payload.root, self._payload.path)
            return self._outcome(files=files, unchanged=files, context_count=count)

        return write

    def run(self, source: SourceFiles) -> WriteResults:
        staging = Staging(self._claimed, self._payload, source, self._target)
        staging.run()
        total = staging.count
        self.advance(PARSING, 0, total)
        errors = [*staging.problems, *self._process_files(staging.root, total)]
        has_files = self._kept + staging.unchanged > 0
        if errors and (self._payload.options.strict or not has_files):
            raise _failure(errors)
        self.advance(FINALIZING, total, total)
        self._summarise_folders(staging.root)
        self.advance(PROCESSING_QUEUE, total, total)
        meta = self._new_meta(source, is_complete=not errors)
        return partial(self._finish, staging=staging, errors=errors, files=len(source.files), meta=meta)

    def advance(self, stage: str, done: int, total: int) -> None:
        def write(tx: Tx, context: CallContext) -> None:
            self._advance(tx, context, stage, done, total)

        self._claimed.observe(f"{stage} begins")
        self._claimed.write(write)

    def _advance(self, tx: Tx, context: CallContext, stage: str, done: int, total: int) -> None:
        require_held(tx, self._claimed)
        tasks.advance(tx, self._claimed.claim, stage=stage, done=done, total=max(1, total), worked=0, now=context.now)

    def _process_files(self, root: str, total: int) -> list[FileProblem]:
        """Process the staged files. Those that cannot be read are deleted from the staging root, and returned."""
        staged = self._claimed.read(lambda tx: [node for node in nodes.walk(tx, root, "") if not node.is_folder])
        pending = [node for node in staged if node.state == "pending"]
        while pending:
            batch = _first_batch(pending)
            pending = pending[len(batch) :]
            read: list[FileToProcess | None] = self._claimed.read(lambda tx, batch=batch: _read_files(tx, batch))  # type: ignore[misc]
            self._claimed.observe("files are read")
            processed = [process_file(self._claimed.compute, file) for file in read if file is not None]

            done = total - len(pending)
            self._claimed.write(partial(self._write_files, processed=processed, done=done, total=total))
            self._claimed.observe("files are written")
        return self._claimed.write(partial(self._drop_failed, root=root))

    def _write_files(
        self, tx: Tx, context: CallContext, processed: Sequence[ProcessedFile], done: int, total: int
    ) -> None:
        self._advance(tx, context, PARSING, done, total)
        write_files(tx, processed)

    def _drop_failed(self, tx: Tx, _context: CallContext, root: str) -> list[FileProblem]:
        """Delete staged files that cannot be read. Recordings and videos are kept, although they have no text."""
        require_held(tx, self._claimed)
        staged = list(nodes.walk(tx, root, ""))
        failed = [node for node in staged if node.state == "failed" and not _is_recording(node)]
        problems = []
        for node in failed:
            content = None if node.content_id is None else contents.find(tx, node.content_id)
            message = (content.error if content is not None else None) or "cannot be read"
            problems.append(FileProblem(file=_path_in_resource(node), message=message))
            if content is not None:
                contents.delete(tx, content.content_id)
        dropped = {node.node_id for node in failed}
        kept = {node.path for node in staged if not node.is_folder and node.node_id not in dropped}
        used = {folder for path in kept for folder in _folders_above(path)}
        dropped |= {node.node_id for node in staged if node.is_folder and node.path not in used}
        nodes.delete(tx, sorted(dropped))
        self._kept = len(kept)
        return problems

    def _summarise_folders(self, root: str) -> None:
        """Summarise the staged folders, the deepest first."""
        folders = self._claimed.read(lambda tx: [node for node in nodes.walk(tx, root, "") if node.is_folder])
        for node in sorted(folders, key=lambda node: -node.path.count("/")):
            if node.content_id is not None:
                continue
            folder = self._claimed.read(partial(read_folder, node=node))
            summary = summarise(folder)
            self._claimed.write(partial(self._write_summary, folder=folder, summary=summary))
            self._claimed.observe("folder is written")

    def _write_summary(
        self, tx: Tx, context: CallContext, folder: FolderToSummarise, summary: FileSummary | None
    ) -> None:
        require_held(tx, self._claimed)
        write_folder(tx, context, folder, summary)

    def _finish(
        self,
        tx: Tx,
        context: CallContext,
        staging: Staging,
        errors: Sequence[FileProblem],
        files: int,
        meta: StoredMeta,
    ) -> ResourceOutcome:
        tx.allow_long_statements()
        payload = self._payload
        placement = Placement(tx, context, payload, staging.root)
        placement.place()
        existing = [path for path, is_folder in self._all_paths(tx) if not is_folder]
        missing = [] if staging.is_file else [path for path in existing if path not in staging.found]
        if payload.options.sync:
            placement.remove(missing)
        elif missing:
            meta = msgspec.structs.replace(meta, source_hash="")  # the next addition may have to remove them
        conflicts = [FileProblem(file=path, message="was changed while it was added") for path in placement.conflicts]
        if not conflicts:
            meta = msgspec.structs.replace(meta, tree_hash=self._tree_hash(tx))
        count = placement.finish(msgspec.json.encode(meta).decode())
        return self._outcome(
            files=files,
            added=placement.added,
            changed=placement.changed,
            unchanged=staging.unchanged,
            removed=placement.removed,
            missing=[path[len(payload.path) + 1 :] for path in missing[:MAX_NAMED]],
            errors=[*errors, *conflicts],
            context_count=count,
        )

    def _all_paths(self, tx: Tx) -> list[tuple[str, bool]]:
        return [(node.path, bool(node.is_folder)) for node in nodes.walk(tx, self._payload.root, self._payload.path)]

    def _tree_hash(self, tx: Tx) -> str:
        hashed = hashlib.sha256()
        for node in nodes.walk(tx, self._payload.root, self._payload.path):
            hashed.update(f"{node.path}\0{node.blob}\n".encode())
        top = nodes.find(tx, self._payload.root, self._payload.path)
        hashed.update(f"{top.blob if top else None}".encode())
        return hashed.hexdigest()

    def _source_hash(self, source: SourceFiles) -> str:
        options = self._payload.options
        chosen = msgspec.json.encode([source.digest, options.include, options.exclude, options.ignore_dirs])
        return hashlib.sha256(chosen).hexdigest()

    def _new_meta(self, source: SourceFiles, *, is_complete: bool) -> StoredMeta:
        options = self._payload.options
        return StoredMeta(
            source=self._payload.source.location,
            reason=options.reason,
            instruction=options.instruction,
            source_hash=self._source_hash(source) if source.digest and is_complete else "",
        )

    def _outcome(
        self,
        *,
        files: int,
        context_count: int,
        added: int = 0,
        changed: int = 0,
        unchanged: int = 0,
        removed: int = 0,
        missing: Sequence[str] = (),
        errors: Sequence[FileProblem] = (),
    ) -> ResourceOutcome:
        named = list(errors[:MAX_NAMED])
        processed = added + changed
        return ResourceOutcome(
            root_uri=self._payload.uri,
            files=files,
            added=added,
            changed=changed,
            unchanged=unchanged,
            removed=removed,
            missing=list(missing),
            errors=named,
            queue_status=QueueStatus(
                semantic=QueueProgress(processed=processed, error_count=len(errors), errors=named),
                embedding=QueueProgress(processed=processed),
            ),
            context_count=context_count,
        )


def _read_files(tx: Tx, batch: Sequence[Node]) -> list[FileToProcess | None]:
    return [read_file(tx, node) for node in batch]


def _first_batch(pending: Sequence[Node]) -> Sequence[Node]:
    """Return the first files that fit into memory together."""
    count, size = 0, 0
    while count < min(len(pending), BATCH_FILES) and (count == 0 or size + pending[count].size <= BATCH_BYTES):
        size += pending[count].size
        count += 1
    return pending[:count]


def _is_recording(node: Node) -> bool:
    return naming.media_folder(node.name) in {"audio", "video"}


def _folders_above(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:depth]) for depth in range(1, len(names))]


def _path_in_resource(node: Node) -> str:
    return "/".join(decode_path(node.path)[1:]) or node.name


def _failure(errors: Sequence[FileProblem]) -> Exception:
    more = f" (and {len(errors) - 1} more files cannot be added)" if len(errors) > 1 else ""
    return ProcessingError(f"{errors[0].file} cannot be added: {errors[0].message}{more}", name=errors[0].file)
