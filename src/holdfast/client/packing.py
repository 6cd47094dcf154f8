"""Folders and texts as files that can be uploaded. The same folder always gives the same bytes."""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from holdfast.engine.resources.folders import list_folder, read_file
from holdfast.engine.resources.selection import FileSelection
from holdfast.errors import InvalidArgumentError
from holdfast.model.tree.resources import FileProblem

EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)
"""All files have this time, so that a new time alone does not make another archive."""
FILE_MODE = 0o100644
FASTEST = 1
MAX_DEFLATED_BYTES = 4 << 20
"""Larger files are packed as they are: a server could take a very repetitive one for a zip bomb."""


class PackedFile(NamedTuple):
    """A file to upload."""

    path: Path
    name: str
    """The name of the upload."""
    problems: list[FileProblem]
    """Files of the folder that were left out."""
    source_name: str
    """The name of what is added."""


@contextmanager
def packed_folder(folder: Path, selection: FileSelection) -> Iterator[PackedFile]:
    """Write the files of a folder to a temporary zip archive, which exists until the context ends."""
    contents = list_folder(folder, selection)
    problems = list(contents.problems)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as temporary:
        target = Path(temporary, "folder.zip")
        packed = 0
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=FASTEST) as archive:
            for file in contents.files:
                try:
                    chunks = read_file(file)
                    first = next(chunks, b"")
                except OSError as error:
                    problems.append(FileProblem(file=file.path, message=f"cannot be read: {error.strerror}"))
                    continue
                info = zipfile.ZipInfo(file.path, EARLIEST_TIME)
                info.external_attr = FILE_MODE << 16
                is_large = file.size > MAX_DEFLATED_BYTES
                info.compress_type = zipfile.ZIP_STORED if is_large else zipfile.ZIP_DEFLATED
                with archive.open(info, "w") as entry:
                    entry.write(first)
                    for chunk in chunks:
                        entry.write(chunk)
                packed += 1
        if not packed:
            first_problem = f": {problems[0].file} {problems[0].message}" if problems else ""
            raise InvalidArgumentError("source", f"{str(folder)!r} has no files to add{first_problem}")
        yield PackedFile(target, f"{folder.name or 'folder'}.zip", problems, folder.name or "folder")


@contextmanager
def written_bytes(data: bytes, name: str) -> Iterator[PackedFile]:
    """Write bytes to a temporary file, which exists until the context ends."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as temporary:
        target = Path(temporary, "text")
        target.write_bytes(data)
        yield PackedFile(target, name, [], name)


@contextmanager
def existing_file(path: Path) -> Iterator[PackedFile]:
    yield PackedFile(path, path.name, [], path.name)
