"""An example of any operation, made from the table, and what a caller gets to see without what differs by nature."""

from typing import Any, get_type_hints

import msgspec

from holdfast.ops.table import Operation


def example(cls: type[Operation[Any]], **known: Any) -> Operation[Any]:
    """An operation with its required fields filled in: the known ones as given, the others by their type."""
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    values = {name: known[name] for name in fields if name in known}
    for name, field in fields.items():
        if field.required and name not in values:
            values[name] = _value(name, get_type_hints(cls)[name])
    if "content" in fields:
        values.setdefault("content", "hello")
    if cls.__name__ == "RecordUse":
        values["contexts"] = ["viking://x"]
    return cls(**values)


def _value(name: str, hint: Any) -> Any:
    simple = {
        "role": "user",
        "messages": [{"role": "user", "content": "hello"}],
        "component": "queue",
        "uri": "viking://user",
    }
    if name in simple:
        return simple[name]
    if hint is str:
        return "x"
    raise AssertionError(f"tell this test how to make a value for {name}: {hint}")


def blurred(seen: Any, name: str) -> Any:
    """What was seen, with times and ids left out and `name` made unknown."""
    if isinstance(seen, dict):
        varying = {"created_at", "updated_at", "last_message_at", "mod_time", "message_ids", "at", "id", "cursor"}
        return {key: blurred(value, name) for key, value in seen.items() if key not in varying}
    if isinstance(seen, list):
        return [blurred(item, name) for item in seen]
    return seen.replace(name, "NAME") if isinstance(seen, str) else seen
