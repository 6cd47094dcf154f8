"""Conversations in the message formats of OpenAI and Anthropic, which most other programs use too.

Pure functions. A message is converted as in `add_message`, by `holdfast.provider_formats`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.exchange.formats.records import SessionRecord, assign_id
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage, Role
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.provider_formats import RESPONSE_ITEM_TYPES, ROLES, is_response_item, translate_message, type_of
from holdfast.validation import convert

TIME_KEYS = ("created_at", "created", "create_time", "timestamp")
ID_KEYS = ("session_id", "conversation_id", "thread_id", "id")

JsonRow = tuple[str, Any]
"""The location of a value, which errors name, and the decoded value."""


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or type_of(value) in RESPONSE_ITEM_TYPES)


def is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def read_conversation(where: str, conversation: Any, session_id: str) -> SessionRecord:
    """Read `{"messages": [...]}` as a session. `session_id` is used if the conversation has no valid id."""
    if not is_conversation(conversation):
        raise InvalidArgumentError(
            where, f"{short_repr(conversation)} is not a conversation; use an object with messages"
        )
    title, metadata = conversation.get("title"), conversation.get("metadata")
    rows = [(f"{where}, messages[{number}]", row) for number, row in enumerate(conversation["messages"])]
    return SessionRecord(
        session_id=next((conversation[key] for key in ID_KEYS if is_name(conversation.get(key))), session_id),
        messages=lambda: read_messages(rows),
        title=title[:500] if isinstance(title, str) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
        created_at=_time(where, conversation) or next((message.created_at for message in read_messages(rows)), None),
    )


def read_messages(rows: Iterable[JsonRow]) -> Iterator[NewMessage]:
    tool_names: dict[str, str] = {}
    used_ids: set[str] = set()
    for number, (where, row) in enumerate(rows, 1):
        message = _read_message(where, row, tool_names)
        yield assign_id(message, number, row.get("id"), used_ids)


def read_role(where: str, value: Any) -> Role:
    role = ROLES.get(value) if isinstance(value, str) else None
    if role is None:
        raise InvalidArgumentError(where, f"the role {short_repr(value)} is not one of {', '.join(ROLES)}")
    return role


def _read_message(where: str, row: Any, tool_names: dict[str, str]) -> NewMessage:
    """Convert one row. `tool_names` maps the ids of earlier tool calls to the names of their tools."""
    if not is_message(row) and not is_response_item(row):
        raise InvalidArgumentError(where, f"{short_repr(row)} is not a message; use an object with a role and content")
    if "role" in row:
        read_role(where, row["role"])
    handled_here = {_time_key(row), "created_at"} | ({"id"} if "role" in row else set())
    fields = {key: value for key, value in row.items() if key not in handled_here}
    if isinstance(row.get("parts"), list):  # a message in Holdfast's own format
        parts: list[Part] = convert(row["parts"], list[Part], path=f"{where}, parts")
        fields["parts"] = [_without_stored_output(part) for part in parts]
    converted = translate_message(f"{where}, ", fields, tool_names)
    if converted.get("parts") is None:
        converted["parts"] = [TextPart(converted.get("content") or "")]
    converted["content"] = None
    # Any text is accepted here: `with_safe_peer` replaces it before the message is added.
    peer_id = converted.pop("peer_id") if isinstance(converted.get("peer_id"), str) else None
    message = convert(converted, NewMessage, path=where)
    return msgspec.structs.replace(message, peer_id=peer_id, created_at=_time(where, row))


def _without_stored_output(part: Part) -> Part:
    """Remove the reference to a stored tool output: without the files of an export only its preview is available."""
    if not isinstance(part, ToolPart):
        return part
    return msgspec.structs.replace(part, tool_result_id="", tool_output_chars=0)


def _time(where: str, fields: dict[str, Any]) -> Any:
    key = _time_key(fields)
    return None if key is None else read_time(f"{where}, {key}", fields[key])


def _time_key(fields: dict[str, Any]) -> str | None:
    return next((key for key in TIME_KEYS if fields.get(key) is not None), None)
