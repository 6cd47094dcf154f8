"""Failed syncs and power cuts: what was synced is there, and of what was written since any part, by sectors."""

import itertools
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.testing.faults.disks import Trouble
from holdfast.testing.faults.workload import Event, Ledger

SECTOR = 512
PAGE = 8 * SECTOR
"""The system writes out whole pages; a disk keeps or loses single sectors."""

_numbers = itertools.count(1)


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


class Dropped(msgspec.Struct, frozen=True):
    """A sync failed. As Linux does, take what it should have written for written from then on."""

    file: str


class Deleted(msgspec.Struct, frozen=True):
    file: str
    synced: bool
    """Whether the folder was synced with it."""


Change = Wrote | Truncated
DiskEvent = Created | Wrote | Truncated | Synced | Dropped | Deleted


class RecordingDisk(apsw.VFS):
    """A disk layer that keeps a history: what the disk was told, and between it what the callers were told.

    A database uses it by its `name`. Its syncs may be made to fail.
    """

    def __init__(self) -> None:
        self.name = f"recording-{next(_numbers)}"
        self.history: list[DiskEvent | Event] = []
        self.syncs = Trouble()
        super().__init__(self.name, "")

    def note(self, event: Event) -> None:
        """For `attempt`: what a caller was told takes its place in the history."""
        self.history.append(event)

    def ledger(self) -> Ledger:
        """What the callers were told, all in all."""
        ledger = Ledger()
        for event in self.history:
            if isinstance(event, Event):
                ledger.note(event)
        return ledger

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - apsw's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is not None and not Path(path).exists():
            self.history.append(Created(Path(path).name))
        return _RecordingFile(self, name, path, flags)

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
        if self._syncs.strikes():
            self._history.append(Dropped(self._file))
            error: Any = apsw.IOError("the sync failed")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)
        self._history.append(Synced(self._file))


class _Life:
    """A file from its creation to its deletion: what is on the disk for certain, and what was changed since."""

    def __init__(self) -> None:
        self.base = bytearray()
        self.seen = bytearray()
        """What programs read, but for the changes: the same, unless a sync failed."""
        self.changes: list[Change] = []
        self.new = True

    def sync(self) -> None:
        sectors = self.drop()
        for page in {sector * SECTOR // PAGE for sector in sectors}:
            _copy(self.seen, self.base, page * PAGE, PAGE)
        del self.base[len(self.seen) :]
        self.new = False

    def drop(self) -> set[int]:
        """Forget that anything has yet to be written; the sectors that would have been."""
        sectors = {sector for change in self.changes for sector in _apply(self.seen, change)}
        self.changes.clear()
        return sectors

    def torn(self, draw: random.Random) -> bytes:
        """What a cut may leave: each sector as it was at some moment since the sync, and the length likewise."""
        reach = draw.choice(("nothing", "everything", "anything", "anything"))
        least = len(self.changes) if reach == "everything" else 0
        most = 0 if reach == "nothing" else len(self.changes)
        moments: dict[int, int] = {}
        now, left, sizes = self.seen.copy(), self.base.copy(), [len(self.base)]
        for count, change in enumerate(self.changes, 1):
            for sector in _apply(now, change):
                if count <= moments.setdefault(sector, draw.randint(least, most)):
                    _copy(now, left, sector * SECTOR, SECTOR)
            sizes.append(len(now))
        size = sizes[draw.randint(least, most)]
        return bytes(left[:size].ljust(size, b"\0"))


def cut(history: Iterable[DiskEvent | Event], folder: Path, draw: random.Random) -> Ledger:
    """Lay out in `folder` what the disk may hold after `history`; what the callers had been told by then."""
    ledger = Ledger()
    # What a name may stand for after the cut: until the folder is synced, also what it stood for before.
    files: dict[str, list[_Life | None]] = {}
    for event in history:
        match event:
            case Created(file):
                files.setdefault(file, [None]).append(_Life())
            case Wrote(file) | Truncated(file):
                _present(files, file).changes.append(event)
            case Synced(file):
                life = _present(files, file)
                # SQLite syncs the folder together with the first sync of a journal.
                for name in files if life.new and file.endswith(("-journal", "-wal")) else [file]:
                    files[name] = files[name][-1:]
                life.sync()
            case Dropped(file):
                _present(files, file).drop()
            case Deleted(file, synced):
                files[file] = [None] if synced else [*files[file], None]
            case _:
                ledger.note(event)
    folder.mkdir()
    for file, lives in files.items():
        left = draw.choice(lives)
        if left is not None:
            (folder / file).write_bytes(left.torn(draw))
    return ledger


def _present(files: dict[str, list[_Life | None]], file: str) -> _Life:
    life = files[file][-1]
    assert life is not None, f"{file} is used although it was deleted"
    return life


def _apply(image: bytearray, change: Change) -> range:
    """Change the image; the sectors that were touched."""
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
