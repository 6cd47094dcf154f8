"""Files of a folder of this machine. Links, devices and what cannot be read are left out and named."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.engine.resources.selection import FileSelection
from holdfast.errors import FailedPreconditionError
from holdfast.model.tree.resources import FileProblem

MAX_FILES = 50_000
READ_BYTES = 1 << 20
_KINDS = (
    (stat.S_ISLNK, "is a symbolic link"),
    (stat.S_ISCHR, "is a device file"),
    (stat.S_ISBLK, "is a device file"),
    (stat.S_ISFIFO, "is a named pipe"),
    (stat.S_ISSOCK, "is a socket"),
)


class FolderFile(NamedTuple):
    path: str
    """The names from the folder on, with slashes between."""
    size: int
    location: str


class FolderContents(NamedTuple):
    files: list[FolderFile]
    """In the order of their paths."""
    problems: list[FileProblem]


def list_folder(folder: Path, selection: FileSelection) -> FolderContents:
    """List the files of a folder and of those in it. No link is followed, so nothing outside it is read."""
    contents = FolderContents([], [])
    _list(folder, "", selection, contents)
    contents.files.sort(key=lambda file: file.path)
    return contents


def _list(folder: Path | str, prefix: str, selection: FileSelection, contents: FolderContents) -> None:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        contents.problems.append(FileProblem(file=prefix or ".", message=f"cannot be read: {error.strerror}"))
        return
    for entry in found:
        path = f"{prefix}{entry.name}"
        if not _is_text(path):
            name = path.encode(errors="backslashreplace").decode()
            contents.problems.append(FileProblem(file=name, message="has a name that is not valid UTF-8; rename it"))
            continue
        _add_entry(entry, path, selection, contents)


def _add_entry(entry: "os.DirEntry[str]", path: str, selection: FileSelection, contents: FolderContents) -> None:
    if entry.is_dir(follow_symlinks=False):
        if not selection.ignores(path):
            _list(entry.path, f"{path}/", selection, contents)
        return
    if not selection.accepts(path):
        return
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        contents.problems.append(FileProblem(file=path, message=f"cannot be read: {error.strerror}"))
        return
    problem = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "")
    if not problem and not os.access(entry.path, os.R_OK):
        problem = "cannot be read: permission denied"
    if problem:
        contents.problems.append(FileProblem(file=path, message=f"{problem}; it is left out"))
        return
    if len(contents.files) >= MAX_FILES:
        raise FailedPreconditionError(f"the folder has more than {MAX_FILES:,} files; add its folders one by one")
    contents.files.append(FolderFile(path, status.st_size, entry.path))


def _is_text(path: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(path.encode())
    return False


def read_file(file: FolderFile) -> Iterator[bytes]:
    """Yield the bytes of a file. It must still be a regular file: a link that took its place is not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(file.location, flags), "rb") as opened:  # noqa: PTH123 - the flags forbid links
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(0, "it is not a file any more")
        while chunk := opened.read(READ_BYTES):
            yield chunk
