"""Checks that text and JSON can be stored and read back unchanged. An error names the field."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, short_repr

MAX_DEPTH = 64
_MAX_KEY_CHARS = 80
"""Characters of a key in an error."""

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
    try:
        _check(value, 0)
    except _UnstorableError as error:
        path = "".join(reversed(error.path))
        raise InvalidArgumentError(f"{field}{path}", error.problem) from None
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:  # a subclass of a number, an integer of 5,000 digits
        raise InvalidArgumentError(field, f"cannot be written as JSON: {error}; convert it first") from None


def to_plain_str(value: Any) -> Any:
    """Return an instance of a subclass of `str` as a plain `str`, and any other value unchanged."""
    return str.__str__(value) if isinstance(value, str) and type(value) is not str else value


class _UnstorableError(Exception):
    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem
        self.path: list[str] = []
        """Keys and indexes, from the value with the problem up to the whole value. They are added while the error is
        raised, so that valid input does not pay for them."""


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _UnstorableError(f"is nested deeper than {MAX_DEPTH} levels; flatten it")
    match value:
        case str():
            _check_text(value)
        case None | bool() | int():
            pass
        case float() if math.isfinite(value):
            pass
        case dict():
            _check_fields(value, depth)
        case list() | tuple():
            _check_items(value, depth)
        case _:
            raise _UnstorableError(f"{short_repr(value)} is not JSON; convert it to a string, a number or null first")


def _check_fields(fields: dict[Any, Any], depth: int) -> None:
    key: Any = ""
    try:
        for key, item in fields.items():
            if isinstance(key, str):
                _check(item, depth + 1)
    except _UnstorableError as error:
        error.path.append(f".{key[:_MAX_KEY_CHARS]}")
        raise
    for key in fields:
        if not isinstance(key, str):
            raise _UnstorableError(f"has the key {short_repr(key)}; JSON keys are strings")
        _check_text(key)


def _check_items(items: Sequence[Any], depth: int) -> None:
    number = 0
    try:
        for number, item in enumerate(items):  # noqa: B007 - the error needs the number
            _check(item, depth + 1)
    except _UnstorableError as error:
        error.path.append(f"[{number}]")
        raise


def _check_text(text: str) -> None:
    try:
        storable_text("", text)
    except InvalidArgumentError as error:
        raise _UnstorableError(error.details["problem"]) from None
