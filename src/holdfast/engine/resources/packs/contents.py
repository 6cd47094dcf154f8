"""The contents of a pack, read from a zip archive and checked: nothing in it is believed."""

import re
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

import msgspec

from holdfast import documents
from holdfast.documents import zips
from holdfast.documents.parsed import UnreadableError
from holdfast.engine.resources.naming import file_name
from holdfast.engine.resources.packs import manifests
from holdfast.errors import DocumentError, InvalidArgumentError, short_repr
from holdfast.model.tree.files import VIEWS
from holdfast.model.tree.packs import (
    BLOBS,
    FILES,
    MANIFEST,
    MAX_ENTRIES,
    MAX_MANIFEST_BYTES,
    MAX_PACK_BYTES,
    SUFFIX,
    PackKind,
    PackManifest,
    PackNode,
    PackRelation,
    entry_name,
)
from holdfast.model.uris import encode_path

FIELD = "temp_file_id"
MAX_DIRECTORY_BYTES = 32 << 20
"""The longest list of entries of the archive."""
_MANIFEST_NAME = re.compile(f"[^/]+/{re.escape(MANIFEST)}")


class PackBlob(msgspec.Struct, frozen=True):
    """Bytes of a pack: the content of a file, or an earlier version."""

    name: str
    """As the archive has it."""
    size: int
    sha256: str | None
    """What the manifest says. None if there is no manifest."""
    read: Callable[[], Iterator[bytes]]


class PackContents(msgspec.Struct, frozen=True):
    kind: PackKind
    name: str
    """The name of the exported file or folder, decoded."""
    nodes: list[PackNode]
    """The folders and files. Without a manifest, files have no versions here: `plain_files` has their bytes."""
    relations: list[PackRelation]
    blobs: list[PackBlob]
    plain_files: dict[str, PackBlob]
    """The bytes of files by their paths, if there is no manifest."""


def refuse(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(FIELD, problem)


def read_pack(file: BinaryIO, upload_name: str) -> PackContents:
    """Read what a pack says about its contents, and check it against the archive. The bytes are read later."""
    name = short_repr(upload_name)
    try:
        archive = zips.open_zip(file, MAX_ENTRIES, MAX_DIRECTORY_BYTES)
    except UnreadableError as error:
        raise refuse(f"{name} is no pack: it {error}") from None
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if info.orig_filename in entries:
            raise refuse(f"{name} has two entries with the name {short_repr(info.orig_filename)}; make it again")
        entries[info.orig_filename] = info
    found = [each for each in entries if _MANIFEST_NAME.fullmatch(each)]
    if len(found) > 1:
        raise refuse(f"{name} has {len(found)} manifests; a pack has one")
    if found:
        manifest = manifests.decode(name, _read_manifest(archive, entries[found[0]], name))
        if manifest is not None:
            return _described(archive, entries, found[0].removesuffix(MANIFEST), manifest, name)
    return _plain(file, upload_name)


def _read_manifest(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    problem = zips.entry_problem(info, MAX_MANIFEST_BYTES)
    if problem:
        raise refuse(f"the manifest of {name} {problem}")
    try:
        return b"".join(zips.read_entry(archive, info))
    except UnreadableError as error:
        raise refuse(f"the manifest of {name} {error}") from None


def _described(
    archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], prefix: str, manifest: PackManifest, name: str
) -> PackContents:
    """Return the contents of a pack with a manifest. Every version has an entry, and every entry is one."""
    manifests.check(manifest, name)
    current = {each.versions[-1].sha256: each.path for each in reversed(manifest.nodes) if not each.is_folder}
    blobs: dict[str, PackBlob] = {}
    expected = {f"{prefix}{MANIFEST}"}
    total = 0
    for node in manifest.nodes:
        for version in node.versions:
            is_current = version is node.versions[-1]
            if not is_current and version.sha256 in current:
                continue
            entry = f"{prefix}{FILES}{entry_name(node.path)}" if is_current else f"{prefix}{BLOBS}{version.sha256}"
            info = entries.get(entry)
            if info is None:
                raise refuse(f"{name} has no entry {short_repr(entry)}, which its manifest names; make it again")
            if entry not in expected:
                total += version.size
            expected.add(entry)
            _check_entry(info, version.size, name)
            if total > MAX_PACK_BYTES:
                raise refuse(f"{name} has more than {MAX_PACK_BYTES:,} bytes; export smaller parts")
            read = partial(_read_entry, archive, info, name)
            blobs[entry] = PackBlob(entry, version.size, version.sha256, read)
    unknown = next((each for each in entries if each not in expected and not each.endswith("/")), None)
    if unknown is not None:
        raise refuse(f"{name} has the entry {short_repr(unknown)}, which its manifest does not name; make it again")
    return PackContents(manifest.kind, manifest.name, manifest.nodes, manifest.relations, list(blobs.values()), {})


def _check_entry(info: zipfile.ZipInfo, size: int, name: str) -> None:
    problem = zips.entry_problem(info, MAX_PACK_BYTES)
    if not problem and info.file_size != size:
        problem = f"has {info.file_size} bytes, but {size} in the manifest"
    if problem:
        raise refuse(f"{short_repr(info.orig_filename)} in {name} {problem}")


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    try:
        yield from zips.read_entry(archive, info)
    except UnreadableError as error:
        raise refuse(f"{short_repr(info.orig_filename)} in {name} {error}") from None


def _plain(file: BinaryIO, upload_name: str) -> PackContents:
    """Return the contents of a pack of another program: the files below `{name}/files`, one version each."""
    name = short_repr(upload_name)
    try:
        archive = documents.list_archive(file, upload_name)
    except DocumentError as error:
        raise refuse(f"{name} is no pack: {error.message}") from None
    if archive.problems:
        raise refuse(f"in {name}, {archive.problems[0].problem}")
    tops = {each.path.partition("/")[0] for each in archive.entries}
    top = next(iter(tops)) if len(tops) == 1 else ""
    prefix = FILES if top == FILES.rstrip("/") else f"{top}/{FILES}"
    if not any(f"{each.path}/".startswith(prefix) for each in archive.entries):
        raise refuse(f"{name} is no pack: it has no folder {{name}}/files; use add_resource for other archives")
    folders: dict[str, PackNode] = {"": PackNode(path="", is_folder=True)}
    files: dict[str, PackBlob] = {}
    for entry in archive.entries:
        names = entry.path.removeprefix(prefix).split("/")
        if not entry.path.startswith(prefix) or names[-1] in VIEWS:
            continue  # what another program stores beside the files, and summaries, which are made again
        for depth in range(1, len(names) + entry.is_folder):
            path = encode_path(names[:depth])
            folders[path] = PackNode(path=path, is_folder=True)
        if not entry.is_folder:
            path = encode_path(names)
            files[path] = PackBlob(entry.path, entry.size, None, partial(archive.read, entry))
    nodes = [*folders.values(), *(PackNode(path=path, is_folder=False) for path in files)]
    pack_name = file_name(upload_name).removesuffix(SUFFIX) if prefix == FILES else top
    return PackContents("folder", pack_name, sorted(nodes, key=lambda each: each.path), [], list(files.values()), files)
