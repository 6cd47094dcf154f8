"""Client methods that change stored files and folders."""

from collections.abc import Sequence
from typing import Any, Literal

from holdfast.client.sync.transport import Transport
from holdfast.model.tree.file_changes import (
    BatchWritten,
    FileCopied,
    FileMoved,
    FileRemoved,
    FileRestored,
    FileWritten,
    FolderMade,
    History,
)
from holdfast.model.tree.reindexing import Reindexed
from holdfast.ops.tree.file_changes import (
    BatchOperation,
    CopyFile,
    MakeFolder,
    MoveFile,
    ReadHistory,
    RemoveFile,
    RestoreFile,
    WriteFile,
    WriteFiles,
)
from holdfast.ops.tree.reindexing import ReindexFiles


class FileChanges:
    """Writing, moving, removing and restoring files and folders."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def write(
        self,
        uri: str,
        content: str,
        *,
        mode: Literal["replace", "append", "create"] = "replace",
        expected_version: int | None = None,
        tags: Sequence[str] | None = None,
        wait: bool = False,
    ) -> FileWritten:
        """Write a text file. Missing folders are made, and every write is a version.

        - `mode`: `replace` writes the file, new or not; `append` adds to its end; `create` fails if it exists.
        - `expected_version`: write only if this is the current version; 0 if there must be no such file.
        - `wait`: return when the file can be searched.
        """
        return self._transport.call(
            WriteFile(
                uri=uri,
                content=content,
                mode=mode,
                expected_version=expected_version,
                tags=None if tags is None else list(tags),
                wait=wait,
            )
        )

    def batch_write(
        self,
        root_uri: str,
        operations: Sequence[BatchOperation | dict[str, Any]],
        *,
        skip_conflicts: bool = False,
        wait: bool = False,
    ) -> BatchWritten:
        """Write up to 100 text files below the folder `root_uri`, which exists: all of them, or none.

        - `operations`: each has a `uri` and `content`, and may have a `mode` and the `expected_sha256` of the file.
        - `skip_conflicts`: leave out files with another hash, and files that exist although the mode is `create`.
        - `wait`: return when the files can be searched.
        """
        given: list[Any] = list(operations)
        return self._transport.call(
            WriteFiles(root_uri=root_uri, operations=given, skip_conflicts=skip_conflicts, wait=wait)
        )

    def mkdir(self, uri: str, *, description: str = "") -> FolderMade:
        """Make a folder, and the folders above it. One that exists stays as it is."""
        return self._transport.call(MakeFolder(uri=uri, description=description))

    def mv(self, from_uri: str, to_uri: str) -> FileMoved:
        """Move or rename a file or a folder, with its history. An existing file at the new address is replaced."""
        return self._transport.call(MoveFile(from_uri=from_uri, to_uri=to_uri))

    def cp(self, from_uri: str, to_uri: str, *, recursive: bool = False) -> FileCopied:
        """Copy a file, or with `recursive` a folder. The copy begins with one version."""
        return self._transport.call(CopyFile(from_uri=from_uri, to_uri=to_uri, recursive=recursive))

    def rm(self, uri: str, *, recursive: bool = False) -> FileRemoved:
        """Remove a file, or with `recursive` a folder with its content. `restore` brings it back."""
        return self._transport.call(RemoveFile(uri=uri, recursive=recursive))

    def restore(self, uri: str, version: int | None = None) -> FileRestored:
        """Restore a version of a file as its newest one, or what was removed last at an address."""
        return self._transport.call(RestoreFile(uri=uri, version=version))

    def reindex(
        self,
        uri: str,
        *,
        mode: Literal["vectors_only", "semantic_and_vectors"] = "vectors_only",
        wait: bool = True,
        timeout: float | None = None,
    ) -> Reindexed:
        """Index a stored file again, or all files below a folder. `semantic_and_vectors` also parses them again."""
        return self._transport.call(ReindexFiles(uri=uri, mode=mode, wait=wait, timeout=timeout))

    def history(self, uri: str, *, limit: int = 100, before: int | None = None) -> History:
        """List the versions of a file, the newest first, also of one that was removed."""
        return self._transport.call(ReadHistory(uri=uri, limit=limit, before=before))
