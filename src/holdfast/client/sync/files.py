"""The client's side of the `viking://` tree. `afiles.py` is its asynchronous twin."""

from typing import Literal

from holdfast.client.sync.transport import Transport
from holdfast.model.files import FileEntry, FileList
from holdfast.ops.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile


class Files:
    """Sessions as files and folders, to look at."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def ls(
        self,
        uri: str,
        *,
        simple: bool = False,
        recursive: bool = False,
        output: Literal["agent", "original"] = "original",
        abs_limit: int = 256,
        show_all_hidden: bool = False,
        node_limit: int = 1_000,
        offset: int = 0,
        limit: int | None = None,
    ) -> FileList:
        """What is in a folder; `recursive`, all that is below it. The list's `has_more` tells if that was not all."""
        page = self._transport.call(
            ListFiles(
                uri=uri,
                simple=simple,
                recursive=recursive,
                output=output,
                abs_limit=abs_limit,
                show_all_hidden=show_all_hidden,
                node_limit=node_limit,
                offset=offset,
                limit=limit,
            )
        )
        return FileList(page.entries, has_more=page.has_more)

    def tree(
        self,
        uri: str,
        *,
        simple: bool = False,
        output: Literal["agent", "original"] = "original",
        abs_limit: int = 256,
        show_all_hidden: bool = False,
        node_limit: int = 1_000,
        level_limit: int = 3,
        offset: int = 0,
        limit: int | None = None,
    ) -> FileList:
        """What is below a folder, `level_limit` levels deep, each folder followed by what is in it."""
        page = self._transport.call(
            ShowTree(
                uri=uri,
                simple=simple,
                output=output,
                abs_limit=abs_limit,
                show_all_hidden=show_all_hidden,
                node_limit=node_limit,
                level_limit=level_limit,
                offset=offset,
                limit=limit,
            )
        )
        return FileList(page.entries, has_more=page.has_more)

    def stat(self, uri: str) -> FileEntry:
        return self._transport.call(StatFile(uri=uri))

    def read(self, uri: str, offset: int = 0, limit: int = -1) -> str:
        """Lines of a file: `limit` of them, or all if that is -1, from the one numbered `offset` on."""
        return self._transport.call(ReadFile(uri=uri, offset=offset, limit=limit))

    def abstract(self, uri: str) -> str:
        """One line about a session or an archive, once it was summarised."""
        return self._transport.call(ReadAbstract(uri=uri))

    def overview(self, uri: str) -> str:
        """What an archive is about; of a session, what all its finished archives are about."""
        return self._transport.call(ReadOverview(uri=uri))
