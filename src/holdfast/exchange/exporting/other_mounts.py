"""Export the mounts of the `viking://` tree other than the sessions."""

from collections.abc import Iterable
from pathlib import Path

from holdfast.client.sync.client import Client
from holdfast.exchange.exporting.atomic_files import (
    remove_atomically,
    remove_node,
    replace_node,
    sync_folders,
    temporary_path,
)
from holdfast.exchange.exporting.copying import copy_node, list_folder
from holdfast.exchange.layout import node_path
from holdfast.model.identity import Identity
from holdfast.model.tree.files import FileEntry
from holdfast.model.uris import SCHEME, child_uri


def list_other_mounts(client: Client, caller: Identity) -> list[FileEntry]:
    """List the files and folders beside the path to the caller's sessions."""
    users = child_uri(SCHEME, "user")
    home = child_uri(users, caller.user_id)
    path = {users, home, child_uri(home, "sessions")}
    # Other users' folders hold what they share with the caller. It is theirs to export.
    found = (entry for uri in (SCHEME, home) for entry in list_folder(client, uri) if entry.uri not in path)
    return [entry for entry in found if not entry.is_dir or _has_content(client, entry.uri)]


def _has_content(client: Client, uri: str) -> bool:
    """Whether there is anything in a folder, apart from the empty folder of published skills, which is always there."""
    return any(entry.name != "skills" or _has_content(client, entry.uri) for entry in client.ls(uri, node_limit=10))


def export_other_mounts(client: Client, other_mounts: Iterable[FileEntry], folder: Path) -> None:
    """Copy files and folders to their places in `folder`. Each of them is replaced when it is complete."""
    for entry in other_mounts:
        target = node_path(folder, entry.uri)
        partial = temporary_path(target, "partial")
        remove_node(partial)
        partial.mkdir(parents=True)
        copy_node(client, entry, partial)
        sync_folders(partial)
        if (partial / target.name).exists():
            replace_node(partial / target.name, target)
        remove_node(partial)


def remove_other_mounts(uris: Iterable[str], folder: Path, sessions: Path) -> None:
    """Remove files and folders of an earlier export, but never the folder of the sessions or one that holds it."""
    for uri in uris:
        target = node_path(folder, uri)
        if target.exists() and not sessions.is_relative_to(target):
            remove_atomically(target)
