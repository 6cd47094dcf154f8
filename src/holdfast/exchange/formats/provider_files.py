"""Files of conversations as OpenAI's and Anthropic's APIs have them, and most other programs with them.

Pure functions. What a message becomes is the same as when it is added: `holdfast.formats`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, shown
from holdfast.exchange.formats.records import SessionRecord, named
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage, Role
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.provider_formats import ITEMS, ROLES, is_item, kind_of, read_message
from holdfast.validation import conform

TIMES = ("created_at", "created", "create_time", "timestamp")
IDS = ("session_id", "conversation_id", "thread_id", "id")

Row = tuple[str, Any]
"""Where it stands, for errors, and what is there."""


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or kind_of(value) in ITEMS)


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
    names: dict[str, str] = {}
    seen: set[str] = set()
    for number, (where, given) in enumerate(rows, 1):
        message = _read_message(where, given, names)
        yield named(message, number, given.get("id"), seen)


def read_role(where: str, given: Any) -> Role:
    role = ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        raise InvalidArgumentError(where, f"the role {shown(given)} is not one of {', '.join(ROLES)}")
    return role


def _read_message(where: str, given: Any, names: dict[str, str]) -> NewMessage:
    """A message. `names` are those of the tools that were called so far, by the ids of the calls."""
    if not is_message(given) and not is_item(given):
        raise InvalidArgumentError(where, f"{shown(given)} is not a message; give an object with a role and content")
    if "role" in given:
        read_role(where, given["role"])
    about = {_time_key(given), "created_at"} | ({"id"} if "role" in given else set())
    fields = {key: value for key, value in given.items() if key not in about}
    if isinstance(given.get("parts"), list):  # Holdfast's own
        parts: list[Part] = conform(given["parts"], list[Part], where=f"{where}, parts")
        fields["parts"] = [_detached(part) for part in parts]
    read = read_message(f"{where}, ", fields, names)
    if read.get("parts") is None:
        read["parts"] = [TextPart(read.get("content") or "")]
    read["content"] = None
    message = conform(read, NewMessage, where=where)
    return msgspec.structs.replace(message, created_at=_time(where, given))


def _detached(part: Part) -> Part:
    """A part on its own: without the files of an export, the preview of a large output is all there is of it."""
    if not isinstance(part, ToolPart):
        return part
    return msgspec.structs.replace(part, tool_result_id="", tool_output_chars=0)


def _time(where: str, given: dict[str, Any]) -> Any:
    key = _time_key(given)
    return None if key is None else read_time(f"{where}, {key}", given[key])


def _time_key(given: dict[str, Any]) -> str | None:
    return next((key for key in TIMES if given.get(key) is not None), None)
