"""What all nouns have in common: they are frozen, and they also read as the dictionaries they are on the wire."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from holdfast.errors import InvalidArgumentError, shown

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._:@-]{0,127}"
_NAME_REMEDY = "use 1 to 128 letters, digits or . _ : @ - and begin with a letter, a digit or _"

Name = Annotated[
    str,
    # `$` alone would let a trailing newline through.
    msgspec.Meta(pattern=rf"^{_NAME}$(?!\n)", min_length=1, max_length=128, description=_NAME_REMEDY),
]
"""A single safe path segment: session, account, user and message ids."""


def is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(_NAME, value) is not None


def require_name(field: str, value: Any) -> None:
    """Refuse what is not a `Name`, where no type is there to do it."""
    if not is_name(value):
        raise InvalidArgumentError(field, f"{shown(value)} is not allowed; {_NAME_REMEDY}")


class WireStruct(msgspec.Struct, frozen=True):
    """A struct that also reads as the dictionary it is on the wire."""

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
        """The noun as it is on the wire, all the way down."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, key: object) -> bool:
        return key in self.keys()
