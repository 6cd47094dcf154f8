"""The files of a source: an upload, an archive, a page, a repository or a folder of the server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast import documents, lazy
from holdfast.engine.resources import folders, naming
from holdfast.engine.resources.adding import allowed_folders
from holdfast.engine.resources.blob_files import BlobFile
from holdfast.engine.resources.chunk_writing import store_bytes
from holdfast.engine.resources.selection import FileSelection, parse_selection
from holdfast.engine.tasks.claimed_task import NO_COST, ClaimedTask
from holdfast.errors import FailedPreconditionError, PermissionDeniedError
from holdfast.model.tree.resources import AddPayload, FileProblem

ZIP_SIGNATURE = b"PK"


class SourceFile(NamedTuple):
    path: str
    """The names from the top of the source on, with slashes between. Empty if the source is this file."""
    name: str
    size: int
    read: Callable[[], Iterator[bytes]]


class SourceFiles(NamedTuple):
    files: list[SourceFile]
    problems: list[FileProblem]
    digest: str
    """The hash of the whole source, if it is one file or archive. Otherwise empty."""
    is_single_file: bool = False


class FetchedFile(msgspec.Struct, frozen=True):
    """What a URL led to, stored as a blob."""

    name: str
    digest: str
    size: int


@contextmanager
def open_source(claimed: ClaimedTask, payload: AddPayload) -> Iterator[SourceFiles]:
    """Open the source of a resource. Its files can be read until the context ends."""
    source, options = payload.source, payload.options
    selection = parse_selection(options.include, options.exclude, options.ignore_dirs)
    match source.kind:
        case "upload":
            yield _uploaded(claimed, source.name, source.hash, source.size, selection, is_archive=source.is_archive)
        case "url":
            fetched = claimed.run_step("fetching", FetchedFile, lambda: (_fetch(claimed, payload), NO_COST))
            is_archive = fetched.name.lower().endswith(naming.ARCHIVE_SUFFIX)
            yield _uploaded(claimed, fetched.name, fetched.digest, fetched.size, selection, is_archive=is_archive)
        case "git":
            git = lazy.load("holdfast.engine.resources.fetching.git")
            with git.cloned(source.location, claimed.settings) as folder:
                yield _in_folder(Path(folder), selection)
        case "folder":
            yield _in_folder(_require_allowed(claimed, source.location), selection)


def _fetch(claimed: ClaimedTask, payload: AddPayload) -> FetchedFile:
    """Fetch a page to a temporary file, then store it. No transaction waits for the network."""
    web = lazy.load("holdfast.engine.resources.fetching.web")
    with web.fetched(payload.source.location, claimed.settings) as page:
        page.file.seek(0)
        digest = store_bytes(claimed, f"{claimed.task.task_id}_page", iter(lambda: page.file.read(1 << 20), b""))
        return FetchedFile(page.name, digest, page.size)


def _uploaded(
    claimed: ClaimedTask, name: str, digest: str, size: int, selection: FileSelection, *, is_archive: bool
) -> SourceFiles:
    blob = BlobFile(claimed.read, digest, size)
    if not is_archive:
        return SourceFiles([SourceFile("", name, size, blob.chunks)], [], digest, is_single_file=True)
    archive = documents.list_archive(blob, name)  # type: ignore[arg-type]  # it has what a file has
    files = [
        SourceFile(entry.path, entry.path.rpartition("/")[2], entry.size, lambda entry=entry: archive.read(entry))  # type: ignore[misc]
        for entry in archive.entries
        if not entry.is_folder and selection.accepts(entry.path)
    ]
    problems = [
        FileProblem(file=each.path, message=each.problem)
        for each in archive.problems
        if not selection.ignores_folder_of(each.path)
    ]
    return SourceFiles(files, problems, digest)


def _in_folder(folder: Path, selection: FileSelection) -> SourceFiles:
    contents = folders.list_folder(folder, selection)
    files = [
        SourceFile(file.path, file.path.rpartition("/")[2], file.size, lambda file=file: folders.read_file(file))  # type: ignore[misc]
        for file in contents.files
    ]
    return SourceFiles(files, contents.problems, "")


def _require_allowed(claimed: ClaimedTask, location: str) -> Path:
    """Return a folder that the operator allows, with all links resolved."""
    folder = Path(location).resolve()
    if not folder.is_dir():
        raise FailedPreconditionError(f"{location} is not a folder of the server; check the path")
    if not any(folder.is_relative_to(Path(each).resolve()) for each in allowed_folders(claimed.settings)):
        raise PermissionDeniedError(f"{location} is outside the folders in the setting resource_folders")
    return folder
