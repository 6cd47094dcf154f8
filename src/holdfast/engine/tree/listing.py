"""The entries of a listing: which nodes it has, in which order, and which fields."""

from collections.abc import Iterator

import msgspec

from holdfast.engine.tree.nodes import File, Folder, Node
from holdfast.engine.tree.summaries import read_overview
from holdfast.errors import FailedPreconditionError
from holdfast.model.tree.files import FileEntry, SortKey
from holdfast.ops.tree.files import ListFiles, ShowTree
from holdfast.store.timestamps import from_micros

MAX_DEPTH = 100
MAX_SORTED = 10_000
"""How many entries of a view can be sorted."""
_OVERHEAD_BYTES = 150
"""The approximate size of an entry in a response, without its texts."""


class Fields(msgspec.Struct, frozen=True):
    """Which optional fields the entries have."""

    folder_abstract: int | None = None
    """The maximum length of the abstract of a folder; None without."""
    file_abstract: int | None = None
    overview: int | None = None
    has_count: bool = False


STAT = Fields(has_count=True)


def fields_of(op: ListFiles | ShowTree) -> Fields:
    extra = [op.extra_fields] if isinstance(op.extra_fields, str) else op.extra_fields or []
    names = {name.strip() for each in extra for name in each.split(",")}
    return Fields(
        folder_abstract=op.abs_limit if op.output == "agent" or op.include_abstract else None,
        file_abstract=op.abs_limit if op.include_abstract else None,
        overview=op.overview_limit if op.include_overview else None,
        has_count="count" in names,
    )


def walk(folder: Folder, op: ListFiles | ShowTree) -> Iterator[Node]:
    """Yield the nodes of a listing. Each folder comes before its content."""
    depth = op.level_limit if isinstance(op, ShowTree) else MAX_DEPTH if op.recursive else 1
    tags = {op.tags} if isinstance(op.tags, str) else set(op.tags or ())
    folders_only = isinstance(op, ShowTree) and op.directories_only
    sort_by, descending = (op.sort_by, op.sort_order == "desc") if isinstance(op, ListFiles) else (None, False)
    for node in _descend(folder, depth, sort_by, descending):
        is_visible = op.show_all_hidden or not node.name.startswith(".")
        if is_visible and tags.issubset(node.tags) and not (folders_only and isinstance(node, File)):
            yield node


def _descend(folder: Folder, depth: int, sort_by: SortKey | None, descending: bool) -> Iterator[Node]:
    children = folder.children() if sort_by is None else _sorted(folder, sort_by, descending)
    for node in children:
        yield node
        if isinstance(node, Folder) and depth > 1:
            yield from _descend(node, depth - 1, sort_by, descending)


def _sorted(folder: Folder, sort_by: SortKey, descending: bool) -> Iterator[Node]:
    if folder.sorted_children is not None:
        return folder.sorted_children(sort_by, descending)
    found: list[Node] = []
    for node in folder.children():
        if len(found) == MAX_SORTED:
            raise FailedPreconditionError(
                f"{folder.uri} has more than {MAX_SORTED:,} entries, too many to sort; list it without sort_by",
                resource=folder.uri,
            )
        found.append(node)
    found.sort(key=lambda node: (node.changed_at if sort_by == "mtime" else 0, node.name), reverse=descending)
    return iter(found)


def entry(node: Node, rel_path: str, fields: Fields) -> FileEntry:
    is_dir = isinstance(node, Folder)
    abs_limit = fields.folder_abstract if is_dir else fields.file_abstract
    abstract = None if abs_limit is None else node.abstract()[:abs_limit]
    if abstract is None and fields.folder_abstract is not None:
        abstract = ""
    return FileEntry(
        name=node.name,
        uri=node.uri,
        rel_path=rel_path,
        size=node.size if isinstance(node, File) else 0,
        mode=node.mode,
        is_dir=is_dir,
        mod_time=from_micros(node.changed_at),
        abstract=abstract,
        overview=None if fields.overview is None else read_overview(node)[: fields.overview],
        version=node.version if isinstance(node, File) else 0,
        content_type=node.media_type if isinstance(node, File) else "",
        count=node.count() if isinstance(node, Folder) and fields.has_count and node.count is not None else None,
        tags=node.tags,
    )


def entry_bytes(entry: FileEntry) -> int:
    """The approximate size of an entry in a response."""
    texts = 3 * (len(entry.abstract or "") + len(entry.overview or ""))
    return _OVERHEAD_BYTES + 3 * (len(entry.name) + len(entry.uri) + len(entry.rel_path)) + texts
