"""Searching files and folders by a pattern of their paths."""

from collections.abc import Iterator

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.streams import response_bytes
from holdfast.engine.tree import listing, mounts
from holdfast.engine.tree.listing import STAT
from holdfast.engine.tree.mounts import Names
from holdfast.engine.tree.nodes import Node
from holdfast.engine.tree.patterns import globs
from holdfast.engine.tree.patterns.expressions import Expression, compile_expression
from holdfast.engine.tree.patterns.matches import MAX_VIEWS
from holdfast.engine.tree.patterns.walking import ANY_DEPTH, StoredPart, walk
from holdfast.engine.tree.stored_nodes import build_node
from holdfast.model.identity import Principal
from holdfast.model.tree.files import FileEntry
from holdfast.model.tree.patterns import GlobResult
from holdfast.model.uris import SCHEME, parse_uri
from holdfast.ops.tree.patterns import Glob
from holdfast.store.database import Tx
from holdfast.store.tables.tree import nodes

PAGE_PATHS = 5_000

Checked = tuple[Names, str, Expression | None]
"""The folder to search, its address, and the pattern; None for the folder itself."""


def _glob(tx: Tx, principal: Principal, op: Glob, checked: Checked, context: CallContext) -> GlobResult:
    names, uri, expression = checked
    is_absolute = op.pattern.startswith(SCHEME)
    node = mounts.find(tx, principal, names) if is_absolute else mounts.require(tx, principal, uri, names)
    if node is None:
        return GlobResult(matches=[], count=0)
    if expression is not None and not is_absolute:
        node = mounts.require_folder(tx, principal, uri, names)
    search = _Search(tx, op, node.uri, expression)
    matches: list[str | FileEntry] = []
    size, max_bytes = 0, response_bytes(context)
    for found in [node] if expression is None else search.run(walk(tx, principal, names, node, ANY_DEPTH)):
        match = search.as_match(found)
        size += 3 * len(match) if isinstance(match, str) else listing.entry_bytes(match)
        if len(matches) == op.node_limit or (matches and size > max_bytes):
            return GlobResult(matches=matches, count=len(matches), truncated=True)
        matches.append(match)
    return GlobResult(matches=matches, count=len(matches), truncated=search.is_truncated)


class _Search:
    def __init__(self, tx: Tx, op: Glob, uri: str, expression: Expression | None) -> None:
        self.is_truncated = False
        self._tx = tx
        self._base = uri if uri == SCHEME else f"{uri}/"
        self._expression = expression
        self._tags = frozenset([op.tags] if isinstance(op.tags, str) else op.tags or ())
        self._has_entries = bool(op.extra_fields) or op.include_tags
        self._finds_hidden = any(segment.startswith(".") for segment in op.pattern.split("/"))

    def as_match(self, found: Node | str) -> str | FileEntry:
        if isinstance(found, str):
            return found
        return listing.entry(found, found.uri.removeprefix(self._base), STAT) if self._has_entries else found.uri

    def run(self, parts: Iterator[StoredPart | Node]) -> Iterator[Node | str]:
        """Yield what matches: nodes if more than their addresses is needed."""
        views = 0
        for part in parts:
            if isinstance(part, StoredPart):
                yield from self._run_stored(part)
                continue
            views += 1
            if views > MAX_VIEWS:
                self.is_truncated = True
                return
            if part.uri.startswith(self._base) and self._tags.issubset(part.tags):
                yield from (part for _ in self._matching([part.uri.removeprefix(self._base)]))

    def _run_stored(self, part: StoredPart) -> Iterator[Node | str]:
        top = f"{part.mount_uri}/"
        is_below = top.startswith(self._base)  # the searched folder is above the root, or its top
        head, cut = (top.removeprefix(self._base), 0) if is_below else ("", len(self._base) - len(top))
        if head and not self._tags:
            yield from (part.folder for _ in self._matching([head.removesuffix("/")]))
        after = ""
        while page := nodes.paths(self._tx, part.root, part.path, after, PAGE_PATHS):
            after = page[-1]
            found = self._matching([f"{head}{path[cut:]}" for path in page] if head or cut else page)
            if self._has_entries or self._tags:
                yield from self._nodes(part, [each[len(head) :] for each in found], part.path[:cut])
            else:
                yield from (f"{self._base}{each}" for each in found)

    def _nodes(self, part: StoredPart, relative: list[str], folder: str) -> Iterator[Node]:
        paths = [f"{folder}/{each}" if folder else each for each in relative]
        for stored in nodes.find_many(self._tx, part.root, paths):
            node = build_node(self._tx, part.mount_uri, stored)
            if self._tags.issubset(node.tags):
                yield node

    def _matching(self, relative: list[str]) -> list[str]:
        """Return the paths that match. All are matched at once, each as a line of one text."""
        data = "\n".join(relative).encode()
        spans = self._expression.spans(data) if self._expression is not None else iter(())
        found = (data[span[0] : span[1]].decode() for span in spans if span is not None)
        return [path for path in found if self._finds_hidden or not (path.startswith(".") or "/." in path)]


def _check(_context: CallContext, op: Glob) -> Checked:
    if not op.pattern.startswith(SCHEME):
        return parse_uri(op.uri), op.uri, compile_expression(globs.translate(op.pattern))
    segments = op.pattern.removeprefix(SCHEME).split("/")
    first = next((number for number, segment in enumerate(segments) if globs.has_magic(segment)), len(segments))
    uri, rest = SCHEME + "/".join(segments[:first]), "/".join(segments[first:])
    return parse_uri(uri), uri, compile_expression(globs.translate(rest)) if rest else None


HANDLERS: dict[type, OperationHandler] = {Glob: OperationHandler(_glob, check=_check)}
