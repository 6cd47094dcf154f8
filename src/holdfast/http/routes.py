"""From a method and a path to an operation, by the table alone."""

from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from holdfast.errors import InvalidArgumentError, MethodNotAllowedError, NotFoundError
from holdfast.ops.table import OPERATIONS, Entry, Operation

Key = tuple[bytes | None, ...]
"""The segments of a path, with None for those that are fields."""


class Route(msgspec.Struct, frozen=True):
    cls: type[Operation[Any]]
    entry: Entry
    name: str
    names: tuple[tuple[int, str], ...]
    """Which segments are which fields."""
    header_fields: tuple[tuple[bytes, str], ...]
    """Headers that are fields."""


HEADER_FIELDS = ((b"idempotency-key", "idempotency_key"), (b"if-match", "expected_seq"), (b"last-event-id", "after"))


class Routes:
    """Found by looking up, not by trying one after the other: there are many, and most requests ask for one."""

    def __init__(self) -> None:
        self._found: dict[Key, dict[str, Route]] = {}
        self._shapes: dict[int, list[tuple[int, ...]]] = {}
        """For each number of segments, which of them may be fields; what is spelled out comes first."""
        for cls, entry in OPERATIONS.items():
            segments = entry.path.split("/")[1:]
            names = tuple((at, part[1:-1]) for at, part in enumerate(segments) if part.startswith("{"))
            shape = tuple(at for at, _ in names)
            key = tuple(None if at in shape else part.encode() for at, part in enumerate(segments))
            known = set(cls.__struct_fields__) - (set() if entry.stream else {"after"})
            headers = tuple((header, name) for header, name in HEADER_FIELDS if name in known)
            self._found.setdefault(key, {})[entry.verb] = Route(cls, entry, cls.__name__, names, headers)
            shapes = self._shapes.setdefault(len(segments), [])
            if shape not in shapes:
                shapes.append(shape)
                shapes.sort(key=len)

    def find(self, verb: str, raw_path: bytes) -> tuple[Route, dict[str, Any]]:
        """The route and the fields that the path holds, or an error as it goes to the caller."""
        segments = raw_path.split(b"/")[1:]  # an empty one at the end is an empty name, not another place
        for shape in self._shapes.get(len(segments), ()):
            key: list[bytes | None] = [*segments]
            for at in shape:
                key[at] = None
            verbs = self._found.get(tuple(key))
            if verbs is None:
                continue
            route = verbs.get(verb)
            if route is None:
                allowed = ", ".join(sorted(verbs))
                raise MethodNotAllowedError(f"{verb} is not possible here; use {allowed}", allow=allowed)
            return route, {name: _decoded(segments[at]) for at, name in route.names}
        raise NotFoundError("route", raw_path.decode("ascii", "replace"))


def _decoded(segment: bytes) -> str:
    if b"%" not in segment:
        return segment.decode("ascii", "replace")
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError("path", f"{segment!r} is not UTF-8; encode it properly") from None
