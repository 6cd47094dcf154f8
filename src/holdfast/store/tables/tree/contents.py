"""The contents of files, one for each version, and what processing has made of them; the summaries of folders."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from holdfast.model.tree.files import FilePart
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.tree.nodes import subtree_range

Change = Literal["create", "replace", "append", "restore", "add", "import", "copy", "summary"]
State = Literal["pending", "done", "failed"]
FOLDER_VERSION = 0
_COLUMNS = (
    "content_id, node_id, version, created_at, author, change, blob, size, media_type, state, text_blob, outline,"
    " abstract, overview, error"
)
_OF_CONTENT = "account_id = ? AND content_id = ?"
_CURRENT_BELOW = (
    "SELECT n.content_id FROM nodes n WHERE n.account_id = ? AND n.root = ? AND n.removed_at IS NULL"
    " AND n.is_folder = 0 AND (n.path = ? OR (n.path >= ? AND n.path < ?))"
)


class Content(NamedTuple):
    """A version of a file, or the summary of a folder."""

    content_id: int
    node_id: int
    version: int
    created_at: int
    author: str
    change: Change
    blob: str | None
    """The hash of the bytes. None for a folder."""
    size: int
    media_type: str
    state: State
    text_blob: str | None
    """The hash of the extracted text. None if the bytes are the text, or if there is no text."""
    outline: str
    """The JSON of the parts."""
    abstract: str
    overview: str
    error: str | None

    @property
    def parts(self) -> list[FilePart]:
        return _decode_parts(self.outline)


_decode_parts = msgspec.json.Decoder(list[FilePart]).decode


def insert(tx: Tx, content: Content) -> None:
    marks = ", ".join("?" * len(content))
    tx.execute(f"INSERT INTO contents (account_id, {_COLUMNS}) VALUES (?, {marks})", (tx.account, *content))


def find(tx: Tx, content_id: int) -> Content | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM contents WHERE {_OF_CONTENT}", (tx.account, content_id))
    return None if row is None else Content(*row)


def read(tx: Tx, content_ids: Sequence[int]) -> list[Content]:
    """Read some contents. Missing ones are left out."""
    marks = ", ".join("?" * len(content_ids)) or "NULL"
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM contents WHERE account_id = ? AND content_id IN ({marks})", (tx.account, *content_ids)
    )
    return [Content(*row) for row in rows]


def find_version(tx: Tx, node_id: int, version: int) -> Content | None:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM contents WHERE account_id = ? AND node_id = ? AND version = ?",
        (tx.account, node_id, version),
    )
    return None if row is None else Content(*row)


def versions(tx: Tx, node_id: int, before: int | None, limit: int) -> list[Content]:
    """List the versions of a file, the newest first, from those before a version on."""
    condition, params = ("", ()) if before is None else (" AND version < ?", (before,))
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM contents WHERE account_id = ? AND node_id = ? AND version > {FOLDER_VERSION}"
        f"{condition} ORDER BY version DESC LIMIT ?",
        (tx.account, node_id, *params, limit),
    )
    return [Content(*row) for row in rows]


def last_version(tx: Tx, node_id: int) -> int:
    row = tx.one("SELECT MAX(version) FROM contents WHERE account_id = ? AND node_id = ?", (tx.account, node_id))
    return row[0] or 0 if row else 0


def set_processed(
    tx: Tx,
    content_id: int,
    *,
    media_type: str,
    text_blob: str | None,
    parts: Sequence[FilePart],
    abstract: str,
    overview: str,
) -> None:
    """Store what processing has made of a file."""
    tx.execute(
        "UPDATE contents SET state = 'done', media_type = ?, text_blob = ?, outline = ?, abstract = ?, overview = ?,"
        f" error = NULL WHERE {_OF_CONTENT}",
        (media_type, text_blob, encode_parts(parts), abstract, overview, tx.account, content_id),
    )


def set_failed(tx: Tx, content_id: int, error: str) -> None:
    """Record that a file cannot be processed. Its bytes are kept."""
    tx.execute(f"UPDATE contents SET state = 'failed', error = ? WHERE {_OF_CONTENT}", (error, tx.account, content_id))


def delete(tx: Tx, content_id: int) -> None:
    tx.execute(f"DELETE FROM contents WHERE {_OF_CONTENT}", (tx.account, content_id))


def move_to_node(tx: Tx, content_id: int, node_id: int, version: int) -> None:
    """Make a content the version of another node."""
    tx.execute(
        f"UPDATE contents SET node_id = ?, version = ? WHERE {_OF_CONTENT}", (node_id, version, tx.account, content_id)
    )


def encode_parts(parts: Sequence[Any]) -> str:
    return msgspec.json.encode(parts).decode()


def indexed_before(tx: Tx, node_id: int, content_id: int) -> list[int]:
    """List the other contents of a node that still have documents."""
    rows = tx.all(
        "SELECT c.content_id FROM contents c WHERE c.account_id = ? AND c.node_id = ? AND c.content_id <> ? AND EXISTS"
        " (SELECT 1 FROM documents d WHERE d.account_id = c.account_id AND d.content_id = c.content_id)",
        (tx.account, node_id, content_id),
    )
    return [row[0] for row in rows]


def parse_again(tx: Tx, root: str, path: str) -> None:
    """Let the files at and below a path be parsed again. They are found as before until then."""
    tx.execute(
        f"UPDATE contents SET state = 'pending' WHERE account_id = ? AND content_id IN ({_CURRENT_BELOW})",
        (tx.account, tx.account, root, path, *subtree_range(path)),
    )


def forget_documents(tx: Tx, root: str, path: str) -> None:
    """Delete the documents of the files at and below a path."""
    for (content_id,) in tx.all(_CURRENT_BELOW, (tx.account, root, path, *subtree_range(path))):
        documents.delete_of_content(tx, content_id)
