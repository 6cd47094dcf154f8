"""The nodes of the `viking://` tree: files and folders. They are built from rows on demand; a listing reads no file."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Union

import msgspec

from holdfast.engine.tree.reading import Selection, select_from_lines, select_from_text
from holdfast.model.tree.files import FILE_MODE, FOLDER_MODE, WRITABLE_FILE_MODE, WRITABLE_FOLDER_MODE, SortKey
from holdfast.model.uris import child_uri

Node = Union["File", "Folder"]


def no_summary() -> str:
    return ""


class File(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    read: Callable[[Selection], str]
    size: int = 0
    """In bytes; 0 if it is not known without reading the file."""
    writable: bool = False
    abstract: Callable[[], str] = no_summary
    overview: Callable[[], str] = no_summary
    version: int = 0
    """The number of the current version; 0 for a view."""
    media_type: str = ""
    tags: list[str] = []

    @property
    def mode(self) -> int:
        return WRITABLE_FILE_MODE if self.writable else FILE_MODE


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uri: str
    changed_at: int
    children: Callable[[], Iterator[Node]]
    child: Callable[[str], Node | None]
    abstract: Callable[[], str] = no_summary
    overview: Callable[[], str] = no_summary
    writable: bool = False
    count: Callable[[], int] | None = None
    """Counts the children. None if that takes long."""
    sorted_children: Callable[[SortKey, bool], Iterator[Node]] | None = None
    """Generates the children in another order: by a key, and whether the largest comes first."""
    tags: list[str] = []

    @property
    def mode(self) -> int:
        return WRITABLE_FOLDER_MODE if self.writable else FOLDER_MODE


def small_folder(
    name: str,
    uri: str,
    changed_at: int,
    children: Callable[[], Iterator[Node]],
    abstract: Callable[[], str] = no_summary,
) -> Folder:
    """Return a folder with few children, which are searched one by one."""

    def child(child_name: str) -> Node | None:
        return next((node for node in children() if node.name == child_name), None)

    return Folder(name=name, uri=uri, changed_at=changed_at, children=children, child=child, abstract=abstract)


def named_folder(
    name: str,
    uri: str,
    changed_at: int,
    builders: Mapping[str, Callable[[], Node | None]],
    abstract: Callable[[], str] = no_summary,
) -> Folder:
    """Return a folder whose children have fixed names. A builder returns None while its child does not exist."""

    def children() -> Iterator[Node]:
        return (node for build in builders.values() if (node := build()) is not None)

    def child(child_name: str) -> Node | None:
        return builders[child_name]() if child_name in builders else None

    return Folder(name=name, uri=uri, changed_at=changed_at, children=children, child=child, abstract=abstract)


def text_file(folder: str, name: str, changed_at: int, text: str) -> File:
    """Return a file with the given content."""
    return loaded_file(folder, name, changed_at, lambda: text, size=len(text.encode()))


def loaded_file(folder: str, name: str, changed_at: int, load: Callable[[], str], *, size: int = 0) -> File:
    """Return a file whose whole content is loaded by each read."""
    uri = child_uri(folder, name)
    return File(
        name=name,
        uri=uri,
        changed_at=changed_at,
        read=lambda selection: select_from_text(uri, load(), selection),
        size=size,
    )


def lines_file(folder: str, name: str, changed_at: int, lines: Callable[[int], Iterator[str]]) -> File:
    """Return a file of any length. `lines` generates its lines, from a number on, counted from 0."""
    uri = child_uri(folder, name)
    return File(name=name, uri=uri, changed_at=changed_at, read=partial(_read_lines, uri, lines))


def _read_lines(uri: str, lines: Callable[[int], Iterator[str]], selection: Selection) -> str:
    return select_from_lines(uri, lines(selection.offset), selection)
