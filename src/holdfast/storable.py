"""Checks that text and JSON can be stored and read back unchanged. An error names the field."""

import math
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, short_repr

MAX_DEPTH = 64

_encode = msgspec.json.encode


def storable_text(field: str, text: str) -> str:
    """Return `text`. Raise an error if it contains NUL or a lone surrogate."""
    if "\0" in text:
        raise InvalidArgumentError(field, f"has a NUL character at position {text.index(chr(0))}; remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                field, f"has a lone surrogate at position {error.start}; decode the text properly"
            ) from None
    return text


def storable_json(field: str, value: Any) -> str:
    """Return `value` as JSON text. Raise an error if it is not JSON or would be read back differently."""
    _check(field, value, 0)
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:  # a subclass of a number, an integer of 5,000 digits
        raise InvalidArgumentError(field, f"cannot be written as JSON: {error}; convert it first") from None


def to_plain_str(value: Any) -> Any:
    """Return an instance of a subclass of `str` as a plain `str`, and any other value unchanged."""
    return str.__str__(value) if isinstance(value, str) and type(value) is not str else value


def _check(field: str, value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArgumentError(field, f"is nested deeper than {MAX_DEPTH} levels; flatten it")
    match value:
        case str():
            storable_text(field, value)
        case None | bool() | int():
            pass
        case float() if math.isfinite(value):
            pass
        case dict():
            for key, item in value.items():
                _check_key(field, key)
                _check(f"{field}.{key}", item, depth + 1)
        case list() | tuple():
            for number, item in enumerate(value):
                _check(f"{field}[{number}]", item, depth + 1)
        case _:
            raise InvalidArgumentError(
                field, f"{short_repr(value)} is not JSON; convert it to a string, a number or null first"
            )


def _check_key(field: str, key: Any) -> None:
    if not isinstance(key, str):
        raise InvalidArgumentError(field, f"has the key {short_repr(key)}; JSON keys are strings")
    storable_text(field, key)
