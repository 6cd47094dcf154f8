"""Export the `viking://` tree of a user to a folder, session by session."""

import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from holdfast.client.sync.client import Client
from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.exchange.exporting.atomic_files import (
    disk_errors_as_unavailable,
    is_temporary,
    remove_atomically,
    replace_node,
    temporary_path,
    write_file,
)
from holdfast.exchange.exporting.other_mounts import export_other_mounts, list_other_mounts, remove_other_mounts
from holdfast.exchange.exporting.session_copy import write_session
from holdfast.exchange.file_names import file_name
from holdfast.exchange.layout import MANIFEST, Manifest, read_manifest, sessions_folder
from holdfast.exchange.reports import ExportedSession, ExportReport, ProgressCallback
from holdfast.model.identity import Identity
from holdfast.model.sessions import SessionRow
from holdfast.model.tree.files import META
from holdfast.session_files import encode_pretty


def export_sessions(
    client: Client,
    folder: str | Path,
    session_ids: Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
) -> ExportReport:
    """Write the caller's `viking://` tree, or only the sessions in `session_ids`, to `folder`.

    `docs/exchange.md` lists the files. The folder must be new or empty, or hold an earlier export of the same user. An
    export of everything removes what was exported before and has been deleted since. An export of some sessions leaves
    the rest of the folder unchanged. A session's folder appears once it is complete.
    """
    folder = Path(folder)
    caller = client.whoami()
    client.record_export(None if session_ids is None else list(session_ids))
    all_sessions = _list_oldest_first(client)
    selected = _select(all_sessions, session_ids)
    other_mounts = list_other_mounts(client, caller) if session_ids is None else []
    with disk_errors_as_unavailable(folder):
        earlier = _earlier_export(folder, caller)
        manifest = Manifest(
            account_id=caller.account_id,
            user_id=caller.user_id,
            sessions=_manifest_order(all_sessions, selected, [] if session_ids is None else earlier.sessions),
            other_mounts=[entry.uri for entry in other_mounts] if session_ids is None else earlier.other_mounts,
        )
        target = sessions_folder(folder, caller.user_id)
        target.mkdir(parents=True, exist_ok=True)
        # The manifest comes first, so that an interrupted export names the sessions it lacks.
        write_file(folder / MANIFEST, encode_pretty(manifest))
        _remove_temporary(target)
    rows = list(_export(client, selected, target, progress))
    gone = {row.session_id for row in rows if row.state == "gone"}
    with disk_errors_as_unavailable(folder):
        export_other_mounts(client, other_mounts, folder)
        if gone:
            existing = [session_id for session_id in manifest.sessions if session_id not in gone]
            manifest = msgspec.structs.replace(manifest, sessions=existing)
            write_file(folder / MANIFEST, encode_pretty(manifest))
        _remove_other_sessions(target, manifest.sessions)
        unmounted = [uri for uri in earlier.other_mounts if uri not in manifest.other_mounts]
        remove_other_mounts(unmounted, folder, target)
    accounted_for = set(manifest.sessions) | gone
    rows += [
        ExportedSession(session_id=session_id, messages=0, state="removed")
        for session_id in earlier.sessions
        if session_id not in accounted_for
    ]
    return ExportReport(folder=str(folder), sessions=rows, other_mounts=[entry.uri for entry in other_mounts])


def _export(
    client: Client, selected: list[SessionRow], target: Path, progress: ProgressCallback | None
) -> Iterator[ExportedSession]:
    done, total = 0, sum(row.total_message_count for row in selected)
    for row in selected:
        written = 0
        try:
            with closing(_export_session(client, row.session_id, target / file_name(row.session_id))) as counts:
                for count in counts:
                    written = max(written, count)  # a part that is copied again is counted again
                    if progress is not None:
                        # Messages may have been added since they were counted.
                        progress(done + min(written, row.total_message_count), total, row.session_id)
        except NotFoundError:
            yield ExportedSession(session_id=row.session_id, messages=0, state="gone")
        else:
            yield ExportedSession(session_id=row.session_id, messages=written, state="exported")
        done += row.total_message_count
    if progress is not None:
        progress(total, total, "")


def _export_session(client: Client, session_id: str, folder: Path) -> Generator[int]:
    """Export one session, and yield the number of messages written so far."""
    partial = temporary_path(folder, "partial")
    with disk_errors_as_unavailable(folder):
        try:
            yield from write_session(client, session_id, partial)
            replace_node(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _list_oldest_first(client: Client) -> list[SessionRow]:
    rows: list[SessionRow] = []
    cursor: str | None = None
    while True:
        page = client.list_sessions(limit=1_000, cursor=cursor, shared=False)
        rows += page
        if page.next_cursor is None:
            return rows[::-1]
        cursor = page.next_cursor


def _select(rows: list[SessionRow], session_ids: Sequence[str] | None) -> list[SessionRow]:
    if session_ids is None:
        return rows
    requested = set(session_ids)
    selected = [row for row in rows if row.session_id in requested]
    missing = requested - {row.session_id for row in selected}
    if missing:
        raise NotFoundError("session", min(missing))
    return selected


def _manifest_order(rows: list[SessionRow], selected: list[SessionRow], kept: list[str]) -> list[str]:
    """The ids of the sessions that the folder will hold, oldest first; kept sessions that were deleted come first."""
    wanted = {*kept, *(row.session_id for row in selected)}
    existing = {row.session_id: None for row in rows if row.session_id in wanted}
    return [session_id for session_id in kept if session_id not in existing] + list(existing)


def _earlier_export(folder: Path, caller: Identity) -> Manifest:
    """The manifest of an earlier export in `folder`. Raises an error if the folder holds anything else."""
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError("folder", f"{str(folder)!r} is a file; name a folder")
    if (folder / MANIFEST).exists():
        earlier = read_manifest(folder / MANIFEST)
        if (earlier.account_id, earlier.user_id) != (caller.account_id, caller.user_id):
            raise InvalidArgumentError(
                "folder",
                f"{str(folder)!r} holds an export of user {earlier.user_id} of account {earlier.account_id};"
                f" choose another folder for user {caller.user_id} of account {caller.account_id}",
            )
        return earlier
    foreign = sorted(entry.name for entry in folder.iterdir() if entry.name[0] != ".") if folder.exists() else []
    if foreign:
        raise InvalidArgumentError(
            "folder", f"{str(folder)!r} is not an export: it holds {foreign[0]!r}; choose a new or an empty folder"
        )
    return Manifest(account_id=caller.account_id, user_id=caller.user_id, sessions=[])


def _remove_temporary(folder: Path) -> None:
    """Remove the temporary folders of an export that was killed."""
    for entry in folder.iterdir():
        if is_temporary(entry.name):
            shutil.rmtree(entry)


def _remove_other_sessions(folder: Path, session_ids: list[str]) -> None:
    """Remove the sessions that are not in the manifest. Folders that are not sessions are kept."""
    names = {file_name(session_id) for session_id in session_ids}
    for entry in list(folder.iterdir()):
        if entry.name not in names and (entry / META).exists():
            remove_atomically(entry)
