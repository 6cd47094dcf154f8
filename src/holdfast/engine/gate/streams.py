"""Results that are too large to be held at once: a server reads and sends them page by page."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.store import read_memory
from holdfast.store.database import Tx

T = TypeVar("T")
NO_LIMIT = read_memory.NO_LIMIT


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some items of a list, or some texts of a string, and how to read those that follow."""

    items: list[T]
    read_next: "Callable[[Tx], Page[T]] | None" = None
    """Reads the next page, in another transaction. None after the last page.

    The pages must not change in between: they are parts of a log, to which others can only append.
    """
    ending: dict[str, Any] = {}
    """In the last page: fields of the result that are known only then, such as a cursor."""


class StreamedResult(msgspec.Struct, frozen=True):
    """A result of which one field, or the whole, continues in further pages."""

    result: Any
    """The result with an empty list in place of `field`; the empty list or string itself if it is the whole."""
    field: str | None
    first: Page[Any]


def response_bytes(context: CallContext) -> int:
    """Return how many bytes a result with a cursor may have. Only a server limits them: its clients read the rest."""
    return context.settings.max_response_bytes if read_memory.is_limited() else NO_LIMIT


def as_result(result: Any, field: str | None, page: Page[Any]) -> Any:
    """Return the result with the items of a page. If other pages follow, it is a `StreamedResult`."""
    if page.read_next is not None:
        return StreamedResult(result, field, page)
    whole = "".join(page.items) if isinstance(result, str) else page.items
    return whole if field is None else msgspec.structs.replace(result, **{field: whole}, **page.ending)
