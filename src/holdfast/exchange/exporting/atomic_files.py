"""Atomic writes: a file or folder is complete, or it does not exist."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import UnavailableError


@contextmanager
def disk_errors_as_unavailable(folder: Path) -> Iterator[None]:
    """Raise `UnavailableError` for a failed write, for example on a full disk."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnavailableError(
            f"{str(folder)!r} cannot be written to: {reason};"
            " the sessions exported so far are complete, export again to continue",
            service="disk",
            reason=reason,
        ) from error


def temporary_path(path: Path, suffix: str) -> Path:
    """The hidden name of a file or folder while it is incomplete (`partial`) or replaced (`old`)."""
    return path.with_name(f".{path.name}.{suffix}")


def is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith((".partial", ".old"))


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk. Windows cannot open folders and does so itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top):
        sync_folder(Path(folder))


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically: a failed write leaves the existing file unchanged."""
    partial = temporary_path(path, "partial")
    with partial.open("wb") as file:
        file.write(content)
        sync(file)
    partial.replace(path)
    sync_folder(path.parent)


def replace_node(complete: Path, target: Path) -> None:
    """Rename a complete file or folder to `target`, and remove what had this name.

    For a moment `target` does not exist, but it is never incomplete.
    """
    old = _move_away(target) if target.exists() else None
    complete.rename(target)
    sync_folder(target.parent)
    if old is not None:
        remove_node(old)


def remove_atomically(path: Path) -> None:
    """Remove a file or folder. It is renamed first, so that `path` is never incomplete."""
    old = _move_away(path)
    sync_folder(path.parent)
    remove_node(old)


def remove_node(path: Path) -> None:
    """Remove a file or folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _move_away(path: Path) -> Path:
    old = temporary_path(path, "old")
    remove_node(old)
    return path.rename(old)
