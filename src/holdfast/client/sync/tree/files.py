"""Client methods for the `viking://` file tree."""

from collections.abc import Sequence
from typing import Literal

from holdfast.client.sync.transport import Transport
from holdfast.model.tree.files import FileEntry, FileList, SortKey
from holdfast.ops.tree.files import ListFiles, ReadAbstract, ReadFile, ReadOverview, ShowTree, StatFile


class Files:
    """Listing and reading the tree of files and folders."""

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
        sort_by: SortKey | None = None,
        sort_order: Literal["asc", "desc"] = "asc",
        include_abstract: bool = False,
        include_overview: bool = False,
        tags: str | Sequence[str] | None = None,
    ) -> FileList:
        """List a folder, or with `recursive` everything below it.

        - `simple`: return URIs instead of entries.
        - `output`: `agent` adds the abstracts of folders, each up to `abs_limit` characters.
        - `include_abstract`, `include_overview`: add the summaries of files, too.
        - `show_all_hidden`: include names that begin with a dot.
        - `sort_by`: `name` or `mtime`; `sort_order` is `asc` or `desc`.
        - `tags`: list only entries that have all of them.
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
                sort_by=sort_by,
                sort_order=sort_order,
                include_abstract=include_abstract,
                include_overview=include_overview,
                tags=tags if tags is None or isinstance(tags, str) else list(tags),
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
        directories_only: bool = False,
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
                directories_only=directories_only,
            )
        )
        return FileList(page.entries, has_more=page.has_more)

    def stat(self, uri: str) -> FileEntry:
        """Return the entry of a file or folder."""
        return self._transport.call(StatFile(uri=uri))

    def read(
        self,
        uri: str,
        offset: int = 0,
        limit: int = -1,
        *,
        char_offset: int = 0,
        char_limit: int | None = None,
        version: int | None = None,
    ) -> str:
        """Return `limit` lines of a file from line `offset`, counted from 0. A `limit` of -1 returns all lines.

        With `char_limit`, return only that many characters of these lines, from `char_offset` on. `version` reads an
        earlier version of a stored file. An address that ends in `#12` reads part 12 of a file.
        """
        return self._transport.call(
            ReadFile(
                uri=uri, offset=offset, limit=limit, char_offset=char_offset, char_limit=char_limit, version=version
            )
        )

    def abstract(self, uri: str) -> str:
        """Return the one-line summary of a file or a folder."""
        return self._transport.call(ReadAbstract(uri=uri))

    def overview(self, uri: str) -> str:
        """Return the overview of a file or a folder: for a session, that of all its finished archives."""
        return self._transport.call(ReadOverview(uri=uri))
