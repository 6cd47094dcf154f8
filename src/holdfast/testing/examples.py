"""Builds an example of any operation from the table, and removes the parts of a result that vary between calls."""

from typing import Any, get_type_hints

import msgspec

from holdfast.ops.table import Operation

_VARYING_FIELDS = {"created_at", "updated_at", "last_message_at", "mod_time", "message_ids", "at", "id", "cursor"}
_EXAMPLE_VALUES = {
    "role": "user",
    "messages": [{"role": "user", "content": "hello"}],
    "component": "queue",
    "uri": "viking://user",
    "link_id": "0" * 16,
    "ids": ["aud_1"],
    "query": "hello",
    "upload_id": "upload_0",
    "temp_file_id": "upload_0",
    "parent": "viking://resources",
    "number": 0,
    "data": b"hello",
    "root_uri": "viking://resources",
    "operations": [{"uri": "viking://resources/notes.md", "content": "hello"}],
    "from_uri": "viking://resources/notes/a.md",
    "to_uri": "viking://resources/notes/b.md",
    "to_uris": ["viking://resources/notes/b.md"],
}
_WITH_SKILLS = {"AddSkill", "UpdateSkill", "ValidateSkill"}


def example_operation(cls: type[Operation[Any]], **values: Any) -> Operation[Any]:
    """Return an operation with the given values. Other required fields get an example value of their type."""
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    arguments = {name: values[name] for name in fields if name in values}
    for name, field in fields.items():
        if field.required and name not in arguments:
            arguments[name] = _example_value(name, get_type_hints(cls)[name])
    if "content" in fields:
        arguments.setdefault("content", "hello")
    if cls.__name__ == "RecordUse":
        arguments["contexts"] = ["viking://x"]
    if cls.__name__ in _WITH_SKILLS:
        arguments["data"] = {"name": arguments.get("name", "x"), "description": "Says hello.", "content": "hello"}
    return cls(**arguments)


def _example_value(name: str, hint: Any) -> Any:
    if name in _EXAMPLE_VALUES:
        return _EXAMPLE_VALUES[name]
    if hint is str:
        return "x"
    raise AssertionError(f"there is no example value for the field {name}: {hint}; add one to _EXAMPLE_VALUES")


def without_varying_fields(result: Any, name: str) -> Any:
    """Return a result without times and ids, and with `NAME` in place of `name`."""
    if isinstance(result, dict):
        return {key: without_varying_fields(value, name) for key, value in result.items() if key not in _VARYING_FIELDS}
    if isinstance(result, list):
        return [without_varying_fields(item, name) for item in result]
    return result.replace(name, "NAME") if isinstance(result, str) else result
