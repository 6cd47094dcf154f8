"""Client methods for the `viking://` file tree."""

from typing import Literal

from holdfast.client.sync.transport import Transport
from holdfast.model.files import FileEntry, FileList
from holdfast.ops.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile


class Files:
    """Read-only access to the tree of files and folders."""

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
        """List a folder, or with `recursive` everything below it.

        - `simple`: return URIs instead of entries.
        - `output`: `agent` adds the abstracts of folders, each up to `abs_limit` characters.
        - `show_all_hidden`: include names that begin with a dot.
        - `node_limit`, `limit`: the smaller of the two is the maximum number of entries, counted from `offset`.

        `has_more` of the result is true if there are more entries.
        """
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
        """List everything below a folder, `level_limit` levels deep, each folder followed by its content.

        The other parameters are those of `ls`.
        """
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
        """Return the entry of a file or folder."""
        return self._transport.call(StatFile(uri=uri))

    def read(
        self, uri: str, offset: int = 0, limit: int = -1, *, char_offset: int = 0, char_limit: int | None = None
    ) -> str:
        """Return `limit` lines of a file from line `offset`, counted from 0. A `limit` of -1 returns all lines.

        With `char_limit`, return only that many characters of these lines, from `char_offset` on.
        """
        return self._transport.call(
            ReadFile(uri=uri, offset=offset, limit=limit, char_offset=char_offset, char_limit=char_limit)
        )

    def abstract(self, uri: str) -> str:
        """Return the one-line summary of a session or an archive. It exists once an archive is done."""
        return self._transport.call(ReadAbstract(uri=uri))

    def overview(self, uri: str) -> str:
        """Return the full summary of an archive, or of all finished archives of a session."""
        return self._transport.call(ReadOverview(uri=uri))
