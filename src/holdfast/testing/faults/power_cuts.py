"""Failed syncs and power cuts: synced data survives, and any subset of the unsynced sectors may survive."""

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.testing.faults.disks import FaultSchedule
from holdfast.testing.faults.workload import AppendLog, Event

SECTOR = 512
PAGE = 8 * SECTOR
"""The operating system writes whole pages; a disk keeps or loses single sectors."""

_vfs_numbers = itertools.count(1)


class Created(msgspec.Struct, frozen=True):
    file: str


class Wrote(msgspec.Struct, frozen=True):
    file: str
    offset: int
    data: bytes


class Truncated(msgspec.Struct, frozen=True):
    file: str
    size: int


class Synced(msgspec.Struct, frozen=True):
    file: str


class SyncFailed(msgspec.Struct, frozen=True):
    """A failed sync. As on Linux, the unwritten data is marked as written afterwards."""

    file: str


class Deleted(msgspec.Struct, frozen=True):
    file: str
    synced: bool
    """Whether the folder was synced as well."""


Change = Wrote | Truncated
DiskEvent = Created | Wrote | Truncated | Synced | SyncFailed | Deleted


class RecordingDisk(apsw.VFS):
    """A VFS that records disk operations and the results of appends, in order.

    A database uses it by its `name`. `syncs` can make syncs fail.
    """

    def __init__(self) -> None:
        self.name = f"recording-{next(_vfs_numbers)}"
        self.history: list[DiskEvent | Event] = []
        self.syncs = FaultSchedule()
        super().__init__(self.name, "")

    def record(self, event: Event) -> None:
        """Add the result of an append to the history; a callback for `attempt`."""
        self.history.append(event)

    def append_log(self) -> AppendLog:
        """Return the log of all appends in the history."""
        append_log = AppendLog()
        for event in self.history:
            if isinstance(event, Event):
                append_log.record(event)
        return append_log

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - apsw's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is not None and self._is_new(Path(path), flags[0]):
            self.history.append(Created(Path(path).name))
        return _RecordingFile(self, name, path, flags)

    def _is_new(self, path: Path, flags: int) -> bool:
        """Whether this open creates the file, or is the first one of a database that the driver has created empty."""
        if not path.exists():
            return True
        is_database = bool(flags & apsw.SQLITE_OPEN_MAIN_DB)
        return is_database and path.stat().st_size == 0 and Created(path.name) not in self.history

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - apsw's name
        super().xDelete(filename, syncdir)
        self.history.append(Deleted(Path(filename).name, syncdir))


class _RecordingFile(apsw.VFSFile):
    def __init__(
        self, disk: RecordingDisk, name: str | apsw.URIFilename | None, path: str | None, flags: list[int]
    ) -> None:
        self._history = disk.history
        self._syncs = disk.syncs
        self._file = Path(path).name if path is not None else ""
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - apsw's name
        self._history.append(Wrote(self._file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - apsw's name
        self._history.append(Truncated(self._file, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        if self._syncs.should_fail():
            self._history.append(SyncFailed(self._file))
            error: Any = apsw.IOError("the sync failed")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)
        self._history.append(Synced(self._file))


class _FileState:
    """A file from its creation to its deletion: its synced content and the changes since the last sync."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.cached = bytearray()
        """The content in the page cache without `unsynced`. It equals `synced` unless a sync failed."""
        self.unsynced: list[Change] = []
        self.never_synced = True

    def sync(self) -> None:
        sectors = self.mark_written()
        for page in {sector * SECTOR // PAGE for sector in sectors}:
            _copy(self.cached, self.synced, page * PAGE, PAGE)
        del self.synced[len(self.cached) :]
        self.never_synced = False

    def mark_written(self) -> set[int]:
        """Treat all changes as written, without writing them. Return the changed sectors."""
        sectors = {sector for change in self.unsynced for sector in _apply(self.cached, change)}
        self.unsynced.clear()
        return sectors

    def after_power_cut(self, rng: random.Random) -> bytes:
        """Return a possible content: each sector, and the length, as after a random number of the unsynced changes."""
        survivors = rng.choice(("no changes", "all changes", "any changes", "any changes"))
        min_count = len(self.unsynced) if survivors == "all changes" else 0
        max_count = 0 if survivors == "no changes" else len(self.unsynced)
        last_changes: dict[int, int] = {}
        current, content, sizes = self.cached.copy(), self.synced.copy(), [len(self.synced)]
        for count, change in enumerate(self.unsynced, 1):
            for sector in _apply(current, change):
                if count <= last_changes.setdefault(sector, rng.randint(min_count, max_count)):
                    _copy(current, content, sector * SECTOR, SECTOR)
            sizes.append(len(current))
        size = sizes[rng.randint(min_count, max_count)]
        return bytes(content[:size].ljust(size, b"\0"))


def simulate_power_cut(history: Iterable[DiskEvent | Event], folder: Path, rng: random.Random) -> AppendLog:
    """Write to `folder` what the disk may contain after `history`. Return the log of the appends in it."""
    append_log = AppendLog()
    # The files that a name may refer to after the cut. Until the folder is synced, earlier files are possible too.
    files: dict[str, list[_FileState | None]] = {}
    for event in history:
        match event:
            case Created(file):
                files.setdefault(file, [None]).append(_FileState())
            case Wrote(file) | Truncated(file):
                _current(files, file).unsynced.append(event)
            case Synced(file):
                state = _current(files, file)
                # SQLite syncs the folder together with the first sync of a journal.
                for name in files if state.never_synced and file.endswith(("-journal", "-wal")) else [file]:
                    files[name] = files[name][-1:]
                state.sync()
            case SyncFailed(file):
                _current(files, file).mark_written()
            case Deleted(file, synced):
                files[file] = [None] if synced else [*files[file], None]
            case _:
                append_log.record(event)
    folder.mkdir()
    for file, states in files.items():
        survivor = rng.choice(states)
        if survivor is not None:
            (folder / file).write_bytes(survivor.after_power_cut(rng))
    return append_log


def _current(files: dict[str, list[_FileState | None]], file: str) -> _FileState:
    state = files[file][-1]
    assert state is not None, f"{file} is used although it was deleted"
    return state


def _apply(image: bytearray, change: Change) -> range:
    """Apply the change to the image and return the changed sectors."""
    before = len(image)
    match change:
        case Wrote(_, offset, data):
            image.extend(bytes(max(0, offset - before)))
            image[offset : offset + len(data)] = data
            return range(min(offset, before) // SECTOR, -(-(offset + len(data)) // SECTOR))
        case Truncated(_, size):
            del image[size:]
            image.extend(bytes(max(0, size - before)))
            return range(min(size, before) // SECTOR, -(-max(size, before) // SECTOR))


def _copy(source: bytearray, destination: bytearray, start: int, size: int) -> None:
    end = start + size
    destination.extend(bytes(max(0, end - len(destination))))
    destination[start:end] = source[start:end].ljust(size, b"\0")
