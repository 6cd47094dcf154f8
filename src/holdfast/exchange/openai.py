"""Conversations as OpenAI's chat and responses APIs have them, and most other programs with them. Pure functions."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.checking import conform
from holdfast.errors import InvalidArgumentError, shown
from holdfast.exchange.contents import as_value, kind_of, read_parts, read_text
from holdfast.exchange.records import SessionRecord, named
from holdfast.exchange.times import read_time
from holdfast.model import NewMessage, Role
from holdfast.noun import is_name
from holdfast.parts import Part, TextPart, ToolPart

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
CALLS = {"function_call", "custom_tool_call"}
OUTPUTS = {"function_call_output", "custom_tool_call_output"}
TIMES = ("created_at", "created", "create_time", "timestamp")
IDS = ("session_id", "conversation_id", "thread_id", "id")

Row = tuple[str, Any]
"""Where it stands, for errors, and what is there."""


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or kind_of(value) in CALLS | OUTPUTS)


def is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def read_conversation(where: str, given: Any, session_id: str) -> SessionRecord:
    """A session of `{"messages": [...]}`; `session_id` is its name if it has none of its own."""
    if not is_conversation(given):
        raise InvalidArgumentError(where, f"{shown(given)} is not a conversation; give an object with messages")
    title, metadata = given.get("title"), given.get("metadata")
    rows = [(f"{where}, messages[{number}]", row) for number, row in enumerate(given["messages"])]
    return SessionRecord(
        session_id=next((given[key] for key in IDS if is_name(given.get(key))), session_id),
        messages=lambda: read_messages(rows),
        title=title[:500] if isinstance(title, str) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
        created_at=_time(where, given) or next((message.created_at for message in read_messages(rows)), None),
    )


def read_messages(rows: Iterable[Row]) -> Iterator[NewMessage]:
    tools: dict[str, str] = {}
    seen: set[str] = set()
    for number, (where, given) in enumerate(rows, 1):
        message = _read_message(where, given, tools)
        yield named(message, number, given.get("id"), seen)


def _read_message(where: str, given: Any, tools: dict[str, str]) -> NewMessage:
    """A message. `tools` are the names of the tools that were called so far, by the ids of the calls."""
    if not is_message(given):
        raise InvalidArgumentError(where, f"{shown(given)} is not a message; give an object with a role and content")
    role = read_role(where, given.get("role", "assistant" if kind_of(given) in CALLS else "tool"))
    named, sources = given.get("name"), given.get("source_message_ids")
    kinds = {kind_of(part) for part in _list(given.get("content"))}
    return NewMessage(
        role=role,
        parts=_parts(where, given, role, tools) or [TextPart("")],
        peer_id=named if isinstance(named, str) and role != "tool" else _text(where, given, "peer_id"),
        turn_id=_text(where, given, "turn_id"),
        message_kind="refusal" if given.get("refusal") or "refusal" in kinds else _text(where, given, "message_kind"),
        source_message_ids=None
        if sources is None
        else conform(sources, list[str], where=f"{where}, source_message_ids"),
        created_at=_time(where, given),
    )


def read_role(where: str, said: Any) -> Role:
    role = ROLES.get(said) if isinstance(said, str) else None
    if role is None:
        raise InvalidArgumentError(where, f"the role {shown(said)} is not one of {', '.join(ROLES)}")
    return role


def _parts(where: str, given: dict[str, Any], role: Role, tools: dict[str, str]) -> list[Part]:
    if isinstance(given.get("parts"), list):  # Holdfast's own
        return [_detached(part) for part in conform(given["parts"], list[Part], where=f"{where}, parts")]
    if kind_of(given) in CALLS:
        return [_call(where, given, given.get("call_id"), tools)]
    if kind_of(given) in OUTPUTS or role == "tool":
        return [_output(given, tools)]
    parts = read_parts(where, given.get("content"))
    if isinstance(given.get("refusal"), str):
        parts.append(TextPart(given["refusal"]))
    for call in _list(given.get("tool_calls")):
        if not isinstance(call, dict):
            raise InvalidArgumentError(where, f"{shown(call)} in tool_calls is not a tool call; give an object")
        parts.append(_call(where, call.get("function") or call.get("custom") or call, call.get("id"), tools))
    if isinstance(given.get("function_call"), dict):
        parts.append(_call(where, given["function_call"], None, tools))
    return parts


def _call(where: str, function: Any, call_id: Any, tools: dict[str, str]) -> Part:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise InvalidArgumentError(where, f"{shown(function)} is not a call of a function; give its name and arguments")
    tool_id = call_id if isinstance(call_id, str) else ""
    tools[tool_id] = name
    asked = function.get("arguments", function.get("input"))
    return ToolPart(tool_id=tool_id, tool_name=name, tool_input=as_value(asked), tool_status="pending")


def _output(given: dict[str, Any], tools: dict[str, str]) -> Part:
    call_id = given.get("tool_call_id", given.get("call_id"))
    tool_id = call_id if isinstance(call_id, str) else ""
    name = given.get("name")
    said = given.get("content", given.get("output"))
    text = read_text(said)
    return ToolPart(
        tool_id=tool_id,
        tool_name=name if isinstance(name, str) else tools.get(tool_id, ""),
        tool_output=("" if said is None else said) if text is None else text,
        tool_status="completed",
    )


def _detached(part: Part) -> Part:
    """A part on its own: without the files of an export, the preview of a large output is all there is of it."""
    if not isinstance(part, ToolPart):
        return part
    return msgspec.structs.replace(part, tool_result_id="", tool_output_chars=0)


def _time(where: str, given: dict[str, Any]) -> Any:
    key = next((key for key in TIMES if given.get(key) is not None), None)
    return None if key is None else read_time(f"{where}, {key}", given[key])


def _text(where: str, given: dict[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"{where}, {key}", f"{shown(value)} is not a string")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
