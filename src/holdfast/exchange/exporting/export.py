"""Sessions, out of Holdfast into a folder."""

import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from holdfast.client.sync.client import Client
from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.exchange.exporting.atomic_files import aside, is_aside, put_in_place, remove, write_whole, writing_to
from holdfast.exchange.exporting.session_files import write_session
from holdfast.exchange.file_names import file_name
from holdfast.exchange.layout import MANIFEST, Manifest, read_manifest, sessions_folder
from holdfast.exchange.reports import ExportedSession, ExportReport, Progress
from holdfast.model.files import META, pretty
from holdfast.model.identity import Identity
from holdfast.model.sessions import SessionRow


def export_sessions(
    client: Client,
    folder: str | Path,
    session_ids: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write the caller's sessions, or those with `session_ids`, into `folder`; `docs/exchange.md` tells what is where.

    The folder is new, empty, or holds an earlier export of the same user. Of that, an export of all sessions removes
    those that are no longer there: what was deleted is to be gone. An export of some leaves the others alone.
    A session's folder appears when it is whole.
    """
    folder = Path(folder)
    me = client.whoami()
    listed = _oldest_first(client)
    chosen = _chosen(listed, session_ids)
    with writing_to(folder):
        earlier = _claimed(folder, me)
        kept = [] if session_ids is None else earlier
        manifest = Manifest(account_id=me.account_id, user_id=me.user_id, sessions=_in_order(listed, chosen, kept))
        place = sessions_folder(folder, me.user_id)
        place.mkdir(parents=True, exist_ok=True)
        # Told before the first is there: an export that ends early names what it lacks.
        write_whole(folder / MANIFEST, pretty(manifest))
        _clear(place)
    rows = list(_export(client, chosen, place, progress))
    gone = {row.session_id for row in rows if row.state == "gone"}
    with writing_to(folder):
        if gone:
            left = [session_id for session_id in manifest.sessions if session_id not in gone]
            manifest = Manifest(account_id=me.account_id, user_id=me.user_id, sessions=left)
            write_whole(folder / MANIFEST, pretty(manifest))
        _drop_others(place, manifest.sessions)
    here = set(manifest.sessions) | gone
    rows += [ExportedSession(session_id=id, messages=0, state="removed") for id in earlier if id not in here]  # noqa: A001
    return ExportReport(folder=str(folder), sessions=rows)


def _export(
    client: Client, chosen: list[SessionRow], place: Path, progress: Progress | None
) -> Iterator[ExportedSession]:
    done, total = 0, sum(row.total_message_count for row in chosen)
    for row in chosen:
        written = 0
        try:
            with closing(_export_one(client, row.session_id, place / file_name(row.session_id))) as steps:
                for written in steps:
                    if progress is not None:
                        # Messages may have come since they were counted.
                        progress(done + min(written, row.total_message_count), total, row.session_id)
        except NotFoundError:
            yield ExportedSession(session_id=row.session_id, messages=0, state="gone")
        else:
            yield ExportedSession(session_id=row.session_id, messages=written, state="exported")
        done += row.total_message_count
    if progress is not None:
        progress(total, total, "")


def _export_one(client: Client, session_id: str, place: Path) -> Generator[int]:
    info = client.get_session(session_id)
    partial = aside(place, "partial")
    with writing_to(place):
        try:
            yield from write_session(client, info, partial)
            put_in_place(partial, place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _oldest_first(client: Client) -> list[SessionRow]:
    found: list[SessionRow] = []
    cursor: str | None = None
    while True:
        page = client.list_sessions(limit=1_000, cursor=cursor)
        found += page
        if page.next_cursor is None:
            return found[::-1]
        cursor = page.next_cursor


def _chosen(listed: list[SessionRow], session_ids: Sequence[str] | None) -> list[SessionRow]:
    if session_ids is None:
        return listed
    asked = set(session_ids)
    found = [row for row in listed if row.session_id in asked]
    missing = asked - {row.session_id for row in found}
    if missing:
        raise NotFoundError("session", min(missing))
    return found


def _in_order(listed: list[SessionRow], chosen: list[SessionRow], kept: list[str]) -> list[str]:
    """What the folder will hold, oldest first. What it keeps of sessions that were deleted since comes before."""
    wanted = {*kept, *(row.session_id for row in chosen)}
    known = {row.session_id: None for row in listed if row.session_id in wanted}
    return [session_id for session_id in kept if session_id not in known] + list(known)


def _claimed(folder: Path, me: Identity) -> list[str]:
    """The sessions of the export that is in `folder`; an error if something else is."""
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError("folder", f"{str(folder)!r} is a file; name a folder")
    if (folder / MANIFEST).exists():
        earlier = read_manifest(folder / MANIFEST)
        if (earlier.account_id, earlier.user_id) != (me.account_id, me.user_id):
            raise InvalidArgumentError(
                "folder",
                f"{str(folder)!r} holds an export of user {earlier.user_id} of account {earlier.account_id};"
                f" choose another for user {me.user_id} of account {me.account_id}",
            )
        return earlier.sessions
    others = sorted(entry.name for entry in folder.iterdir() if entry.name[0] != ".") if folder.exists() else []
    if others:
        raise InvalidArgumentError(
            "folder", f"{str(folder)!r} holds something else, such as {others[0]!r}; choose a new or an empty one"
        )
    return []


def _clear(place: Path) -> None:
    """Remove what an export that was killed left behind."""
    for entry in place.iterdir():
        if is_aside(entry.name):
            shutil.rmtree(entry)


def _drop_others(place: Path, session_ids: list[str]) -> None:
    """Remove the sessions that are not in the manifest, and nothing that is not a session."""
    names = {file_name(session_id) for session_id in session_ids}
    for entry in list(place.iterdir()):
        if entry.name not in names and (entry / META).exists():
            remove(entry)
