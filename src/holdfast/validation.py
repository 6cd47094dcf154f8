"""From a value of unknown shape to a typed one, or an error that names the field, the problem and the remedy."""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from holdfast.errors import InvalidArgumentError, shown

T = TypeVar("T")


def prebuild_decoder(cls: type[T]) -> type[T]:
    """Let msgspec look through a struct while it is imported: two threads that do so at once crash the process."""
    msgspec.json.Decoder(cls)
    return cls


def conform(value: Any, cls: type[T], *, where: str = "", strict: bool = True) -> T:
    """`value` as a `cls`. `where` is the path to it, for the error; `strict=False` also reads numbers from text."""
    try:
        return msgspec.convert(value, cls, strict=strict)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        steps = _steps(path.rstrip("`"))
        named = re.fullmatch(r"Object (missing required|contains unknown) field `(\w+)`", problem)
        if named:
            problem = "is missing" if named[1] == "missing required" else "is not a field of this"
            steps = [*steps, f".{named[2]}"]
    whole = _with_a_whole_number(value, steps) if "got `float`" in problem and "`int" in problem else None
    if whole is not None:
        return conform(whole, cls, where=where, strict=strict)
    field = where + "".join(steps)
    raise InvalidArgumentError(
        field if where else field.lstrip("."), f"{_readable(problem, cls, steps)} (got {_at(value, steps)})"
    )


def _with_a_whole_number(value: Any, steps: list[str]) -> Any:
    """`value` with the float at the end of `steps` as an integer, which in JSON it may be; None if it is not whole."""
    if not steps:
        return int(value) if isinstance(value, float) and value.is_integer() else None
    step, rest = steps[0], steps[1:]
    if step.startswith("[") and isinstance(value, list):
        at = int(step[1:-1])
        inner = _with_a_whole_number(value[at], rest)
        return None if inner is None else [*value[:at], inner, *value[at + 1 :]]
    if isinstance(value, dict) and step[1:] in value:
        inner = _with_a_whole_number(value[step[1:]], rest)
        return None if inner is None else {**value, step[1:]: inner}
    return None


def _steps(path: str) -> list[str]:
    """`.messages[1].role` -> `.messages`, `[1]`, `.role`"""
    return [step for step in path.replace(".", "\0.").replace("[", "\0[").split("\0") if step]


def _readable(problem: str, cls: Any, steps: list[str]) -> str:
    found, remedy = _type_at(inspect.type_info(cls), steps)
    if isinstance(found, inspect.LiteralType):
        return f"is not one of {', '.join(map(str, found.values))}"
    if "matching regex" in problem:
        problem = "is not allowed"
    return f"{problem}; {remedy}" if remedy else problem


def _type_at(info: Any, steps: list[str]) -> tuple[Any, str]:
    """The type at the end of `steps` and what its author says about it."""
    remedy = ""
    for step in [*steps, ""]:
        while isinstance(info, inspect.Metadata | inspect.UnionType):
            if isinstance(info, inspect.Metadata):
                remedy, info = (info.extra_json_schema or {}).get("description", remedy), info.type
            else:
                info = next((t for t in info.types if not isinstance(t, inspect.NoneType)), None)
        if isinstance(info, inspect.StructType) and step:
            info = next((field.type for field in info.fields if f".{field.encode_name}" == step), None)
        elif isinstance(info, inspect.ListType) and step:
            info = info.item_type
        elif step:
            return None, ""
    return info, remedy


def _at(value: Any, steps: list[str]) -> str:
    for step in steps:
        try:
            value = value[int(step[1:-1])] if step.startswith("[") else _attribute(value, step[1:])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return "nothing"
    return shown(value)


def _attribute(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)
