"""The manifest of a pack: decoding it, and checking that it is consistent."""

import msgspec

from holdfast.errors import HoldfastError, InvalidArgumentError, short_repr
from holdfast.model.tree.packs import (
    FORMAT,
    FORMAT_NUMBER,
    MAX_NODES,
    MAX_PACK_BYTES,
    MAX_VERSIONS,
    PackManifest,
    PackNode,
    PackRelation,
)
from holdfast.model.uris import decode_path, encode_path, parse_uri

FIELD = "temp_file_id"
BACKUP_TOPS = ("resources", "user/resources", "user/skills")
"""The folders of a backup. `user` stands for the user who restores it."""


class _FormatOnly(msgspec.Struct, frozen=True):
    format: object = None
    number: object = None


_decode_format = msgspec.json.Decoder(_FormatOnly).decode
_decode_manifest = msgspec.json.Decoder(PackManifest).decode


def decode(name: str, data: bytes) -> PackManifest | None:
    """Return the manifest. None if it is one of another program."""
    try:
        found = _decode_format(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _lies(name, "is not a JSON object") from None
    if found.format != FORMAT:
        return None
    if found.number != FORMAT_NUMBER:
        raise _lies(name, f"has the format number {short_repr(found.number)}; this version reads {FORMAT_NUMBER}")
    try:
        return _decode_manifest(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _lies(name, f"is not valid: {error}") from None


def check(manifest: PackManifest, name: str) -> None:
    """Raise an error if a manifest is not consistent in itself, or too large."""
    versions = sum(len(node.versions) for node in manifest.nodes)
    if len(manifest.nodes) > MAX_NODES or versions > MAX_VERSIONS:
        raise _lies(
            name,
            f"has {len(manifest.nodes):,} nodes and {versions:,} versions, more than {MAX_NODES:,} or {MAX_VERSIONS:,};"
            " export smaller parts",
        )
    _require_text(name, [manifest.name])
    if manifest.kind != "backup" and manifest.name in {"", ".", ".."}:
        raise _lies(name, f"has the name {manifest.name!r}; a pack needs a name")
    kinds: dict[str, bool] = dict.fromkeys(BACKUP_TOPS, True) if manifest.kind == "backup" else {"": True}
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    for node in manifest.nodes:
        if node.path in seen:
            raise _lies(name, f"has the path {short_repr(node.path)} twice")
        seen.add(node.path)
        kinds[node.path] = node.is_folder
        _check_versions(name, node, sizes)
        _require_text(name, [*node.tags, node.description, node.reason, node.instruction])
    for node in manifest.nodes:
        _check_path(name, manifest, node, kinds)
    if sum(sizes.values()) > MAX_PACK_BYTES:
        raise _lies(name, f"has more than {MAX_PACK_BYTES:,} bytes; export smaller parts")
    for relation in manifest.relations:
        _check_relation(name, relation, kinds)


def _check_path(name: str, manifest: PackManifest, node: PackNode, kinds: dict[str, bool]) -> None:
    path = node.path
    shown = short_repr(path)
    if path == "" and manifest.kind == "folder" and node.is_folder:
        return
    try:
        names = decode_path(path)
    except UnicodeDecodeError:
        names = ()
    if encode_path(names) != path or not {"", ".", ".."}.isdisjoint(path.split("/")) or not path:
        raise _lies(name, f"has the path {shown}, which is not a path below the pack, encoded as in a URI")
    parent = path.rpartition("/")[0]
    if manifest.kind == "file" and (parent or node.is_folder or len(manifest.nodes) > 1):
        raise _lies(name, "is one of a single file, but has other nodes")
    if manifest.kind == "backup" and not path.startswith(tuple(f"{top}/" for top in BACKUP_TOPS)):
        raise _lies(name, f"has the path {shown}, which is in none of {', '.join(BACKUP_TOPS)}")
    if not kinds.get(parent, False):
        raise _lies(name, f"has the path {shown}, whose folder is missing or a file")


def _check_versions(name: str, node: PackNode, sizes: dict[str, int]) -> None:
    shown = short_repr(node.path)
    if node.is_folder and node.versions:
        raise _lies(name, f"has versions of the folder {shown}")
    if not node.is_folder and not node.versions:
        raise _lies(name, f"has no version of the file {shown}")
    before = 0
    for version in node.versions:
        if version.version <= before:
            raise _lies(name, f"has version {version.version} of {shown} after {before}; they come in order, each once")
        before = version.version
        if sizes.setdefault(version.sha256, version.size) != version.size:
            raise _lies(name, f"has two sizes for the same hash, one of them in {shown}")
        if version.size > MAX_PACK_BYTES:
            raise _lies(name, f"has a version of {shown} with more than {MAX_PACK_BYTES:,} bytes")
        _require_text(name, [version.author, version.content_type])


def _check_relation(name: str, relation: PackRelation, kinds: dict[str, bool]) -> None:
    ends = [relation.from_path] if relation.to_path is None else [relation.from_path, relation.to_path]
    for path in ends:
        if path not in kinds:
            raise _lies(name, f"has a relation of {short_repr(path)}, which it does not have as a file or folder")
    if relation.to_path is None:
        try:
            parse_uri(relation.to_uri)
        except (HoldfastError, UnicodeDecodeError):
            raise _lies(name, f"has a relation to {short_repr(relation.to_uri)}, which is no address") from None
    _require_text(name, [relation.reason, relation.author, relation.to_uri])


def _require_text(name: str, texts: list[str]) -> None:
    if any("\0" in text for text in texts):
        raise _lies(name, "has a text with a NUL character")


def _lies(name: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(FIELD, f"the manifest of {name} {problem}")
