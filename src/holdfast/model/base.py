"""The base of the data types, and the names that identify sessions, accounts, users and messages."""

import hashlib
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from holdfast.errors import InvalidArgumentError, short_repr

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}"
_NAME_HINT = "use 1 to 128 letters, digits or . _ : @ - and begin with a letter, a digit or _"

Name = Annotated[
    str,
    # `$` alone would accept a trailing newline.
    msgspec.Meta(pattern=rf"^{NAME_PATTERN}$(?!\n)", min_length=1, max_length=128, description=_NAME_HINT),
]
"""A session, account, user or message id. It is safe as one segment of a path."""

NonNegative = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A count. JSON numbers are exact up to 2**53."""

TokenCount = Annotated[int, msgspec.Meta(ge=0)]
"""A number of tokens as a model provider reports it."""


def is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(NAME_PATTERN, value) is not None


def safe_name(text: str) -> str:
    """Return a text as a `Name`. Different texts get different names, except for spaces and underscores.

    >>> safe_name("Bob Smith"), safe_name("bob@example.org")
    ('Bob_Smith', 'bob@example.org')
    """
    spaced = text.strip().replace(" ", "_")
    if is_name(spaced):
        return spaced
    letters = "".join(letter if letter.isascii() and is_name(f"a{letter}") else "_" for letter in spaced[:100])
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{letters}-{digest}" if is_name(f"{letters}-{digest}") else f"_{letters}-{digest}"


def require_name(field: str, value: Any) -> None:
    """Raise an error if a value is not a `Name`, for values that no type validates."""
    if not is_name(value):
        raise InvalidArgumentError(field, f"{short_repr(value)} is not allowed; {_NAME_HINT}")


class WireStruct(msgspec.Struct, frozen=True):
    """A frozen struct that can also be read as the dictionary of its JSON form."""

    def __getitem__(self, key: str) -> Any:
        encoded = type(self).__struct_encode_fields__
        if key not in encoded:
            raise KeyError(key)
        return msgspec.to_builtins(getattr(self, type(self).__struct_fields__[encoded.index(key)]))

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self.keys() else default

    def keys(self) -> tuple[str, ...]:
        return type(self).__struct_encode_fields__

    def values(self) -> list[Any]:
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self.keys()]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as a dictionary, including all nested values."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self.keys()
