"""The file of a pack on the disk of a client: a zip archive that is complete, or does not exist."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

import msgspec

from holdfast.client.files import DownloadedFile, ProgressCallback
from holdfast.errors import ConflictError, TooLargeError
from holdfast.model.tree.packs import (
    BACKUP_NAME,
    BLOBS,
    FILES,
    FORMAT,
    FORMAT_NUMBER,
    MANIFEST,
    MAX_ENTRIES,
    MAX_MANIFEST_BYTES,
    MAX_NODES,
    MAX_PACK_BYTES,
    MAX_VERSIONS,
    PackKind,
    PackManifest,
    PackNode,
    PackNodes,
    PackRelation,
    PackVersion,
    entry_name,
)
from holdfast.model.tree.uploads import FileBytes
from holdfast.model.uris import SCHEME, encode_path

MAX_COMPRESSED_BYTES = 4 << 20
"""A larger file is stored as it is: an import would take a repetitive one for a zip bomb."""
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of all entries, so that the same subtree is the same archive."""
FILE_MODE = 0o644 << 16
UNIX = 3
BACKUP_ROOTS = {
    "viking://resources": "resources",
    "viking://~/resources": "user/resources",
    "viking://~/skills": "user/skills",
}
"""What a backup has, and where: all that the caller may write. `user` is the user who restores it."""


class PackEntry(NamedTuple):
    """An entry of the archive, and the version of a file that has its bytes."""

    name: str
    uri: str
    version: PackVersion


class PackPlan(NamedTuple):
    """What a pack is made of."""

    manifest: PackManifest
    entries: list[PackEntry]

    @property
    def size(self) -> int:
        return sum(entry.version.size for entry in self.entries)


class Subtree(NamedTuple):
    """The nodes that were exported from one address."""

    folder: str
    """The path of the address in the pack; empty unless it is one of a backup."""
    first: PackNodes
    nodes: list[PackNode]


def plan_pack(subtrees: Sequence[Subtree], kind: PackKind) -> PackPlan:
    """Return the manifest and the entries of a pack. The bytes of an earlier version are in it once."""
    name = BACKUP_NAME if kind == "backup" else subtrees[0].first.name
    nodes: list[PackNode] = []
    relations: list[PackRelation] = []
    current: dict[str, PackEntry] = {}
    earlier: dict[str, PackEntry] = {}
    prefix = f"{entry_name(encode_path([name]))}/"
    for subtree in subtrees:
        inside = f"{subtree.folder}/" if subtree.folder else ""
        for node in subtree.nodes:
            path = f"{inside}{node.path}"
            nodes.append(msgspec.structs.replace(node, path=path))
            uri = f"{subtree.first.uri}/{node.path}" if subtree.first.is_folder else subtree.first.uri
            for version in node.versions:
                if version is node.versions[-1]:
                    current[path] = PackEntry(f"{prefix}{FILES}{entry_name(path)}", uri, version)
                else:
                    earlier[version.sha256] = PackEntry(f"{prefix}{BLOBS}{version.sha256}", uri, version)
        for each in subtree.first.relations:
            to_path = None if each.to_path is None else f"{inside}{each.to_path}"
            relations.append(msgspec.structs.replace(each, from_path=f"{inside}{each.from_path}", to_path=to_path))
    paths = {node.path for node in nodes} | ({""} if kind == "folder" else set())
    hashes = {entry.version.sha256 for entry in current.values()}
    manifest = PackManifest(
        format=FORMAT,
        number=FORMAT_NUMBER,
        kind=kind,
        name=name,
        uri=SCHEME if kind == "backup" else subtrees[0].first.uri,
        exported_at=subtrees[0].first.listed_at,
        nodes=nodes,
        relations=[each for each in relations if _is_inside(each, paths)],
    )
    blobs = [earlier[digest] for digest in sorted(earlier) if digest not in hashes]
    plan = PackPlan(manifest, [*current.values(), *blobs])
    _require_small(plan)
    return plan


