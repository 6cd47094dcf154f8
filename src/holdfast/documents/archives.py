"""Zip uploads: the entries that can be stored, and a problem for each of the others."""

import io
import re
import stat
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from holdfast.documents import zips
from holdfast.documents.parsed import UnreadableError
from holdfast.errors import DocumentError

MAX_ENTRY_BYTES = 128 << 20
MAX_TOTAL_BYTES = 1 << 30
MAX_NAME_BYTES = 255
"""The longest name of a file or a folder."""
MAX_DEPTH = 32
"""How many folders may be around a file."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_KINDS = {
    stat.S_IFLNK: "is a symbolic link",
    stat.S_IFCHR: "is a device file",
    stat.S_IFBLK: "is a device file",
    stat.S_IFIFO: "is a named pipe",
    stat.S_IFSOCK: "is a socket",
}


class ArchiveEntry(msgspec.Struct, frozen=True):
    path: str
    """Names joined by `/`: relative, and without `.` and `..`."""
    size: int
    is_folder: bool
    number: int
    """Its number in the archive."""


class ArchiveProblem(msgspec.Struct, frozen=True):
    """An entry that cannot be stored."""

    path: str
    """As the archive has it."""
    problem: str
    """A sentence that names the entry."""


class Archive:
    """A zip archive: its entries, and their contents one at a time."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._infos = archive.infolist()
        self.entries: list[ArchiveEntry] = []
        """What can be stored, in the order of the archive."""
        self.problems: list[ArchiveProblem] = []
        self._classify()

    def read(self, entry: ArchiveEntry) -> Iterator[bytes]:
        """Return the content of an entry in chunks of at most 1 MiB. Raises `DocumentError` if it is damaged."""
        try:
            yield from zips.read_entry(self._archive, self._infos[entry.number])
        except UnreadableError as error:
            raise DocumentError(entry.path, str(error)) from None

    def _classify(self) -> None:
        total = 0
        files: set[str] = set()
        folders: set[str] = set()
        for number, info in enumerate(self._infos):
            # What the archive has: `filename` ends at the first NUL character.
            name = info.orig_filename
            is_folder = name.endswith("/")
            path = name.removesuffix("/")
            parents = _parents(path) if len(path) < MAX_DEPTH * (MAX_NAME_BYTES + 1) else []
            problem = _path_problem(path) or _kind_problem(info, is_folder=is_folder)
            if not problem and not is_folder:
                problem = zips.entry_problem(info, MAX_ENTRY_BYTES)
                if not problem and total + info.file_size > MAX_TOTAL_BYTES:
                    problem = f"does not fit: the archive has more than {MAX_TOTAL_BYTES} bytes uncompressed"
            if not problem and (path in files or (path in folders and not is_folder)):
                problem = "has the same path as another entry; the first one is used"
            if not problem and any(parent in files for parent in parents):
                problem = "is in a folder that has the same path as a file"
            if problem:
                self.problems.append(ArchiveProblem(name[:1_000], f"{name!r:.120} {problem}"))
                continue
            if is_folder and path in folders:
                continue
            (folders if is_folder else files).add(path)
            folders.update(parents)
            total += info.file_size
            self.entries.append(ArchiveEntry(path, info.file_size, is_folder, number))


def list_archive(file: BinaryIO | bytes, name: str = "the archive") -> Archive:
    """Return the entries of a zip archive that can be stored, and a problem for each of the others.

    The file must be seekable; it is read as entries are read, never whole. Raises `DocumentError` if it is no zip
    archive, is damaged, or has too many entries.
    """
    opened = io.BytesIO(file) if isinstance(file, bytes) else file
    try:
        return Archive(zips.open_zip(opened, zips.MAX_ENTRIES, zips.MAX_DIRECTORY_BYTES))
    except UnreadableError as error:
        raise DocumentError(name, str(error)) from None


def _path_problem(path: str) -> str:
    names = path.split("/")
    if path.startswith("/") or "\\" in path or path[1:2] == ":":
        return "has an absolute path or a path of another system; only relative paths with / are stored"
    if not {"", ".", ".."}.isdisjoint(names):
        return "has '..', '.' or an empty name in its path, so it may leave its folder"
    if len(names) > MAX_DEPTH:
        return f"is in {len(names) - 1} folders, more than {MAX_DEPTH - 1}"
    if any(len(each.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES for each in names):
        return f"has a name of more than {MAX_NAME_BYTES} bytes"
    if _CONTROLS.search(path):
        return "has control characters in its path"
    return ""


def _kind_problem(info: zipfile.ZipInfo, *, is_folder: bool) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    problem = _KINDS.get(kind, "")
    return f"{problem}; only files and folders are stored" if problem and not is_folder else ""


def _parents(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, min(len(names), MAX_DEPTH))]
