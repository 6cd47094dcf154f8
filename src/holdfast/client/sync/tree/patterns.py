"""Client methods that search the tree by patterns, and for tags and relations."""

from collections.abc import Sequence

from holdfast.client.sync.transport import Transport
from holdfast.model.tree.attributes import Attributes, Linked, Relation, TagMode, TagsSet, Unlinked
from holdfast.model.tree.patterns import GlobResult, GrepResult
from holdfast.ops.tree.attributes import LinkFiles, ListRelations, ReadAttributes, SetTags, UnlinkFiles
from holdfast.ops.tree.patterns import Glob, Grep


class Patterns:
    """Searching lines and names by patterns; tags and relations of files."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def grep(
        self,
        uri: str,
        pattern: str,
        *,
        case_insensitive: bool = False,
        node_limit: int = 256,
        level_limit: int = 10,
        exclude_uri: str | None = None,
        before_context: int = 0,
        after_context: int = 0,
        tags: str | Sequence[str] | None = None,
        include_tags: bool = False,
    ) -> GrepResult:
        """Find the lines that match a regular expression in a file, or in all files below a folder or session.

        - `pattern`: without look-around and backreferences; `^` and `$` match at each line.
        - `node_limit`: the maximum number of matches. `truncated` of the result says that there may be more.
        - `level_limit`: how many levels of folders to search.
        - `exclude_uri`: leave out what is at this address and below it.
        - `before_context`, `after_context`: how many lines around each match to return.
        - `tags`: search only files that have all of them.
        """
        return self._transport.call(
            Grep(
                uri=uri,
                pattern=pattern,
                case_insensitive=case_insensitive,
                node_limit=node_limit,
                level_limit=level_limit,
                exclude_uri=exclude_uri,
                before_context=before_context,
                after_context=after_context,
                tags=tags if tags is None or isinstance(tags, str) else list(tags),
                include_tags=include_tags,
            )
        )

    def glob(
        self,
        pattern: str,
        uri: str = "viking://",
        *,
        node_limit: int = 256,
        extra_fields: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        include_tags: bool = False,
    ) -> GlobResult:
        """Find files and folders by a pattern of their paths below a folder, such as `**/*.md`.

        `*` and `?` match in a name, `**` any number of folders; `[a-z]` is one character and `{a,b}` one of two texts.
        With `extra_fields` or `include_tags`, the matches are entries instead of addresses.
        """
        return self._transport.call(
            Glob(
                pattern=pattern,
                uri=uri,
                node_limit=node_limit,
                extra_fields=extra_fields
                if extra_fields is None or isinstance(extra_fields, str)
                else list(extra_fields),
                tags=tags if tags is None or isinstance(tags, str) else list(tags),
                include_tags=include_tags,
            )
        )

    def attributes(self, uri: str) -> Attributes:
        """Return the tags of a file or a folder."""
        return self._transport.call(ReadAttributes(uri=uri))

    def set_tags(
        self, uri: str, tags: str | Sequence[str] = (), *, mode: TagMode = "replace", recursive: bool = False
    ) -> TagsSet:
        """Set the tags of a file or a folder: words, or `key=value`.

        - `mode`: `replace` them, `append` to them, or `clear` them.
        - `recursive`: also set the tags of everything below a folder.
        """
        given = tags if isinstance(tags, str) else list(tags)
        return self._transport.call(SetTags(uri=uri, tags=given, mode=mode, recursive=recursive))

    def relations(self, uri: str) -> list[Relation]:
        """List the relations of a file, a folder or a session to others that exist."""
        return self._transport.call(ListRelations(uri=uri))

    def link(self, from_uri: str, to_uris: str | Sequence[str], *, reason: str = "") -> Linked:
        """Relate an address to others. A relation that exists gets the new reason."""
        given = to_uris if isinstance(to_uris, str) else list(to_uris)
        return self._transport.call(LinkFiles(from_uri=from_uri, to_uris=given, reason=reason))

    def unlink(self, from_uri: str, to_uri: str) -> Unlinked:
        """Remove the relation of an address to another one."""
        return self._transport.call(UnlinkFiles(from_uri=from_uri, to_uri=to_uri))
