"""A large stored tree, inserted directly: writing its files one by one takes long."""

from functools import partial

import msgspec

from holdfast.store.access import accounts
from holdfast.store.database import Database, Tx
from holdfast.store.tables.tree import blobs, contents, nodes
from holdfast.store.tables.tree.contents import Content
from holdfast.store.tables.tree.nodes import NewNode
from texts import Texts

ACCOUNT = "default"
TOP = "resources"
LARGE, SMALL, FILES = "large", "small", "files"
"""Folders: with very many empty files, with few, and with files of 10 KB."""
SMALL_ENTRIES = 1_000
FILE_BYTES = 10_000
PAGE = 5_000
EMPTY = b"empty"


class _Ids(msgspec.Struct):
    last: int = 1 << 40

    def next(self) -> int:
        self.last += 1
        return self.last


def insert(database: Database, entries: int, files: int) -> list[str]:
    """Insert all folders. Return the hashes of the files of 10 KB."""
    ids, hashes = _Ids(), []
    sentences = Texts(seed=5).several(500)

    def text(number: int) -> bytes:
        found = f"file {number}\n"
        while len(found) < FILE_BYTES:
            number = (number * 31 + 7) % 1_000_003
            found += f"{sentences[number % len(sentences)]}\n"
        return found.encode()[:FILE_BYTES]

    def insert_some(tx: Tx, folder: str, first: int, count: int) -> None:
        accounts.insert(tx, ACCOUNT, 1)
        if first == 0:
            new = NewNode(node_id=ids.next(), root=TOP, path=folder, name=folder, is_folder=True)
            nodes.insert(tx, new, 1)
        empty = blobs.insert(tx, EMPTY)
        for number in range(first, count):
            data = text(number) if folder == FILES else EMPTY
            digest = blobs.insert(tx, data) if folder == FILES else empty
            path = f"{folder}/file-{number:06}.{'md' if number % 2 else 'txt'}"
            _insert_file(tx, ids, path, digest, len(data))
            if folder == FILES:
                hashes.append(digest)

    for folder, count in ((LARGE, entries), (SMALL, min(entries, SMALL_ENTRIES)), (FILES, files)):
        for first in range(0, count, PAGE):
            last = min(count, first + PAGE)
            database.write(ACCOUNT, partial(insert_some, folder=folder, first=first, count=last))
    return hashes


def _insert_file(tx: Tx, ids: _Ids, path: str, digest: str, size: int) -> None:
    node_id, name = ids.next(), path.rpartition("/")[2]
    nodes.insert(tx, NewNode(node_id=node_id, root=TOP, path=path, name=name, is_folder=False, content_id=node_id), 1)
    content = Content(
        node_id, node_id, 1, 1, "default", "create", digest, size, "text/markdown", "done", None, "[]", "", "", None
    )
    contents.insert(tx, content)
