"""Copy files and folders of the `viking://` tree to a folder on disk."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.client.sync.client import Client
from holdfast.errors import NotFoundError
from holdfast.exchange.exporting.atomic_files import remove_node, sync
from holdfast.exchange.file_names import node_file_name
from holdfast.exchange.file_parts import read_parts
from holdfast.model.tree.files import FileEntry

PAGE_SIZE = 1_000


def list_folder(client: Client, uri: str) -> Iterator[FileEntry]:
    """Yield the entries of a folder, also those whose names begin with a dot."""
    offset, more = 0, True
    while more:
        page = client.ls(uri, show_all_hidden=True, node_limit=PAGE_SIZE, offset=offset)
        yield from page
        offset, more = offset + len(page), page.has_more


def copy_node(client: Client, entry: FileEntry, parent: Path) -> None:
    """Copy a file, or a folder with everything in it, to the folder `parent`. What no longer exists is left out."""
    path = parent / node_file_name(entry.name)
    try:
        if entry.is_dir:
            path.mkdir(exist_ok=True)
            for child in list_folder(client, entry.uri):
                copy_node(client, child, path)
        elif entry.version:  # a stored file, of which a read returns the text only
            client.download(entry.uri, path, overwrite=True)
        else:
            for _ in copy_file(client, entry.uri, path):
                pass
    except NotFoundError:  # for example the reason of a failure: the archive was retried after it was listed
        remove_node(path)


def copy_file(client: Client, uri: str, path: Path, *, limit: int | None = None) -> Iterator[int]:
    """Copy a file, or its first `limit` lines, and yield the number of lines that ended so far."""
    lines = 0
    with path.open("wb") as file:
        for part in read_parts(client, uri, limit=limit):
            file.write(part.encode())
            lines += part.count("\n")
            yield lines
        sync(file)
