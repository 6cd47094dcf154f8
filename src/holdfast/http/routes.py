"""Find the operation for a method and a path, using the table of operations."""

from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from holdfast.errors import InvalidArgumentError, MethodNotAllowedError, NotFoundError
from holdfast.ops.table import OPERATIONS, Operation, OperationEntry
from holdfast.ops.tree.packs import ListPackNodes
from holdfast.ops.tree.uploads import ReadBytes, StartUpload

Transfer = Literal["upload", "download", "export", "backup"]
PathPattern = tuple[bytes | None, ...]
"""The segments of a path, with None for those that hold fields."""


class Route(msgspec.Struct, frozen=True):
    cls: type[Operation[Any]]
    entry: OperationEntry
    name: str
    path_fields: tuple[tuple[int, str], ...]
    """The fields in the path: the number of the segment and the name of the field."""
    header_fields: tuple[tuple[bytes, str], ...]
    """The fields that a header may hold: the name of the header and of the field."""
    transfer: Transfer | None = None
    """How a file is sent or received as it is. The operation is one of those that do it."""


HEADER_FIELDS = (
    (b"idempotency-key", "idempotency_key"),
    (b"if-match", "expected_seq"),
    (b"if-match", "expected_version"),
    (b"last-event-id", "after"),
)


class TransferRoute(msgspec.Struct, frozen=True):
    """A route that transfers a file as it is, with operations of the table behind it."""

    name: str
    verb: str
    path: str
    transfer: Transfer
    cls: type[Operation[Any]]
    """The first operation that it calls. Its role and scope are those of the route."""


TRANSFER_ROUTES = (
    TransferRoute("UploadFile", "POST", "/api/v1/resources/temp_upload", "upload", StartUpload),
    TransferRoute("DownloadFile", "GET", "/api/v1/content/download", "download", ReadBytes),
    TransferRoute("ExportPack", "POST", "/api/v1/pack/export", "export", ListPackNodes),
    TransferRoute("BackUpPack", "POST", "/api/v1/pack/backup", "backup", ListPackNodes),
)


class Routes:
    """All routes, in dictionaries by path pattern. A lookup is faster than matching many patterns in turn."""

    def __init__(self) -> None:
        self._routes: dict[PathPattern, dict[str, Route]] = {}
        """The routes of each pattern, by HTTP method."""
        self._field_positions: dict[int, list[tuple[int, ...]]] = {}
        """The positions of fields to try, by the number of segments. Patterns with fewer fields come first."""
        for cls, entry in OPERATIONS.items():
            segments = entry.path.split("/")[1:]
            path_fields = tuple((index, part[1:-1]) for index, part in enumerate(segments) if part.startswith("{"))
            fields = set(cls.__struct_fields__) - (set() if entry.stream else {"after"})
            headers = tuple((header, name) for header, name in HEADER_FIELDS if name in fields)
            self._add(Route(cls, entry, cls.__name__, path_fields, headers), entry.verb, entry.path)

        for each in TRANSFER_ROUTES:
            self._add(Route(each.cls, OPERATIONS[each.cls], each.name, (), (), each.transfer), each.verb, each.path)

    def _add(self, route: Route, verb: str, path: str) -> None:
        positions = tuple(index for index, _ in route.path_fields)
        segments = path.split("/")[1:]
        pattern = tuple(None if index in positions else part.encode() for index, part in enumerate(segments))
        self._routes.setdefault(pattern, {})[verb] = route
        known_positions = self._field_positions.setdefault(len(segments), [])
        if positions not in known_positions:
            known_positions.append(positions)
            known_positions.sort(key=len)

    def find(self, verb: str, raw_path: bytes) -> tuple[Route, dict[str, Any]]:
        """Return the route and the fields in the path. Raises an error if there is no such route."""
        segments = raw_path.split(b"/")[1:]  # a trailing slash adds an empty segment: an empty field
        for positions in self._field_positions.get(len(segments), ()):
            pattern: list[bytes | None] = [*segments]
            for index in positions:
                pattern[index] = None
            verbs = self._routes.get(tuple(pattern))
            if verbs is None:
                continue
            route = verbs.get(verb)
            if route is None:
                allowed = ", ".join(sorted(verbs))
                raise MethodNotAllowedError(f"{verb} is not allowed here; use {allowed}", allow=allowed)
            return route, {name: _decode(segments[index]) for index, name in route.path_fields}
        raise NotFoundError("route", raw_path.decode("ascii", "replace"))


def _decode(segment: bytes) -> str:
    if b"%" not in segment:
        return segment.decode("ascii", "replace")
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError("path", f"{segment!r} is not UTF-8; percent-encode it as UTF-8") from None
