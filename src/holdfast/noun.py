"""What all nouns have in common: they are frozen, and they also read as the dictionaries they are on the wire."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

Name = Annotated[
    str,
    msgspec.Meta(
        # `$` alone would let a trailing newline through.
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._:@-]*$(?!\n)",
        min_length=1,
        max_length=128,
        description="use 1 to 128 letters, digits or . _ : @ - and begin with a letter, a digit or _",
    ),
]
"""A single safe path segment: session, account, user and message ids."""


class Noun(msgspec.Struct, frozen=True):
    """A struct that also reads as the dictionary it is on the wire."""

    def __getitem__(self, key: str) -> Any:
        encoded = type(self).__struct_encode_fields__
        if key not in encoded:
            raise KeyError(key)
        return msgspec.to_builtins(getattr(self, type(self).__struct_fields__[encoded.index(key)]))

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> tuple[str, ...]:
        return type(self).__struct_encode_fields__

    def items(self) -> list[tuple[str, Any]]:
        return [(key, self[key]) for key in self]

    def __iter__(self) -> Iterator[str]:
        return iter(type(self).__struct_encode_fields__)

    def __contains__(self, key: object) -> bool:
        return key in type(self).__struct_encode_fields__
