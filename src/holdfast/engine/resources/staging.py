"""New and changed files of a source are stored in a root that nobody sees, until the last transaction places them."""

import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.resources.add_kind import staging_root
from holdfast.engine.resources.chunk_writing import require_held, store_bytes
from holdfast.engine.resources.sources import SourceFile, SourceFiles
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tree import changes
from holdfast.engine.tree.places import MAX_NAME_CHARS
from holdfast.errors import DocumentError
from holdfast.model.tree.files import VIEWS
from holdfast.model.tree.resources import AddPayload, FileProblem
from holdfast.model.uris import MAX_PATH_BYTES, decode_path, encode_path
from holdfast.store.database import Tx
from holdfast.store.tables import tasks
from holdfast.store.tables.tree import blobs, contents, nodes
from holdfast.store.tables.tree.nodes import NewNode, Node

BATCH_FILES = 100
BATCH_BYTES = 4 << 20
FETCHING = "fetching"


class StagedFile(msgspec.Struct, frozen=True):
    """A file that is about to be staged."""

    path: str
    """Its path in the staging root: the name of the resource, and the path in it."""
    digest: str
    size: int
    data: bytes | None
    """None if the bytes are stored already."""


class Staging:
    """The work of one task: which files it has staged, left alone, or left out."""

    def __init__(self, claimed: ClaimedTask, payload: AddPayload, source: SourceFiles, target: Node | None) -> None:
        self._claimed = claimed
        self._payload = payload
        self._source = source
        self.root = staging_root(claimed.task, payload)
        self.problems: list[FileProblem] = list(source.problems)
        self.unchanged = 0
        self.found: set[str] = set()
        """The paths of all files of the source, in the root of the resource."""
        self.parent = nodes.parent_of(payload.path)
        name = changes.name_of(payload.path)
        has_suffix = "." in name and source.is_single_file and _suffix(name) == _suffix(source.files[0].name)
        self.is_file = source.is_single_file and (has_suffix if target is None else not target.is_folder)
        """Whether the resource is the file itself, and not a folder with it."""
        self.top = encode_path([name])
        self._existing: dict[str, str | None] = {}
        self._staged: dict[str, bool] = {}

    def run(self) -> None:
        self._existing = self._claimed.read(self._read_existing)
        self._staged = self._claimed.read(self._read_staged)
        batch: list[StagedFile] = []
        for file in self._source.files:
            staged = self._examine(file)
            if staged is not None:
                batch.append(staged)
            if len(batch) >= BATCH_FILES or sum(each.size for each in batch if each.data) >= BATCH_BYTES:
                self._write(batch)
                batch = []
        self._write(batch)

    @property
    def count(self) -> int:
        """How many files are to be processed."""
        return sum(not is_folder for is_folder in self._staged.values())

    def target_path(self, staged_path: str) -> str:
        return f"{self.parent}/{staged_path}" if self.parent else staged_path

    def _read_existing(self, tx: Tx) -> dict[str, str | None]:
        """Return the hash of every file at or below the resource, and None for folders."""
        top = nodes.find(tx, self._payload.root, self._payload.path)
        if top is None:
            return {}
        below = nodes.walk(tx, self._payload.root, self._payload.path) if top.is_folder else ()
        return {node.path: None if node.is_folder else node.blob for node in (top, *below)}

    def _read_staged(self, tx: Tx) -> dict[str, bool]:
        """Return the nodes that an earlier attempt has staged, and whether each is a folder."""
        return {node.path: bool(node.is_folder) for node in nodes.walk(tx, self.root, "")}

    def _examine(self, file: SourceFile) -> StagedFile | None:
        """Return a file that is new or changed. Others are counted."""
        try:
            path = self._path_of(file)
            target = self.target_path(path)
            self._check_target(target)
            self.found.add(target)
            return None if path in self._staged else self._read(file, path, target)
        except DocumentError as error:
            self._add_problem(file, error.details["problem"])
        except OSError as error:
            self._add_problem(file, f"cannot be read: {error.strerror}")
        return None

    def _add_problem(self, file: SourceFile, message: str) -> None:
        self.problems.append(FileProblem(file=file.path or file.name, message=message))

    def _path_of(self, file: SourceFile) -> str:
        if self.is_file:
            return self.top
        names = (file.path or file.name).split("/")
        for name in names:
            problem = _name_problem(name)
            if problem:
                raise DocumentError(file.path or file.name, problem)
        return f"{self.top}/{encode_path(names)}"

    def _check_target(self, target: str) -> None:
        if len(target.encode()) > MAX_PATH_BYTES:
            raise DocumentError(target, f"has a path of more than {MAX_PATH_BYTES} bytes; use shorter names")
        if target in self._existing and self._existing[target] is None:
            raise DocumentError(target, "has the path of a folder of the resource; rename it")
        parent = nodes.parent_of(target)
        while parent != self.parent and parent:
            if self._existing.get(parent) is not None:
                raise DocumentError(target, f"is in the folder {parent}, which is a file of the resource; rename it")
            parent = nodes.parent_of(parent)

    def _read(self, file: SourceFile, path: str, target: str) -> StagedFile | None:
        old = self._existing.get(target)
        if file.size <= blobs.CHUNK_BYTES:
            data = b"".join(file.read())
            digest = blobs.hash_of(data)
            if digest == old:
                self.unchanged += 1
                return None
            return StagedFile(path, digest, len(data), data)
        if old is not None:
            hashed = hashlib.sha256()
            for chunk in file.read():
                hashed.update(chunk)
            if hashed.hexdigest() == old:
                self.unchanged += 1
                return None
        digest = store_bytes(self._claimed, f"{self._claimed.task.task_id}_{len(self.found)}", file.read())
        return StagedFile(path, digest, file.size, None)

    def _write(self, batch: Sequence[StagedFile]) -> None:
        self._claimed.observe("staging begins")
        self._claimed.write(partial(self._insert, batch=batch))
        self._claimed.observe("staging is written")
        self._staged.update(dict.fromkeys((each.path for each in batch), False))

    def _insert(self, tx: Tx, context: CallContext, batch: Sequence[StagedFile]) -> None:
        require_held(tx, self._claimed)
        payload = self._payload
        wishes = {"reason": payload.options.reason, "instruction": payload.options.instruction}
        meta = changes.encode_meta({name: text for name, text in wishes.items() if text})
        tags = changes.encode_tags([] if payload.options.tag_mode == "clear" else payload.options.tags)
        blobs.insert_all(tx, [file.data for file in batch if file.data is not None])
        for file in batch:
            self._insert_folders(tx, context, nodes.parent_of(file.path))
            node_id, name = context.ids.log_id(), decode_path(file.path)[-1]
            new = NewNode(
                node_id=node_id, root=self.root, path=file.path, name=name, is_folder=False, tags=tags, meta=meta
            )
            nodes.insert(tx, new, context.now)
            media_type = changes.text_type_of(name)
            content = changes.new_content(
                context, node_id, 1, payload.author, "add", file.digest, file.size, media_type
            )
            contents.insert(tx, content)
            nodes.set_content(tx, node_id, content.content_id, None)
        done = self.unchanged + self.count
        tasks.advance(
            tx,
            self._claimed.claim,
            stage=FETCHING,
            done=min(done, len(self._source.files)),
            total=max(1, len(self._source.files)),
            worked=0,
            now=context.now,
        )

    def _insert_folders(self, tx: Tx, context: CallContext, path: str) -> None:
        if not path or path in self._staged or nodes.find(tx, self.root, path) is not None:
            return
        self._insert_folders(tx, context, nodes.parent_of(path))
        reason = self._payload.options.reason
        meta = changes.encode_meta({"reason": reason} if reason and path == self.top else {})
        changes.insert_folder(tx, context, self.root, path, meta)


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name[1:] else ""


def _name_problem(name: str) -> str:
    if name in VIEWS:
        return f"has the name {name}, which is generated by Holdfast; rename it"
    if len(name) > MAX_NAME_CHARS or not name:
        return f"has a name that is empty or longer than {MAX_NAME_CHARS} characters; rename it"
    if name != name.strip() or any(ord(character) < ord(" ") for character in name):
        return "has a name that begins or ends with a space, or has a control character; rename it"
    return ""
