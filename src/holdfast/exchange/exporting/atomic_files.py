"""Files that are whole or not there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import UnavailableError


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Say it in our words if the disk refuses: it is full, say."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        raise UnavailableError(
            f"{str(folder)!r} cannot be written to: {said}; what was exported before is whole, export again to go on",
            service="disk",
            reason=said,
        ) from error


def aside(place: Path, why: str) -> Path:
    """The name that something has while it is not, or no longer, what its place says."""
    return place.with_name(f".{place.name}.{why}")


def is_aside(name: str) -> bool:
    return name.startswith(".") and name.endswith((".partial", ".old"))


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last; where folders cannot be opened the system does so itself."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top):
        sync_folder(Path(folder))


def write_whole(place: Path, content: bytes) -> None:
    """Write a file, or leave the one that is there."""
    partial = aside(place, "partial")
    with partial.open("wb") as file:
        file.write(content)
        sync(file)
    partial.replace(place)
    sync_folder(place.parent)


def put_in_place(made: Path, place: Path) -> None:
    """Give a folder that is whole its name; one that had it goes. In between neither has it, and no half ever does."""
    old = _set_aside(place) if place.exists() else None
    made.rename(place)
    sync_folder(place.parent)
    if old is not None:
        shutil.rmtree(old)


def remove(place: Path) -> None:
    """Remove a folder: first its name, so that no half of it is ever seen under it."""
    old = _set_aside(place)
    sync_folder(place.parent)
    shutil.rmtree(old)


def _set_aside(place: Path) -> Path:
    old = aside(place, "old")
    if old.exists():
        shutil.rmtree(old)
    return place.rename(old)
