"""The JSON of a result that is read page by page."""

from typing import Any

import msgspec

from holdfast.engine.gate.call import PreparedCall
from holdfast.engine.gate.streams import Page, StreamedResult

NO_ITEMS: Page[Any] = Page([])
_encode = msgspec.json.Encoder().encode


class EncodedStream:
    """Encodes one page at a time: the beginning with the first page, the other pages, and the end."""

    def __init__(self, call: PreparedCall[Any], streamed: StreamedResult) -> None:
        self._call = call
        self._page: Page[Any] = streamed.first
        """The latest page, without its items: while a client receives them, only their JSON is held."""
        self._is_text = isinstance(streamed.result, str)
        self._has_items = False
        self._streamed = msgspec.structs.replace(streamed, first=NO_ITEMS)
        self._beginning = self._encode_beginning()

    @property
    def has_more(self) -> bool:
        return self._page.read_next is not None

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        return len(self._beginning)

    def take_beginning(self) -> bytes:
        """Return the beginning with the first page. It is not held any longer."""
        beginning, self._beginning = self._beginning, b""
        return beginning

    def _encode_beginning(self) -> bytes:
        result, field = self._streamed.result, self._streamed.field
        names = [] if field is None else list(type(result).__struct_fields__)
        before = [self._encode_field(name) for name in names[: names.index(field)]] if field is not None else []
        opening = b'"' if self._is_text else b"["
        if field is not None:
            opening = b"{%b%b:%b" % (b"".join([each + b"," for each in before]), self._encode_name(field), opening)
        return opening + self._encode_items()

    def read_next(self, max_bytes: int) -> bytes:
        """Read and encode the next page. Call it in a thread."""
        self._page = self._call.read_next(self._page, max_bytes)
        return self._encode_items()

    def encode_end(self) -> bytes:
        closing = b'"' if self._is_text else b"]"
        field = self._streamed.field
        if field is None:
            return closing
        names = list(type(self._streamed.result).__struct_fields__)
        after = [self._encode_field(name) for name in names[names.index(field) + 1 :]]
        return closing + b"".join([b"," + each for each in after]) + b"}"

    def _encode_items(self) -> bytes:
        items, self._page = self._page.items, msgspec.structs.replace(self._page, items=[])
        if self._is_text:
            return _encode("".join(items))[1:-1]
        if not items:
            return b""
        separator = b"," if self._has_items else b""
        self._has_items = True
        return separator + _encode(items)[1:-1]

    def _encode_field(self, name: str) -> bytes:
        """Encode a field other than the paged one. Some fields are known only with the last page."""
        ending = self._page.ending
        value = ending[name] if name in ending else getattr(self._streamed.result, name)
        return b"%b:%b" % (self._encode_name(name), _encode(value))

    def _encode_name(self, name: str) -> bytes:
        cls = type(self._streamed.result)
        return _encode(cls.__struct_encode_fields__[cls.__struct_fields__.index(name)])
