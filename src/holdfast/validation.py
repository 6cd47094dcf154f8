"""Conversion of untyped values to typed ones. An error names the field, the problem and the remedy."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from holdfast.errors import InvalidArgumentError, short_repr

T = TypeVar("T")
MAX_TIME_CHARS = 64


def prebuild_decoder(cls: T) -> T:
    """Build msgspec's type information of a type at import time. It can be used as a class decorator.

    Two threads that build it for the same struct at the same time crash the process.
    """
    msgspec.json.Decoder(cls)
    return cls


def convert(value: Any, cls: type[T], *, path: str = "", strict: bool = True) -> T:
    """Return `value` converted to `cls`, or raise `InvalidArgumentError`.

    `path` locates the value in the caller's input, for the error. With `strict=False`, numbers may be given as strings.
    """
    try:
        return msgspec.convert(value, cls, strict=strict)
    except msgspec.ValidationError as error:
        problem, _, error_path = str(error).partition(" - at `$")
        steps = _split_path(error_path.rstrip("`"))
        match = re.fullmatch(r"Object (missing required|contains unknown) field `(\w+)`", problem)
        if match:
            problem = "is missing" if match[1] == "missing required" else "is not a known field"
            steps = [*steps, f".{match[2]}"]
    if "got `float`" in problem and "`int" in problem:
        corrected = _with_integer_at(value, steps)
        if corrected is not None:
            return convert(corrected, cls, path=path, strict=strict)
    if problem == "Invalid RFC3339 encoded datetime":
        corrected = _with_times_at(value, steps)
        if corrected is not None:
            return convert(corrected, cls, path=path, strict=strict)
    field = path + "".join(steps)
    raise InvalidArgumentError(
        field if path else field.lstrip("."),
        f"{_describe_problem(problem, cls, steps)} (got {_describe_value_at(value, steps)})",
    )


def _with_integer_at(value: Any, steps: list[str]) -> Any:
    """Return `value` with the float at the path `steps` as an integer, or None if the float is not a whole number.

    JSON does not distinguish 1.0 from 1, and some encoders write an integer as 1.0.
    """
    if not steps:
        return int(value) if isinstance(value, float) and value.is_integer() else None
    step, rest = steps[0], steps[1:]
    if step.startswith("[") and isinstance(value, list):
        index = int(step[1:-1])
        inner = _with_integer_at(value[index], rest)
        return None if inner is None else [*value[:index], inner, *value[index + 1 :]]
    if isinstance(value, dict) and step[1:] in value:
        inner = _with_integer_at(value[step[1:]], rest)
        return None if inner is None else {**value, step[1:]: inner}
    return None


def parse_iso_time(text: Any) -> datetime | None:
    """Return the time of a text that `datetime.fromisoformat` reads, or None. msgspec reads only RFC 3339.

    >>> str(parse_iso_time("20260324T091011+0800")), parse_iso_time("yesterday")
    ('2026-03-24 09:10:11+08:00', None)
    """
    if not isinstance(text, str) or len(text) > MAX_TIME_CHARS:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _with_times_at(value: Any, steps: list[str]) -> Any:
    """Return `value` with the time at the path `steps` read, or None if it is no time.

    In a list, the times of all items are read at once: reading them one by one would take quadratic time.
    """
    if not steps:
        return parse_iso_time(value)
    step, rest = steps[0], steps[1:]
    if step.startswith("[") and isinstance(value, list):
        read = [_with_times_at(item, rest) for item in value]
        if read[int(step[1:-1])] is None:
            return None
        return [given if each is None else each for given, each in zip(value, read, strict=True)]
    if isinstance(value, dict) and step[1:] in value:
        inner = _with_times_at(value[step[1:]], rest)
        return None if inner is None else {**value, step[1:]: inner}
    return None


def _split_path(path: str) -> list[str]:
    """`.messages[1].role` -> `.messages`, `[1]`, `.role`"""
    return [step for step in path.replace(".", "\0.").replace("[", "\0[").split("\0") if step]


def _describe_problem(problem: str, cls: Any, steps: list[str]) -> str:
    expected_type, remedy = _type_at(inspect.type_info(cls), steps)
    if isinstance(expected_type, inspect.LiteralType):
        return f"is not one of {', '.join(map(str, expected_type.values))}"
    if "matching regex" in problem:
        problem = "is not allowed"
    return f"{problem}; {remedy}" if remedy else problem


def _type_at(info: Any, steps: list[str]) -> tuple[Any, str]:
    """Return the type at the path `steps`, and the description in its metadata."""
    remedy = ""
    for step in [*steps, ""]:  # the empty step unwraps the last type and goes no deeper
        while isinstance(info, inspect.Metadata | inspect.UnionType):
            if isinstance(info, inspect.Metadata):
                remedy, info = (info.extra_json_schema or {}).get("description", remedy), info.type
            else:
                info = _choice(info.types, is_item=step.startswith("["))
        if isinstance(info, inspect.StructType) and step:
            info = next((field.type for field in info.fields if f".{field.encode_name}" == step), None)
        elif isinstance(info, inspect.ListType) and step:
            info = info.item_type
        elif step:
            return None, ""
    return info, remedy


def _choice(types: Iterable[Any], *, is_item: bool) -> Any:
    """Return the type of a union that an error is about: the list if it is about an item, otherwise the first type."""
    choices = [each for each in types if not isinstance(each, inspect.NoneType)]
    lists = [each for each in choices if is_item and isinstance(_without_metadata(each), inspect.ListType)]
    return next(iter([*lists, *choices]), None)


def _without_metadata(info: Any) -> Any:
    return info.type if isinstance(info, inspect.Metadata) else info


def _describe_value_at(value: Any, steps: list[str]) -> str:
    for step in steps:
        try:
            value = value[int(step[1:-1])] if step.startswith("[") else _get_field(value, step[1:])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return "nothing"
    return short_repr(value)


def _get_field(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)
