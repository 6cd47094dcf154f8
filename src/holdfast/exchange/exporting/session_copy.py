"""Copy one session from the `viking://` tree, as it was at one moment."""

from collections.abc import Generator, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import ConflictError
from holdfast.exchange.exporting.atomic_files import sync, sync_folders
from holdfast.exchange.exporting.copying import copy_file, copy_node, list_folder
from holdfast.exchange.file_parts import read_parts
from holdfast.model.sessions import SessionInfo
from holdfast.model.tree.files import HISTORY, MESSAGES, META, Meta
from holdfast.model.uris import child_uri

MAX_ATTEMPTS = 10

_decode_meta = msgspec.json.Decoder(Meta).decode


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a session that an export copies."""

    session_id: str
    uri: str
    created_at: datetime
    live_from: int
    """The sequence number of the first live message. All earlier ones are in archives."""
    live_count: int


class _ArchiveRange(msgspec.Struct, frozen=True):
    """The field of an archive's `.meta.json` that an export needs."""

    last_seq: int


_decode_range = msgspec.json.Decoder(_ArchiveRange).decode


def write_session(client: Client, session_id: str, folder: Path) -> Iterator[int]:
    """Copy a session to a new `folder`, and yield the number of messages written so far.

    Later messages and archives are not written. Memory holds a part of one file.
    """
    folder.mkdir()
    snapshot = yield from _write_live_messages(client, session_id, folder)
    for entry in list_folder(client, snapshot.uri):
        if entry.name == HISTORY:
            yield from _write_history(client, snapshot, entry.uri, folder / HISTORY)
        elif entry.name not in {META, MESSAGES}:
            copy_node(client, entry, folder)
    _require_same_session(client.get_session(session_id), snapshot.created_at)
    sync_folders(folder)


def _write_live_messages(client: Client, session_id: str, folder: Path) -> Generator[int, None, Snapshot]:
    """Copy the metadata and the live messages. A commit meanwhile moves messages to an archive: then copy again."""
    before = client.get_session(session_id)
    for _ in range(MAX_ATTEMPTS):
        meta = _read_text(client, child_uri(before.uri, META))
        _write_text(folder / META, meta)
        live_from = _live_from(before)
        live_count = _decode_meta(meta).message_count - live_from + 1
        yield from copy_file(client, child_uri(before.uri, MESSAGES), folder / MESSAGES, limit=live_count)
        after = client.get_session(session_id)
        _require_same_session(after, before.created_at)
        if _live_from(after) == live_from:
            return Snapshot(session_id, before.uri, before.created_at, live_from, live_count)
        before = after
    raise ConflictError(
        f"Session {session_id} was committed during each of {MAX_ATTEMPTS} attempts to export it; export again",
        resource=session_id,
        type="session",
    )


def _write_history(client: Client, snapshot: Snapshot, uri: str, folder: Path) -> Iterator[int]:
    """Copy the archives of the snapshot. Later ones hold messages that it has as live messages."""
    written = snapshot.live_count
    for archive in list_folder(client, uri):
        meta = _read_text(client, child_uri(archive.uri, META))
        if _decode_range(meta).last_seq >= snapshot.live_from:
            return
        archive_folder = folder / archive.name
        archive_folder.mkdir(parents=True, exist_ok=True)
        _write_text(archive_folder / META, meta)
        count = 0
        for count in copy_file(client, child_uri(archive.uri, MESSAGES), archive_folder / MESSAGES):
            yield written + count
        written += count
        for entry in list_folder(client, archive.uri):
            if entry.name not in {META, MESSAGES}:
                copy_node(client, entry, archive_folder)


def _read_text(client: Client, uri: str) -> str:
    return "".join(read_parts(client, uri))


def _write_text(path: Path, text: str) -> None:
    with path.open("wb") as file:
        file.write(text.encode())
        sync(file)


def _live_from(info: SessionInfo) -> int:
    return info.total_message_count - info.message_count + 1


def _require_same_session(info: SessionInfo, created_at: datetime) -> None:
    if info.created_at != created_at:
        raise ConflictError(
            f"Session {info.session_id} was deleted and created again during the export; export again",
            resource=info.session_id,
            type="session",
        )