def _is_inside(relation: PackRelation, paths: set[str]) -> bool:
    """Whether the pack has what is related. An address may be one of a file that was removed."""
    return relation.from_path in paths and (relation.to_path is None or relation.to_path in paths)


def _require_small(plan: PackPlan) -> None:
    versions = sum(len(node.versions) for node in plan.manifest.nodes)
    for what, count, limit in (
        ("files and folders", len(plan.manifest.nodes), MAX_NODES),
        ("versions", versions, MAX_VERSIONS),
        ("files and earlier versions", len(plan.entries) + 1, MAX_ENTRIES),
        ("bytes", plan.size, MAX_PACK_BYTES),
    ):
        if count > limit:
            raise TooLargeError(
                f"uri: {plan.manifest.uri} has {count:,} {what}, more than {limit:,}; export parts of it, or without"
                " earlier versions",
                limit=limit,
            )


class PackFile(DownloadedFile):
    """Writes a pack. After an error, the target is as before."""

    def __init__(self, target: Path, progress: ProgressCallback | None, *, overwrite: bool) -> None:
        super().__init__(target, progress, overwrite=overwrite)
        self._total = 0
        self.archive_bytes = 0
        """The size of the pack, when it is complete."""
        self._entry: IO[bytes] | None = None
        self._expected: PackEntry | None = None
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        super().__enter__()
        self._zip = zipfile.ZipFile(self._opened, "w")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._close_zip()
        except BaseException as failed:
            super().__exit__(type(failed), failed, failed.__traceback__)
            raise
        super().__exit__(kind, error, trace)

    def _close_zip(self) -> None:
        try:
            self._zip.close()
            self.archive_bytes = self._opened.tell()
        except OSError as error:
            raise self._disk_error(error) from error

    def begin(self, plan: PackPlan) -> None:
        """Write the manifest."""
        data = msgspec.json.encode(plan.manifest)
        if len(data) > MAX_MANIFEST_BYTES:
            raise TooLargeError(
                f"the manifest has {len(data):,} bytes, more than {MAX_MANIFEST_BYTES:,}; export parts of it",
                limit=MAX_MANIFEST_BYTES,
            )
        self._total = plan.size
        name = f"{entry_name(encode_path([plan.manifest.name]))}/{MANIFEST}"
        self._zip.writestr(_info(name, len(data)), data)

    def open_entry(self, entry: PackEntry) -> None:
        self._expected = entry
        self._digest = hashlib.sha256()
        self._entry = self._zip.open(_info(entry.name, entry.version.size), "w")

    def add(self, part: FileBytes) -> None:
        """Add the next bytes of the entry. It is complete when it has the size that the manifest says."""
        assert self._entry is not None  # noqa: S101 - `open_entry` comes first
        assert self._expected is not None  # noqa: S101
        if part.sha256 != self._expected.version.sha256:
            raise _changed(self._expected.uri)
        self._digest.update(part.data)
        try:
            self._entry.write(part.data)
        except OSError as error:
            raise self._disk_error(error) from error
        self.size += len(part.data)
        self._progress(self.size, self._total, part.uri)

    def close_stream(self) -> None:
        """End the entry, complete or not."""
        if self._entry is not None:
            self._entry.close()
            self._entry = None

    def check_entry(self) -> None:
        """Raise an error if the entry has other bytes than the manifest says."""
        assert self._expected is not None  # noqa: S101 - `open_entry` comes first
        if self._digest.hexdigest() != self._expected.version.sha256:
            raise _changed(self._expected.uri)


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EARLIEST)
    info.compress_type = zipfile.ZIP_DEFLATED if size <= MAX_COMPRESSED_BYTES else zipfile.ZIP_STORED
    info.external_attr, info.create_system = FILE_MODE, UNIX
    return info


def _changed(uri: str) -> ConflictError:
    return ConflictError(f"{uri} has changed during the export; export it again", resource=uri)
