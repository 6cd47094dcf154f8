"""ChatGPT's data export, `conversations.json`. A conversation is a tree of messages; the current branch is imported."""

from collections.abc import Iterator
from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.exchange.formats.provider_files import read_role
from holdfast.exchange.formats.records import SessionRecord, assign_id
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage
from holdfast.model.parts import ImagePart, Part, TextPart, ToolPart, as_text


def is_chatgpt(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read_chatgpt(where: str, conversation: Any, session_id: str) -> SessionRecord:
    """Read a conversation. `session_id` is used if the conversation has no valid id."""
    if not is_chatgpt(conversation):
        raise InvalidArgumentError(
            where, f"{short_repr(conversation)} is not a ChatGPT conversation: it has no mapping"
        )
    own_id = conversation.get("conversation_id") or conversation.get("id")
    title = conversation.get("title")
    return SessionRecord(
        session_id=own_id if is_name(own_id) else session_id,
        messages=lambda: _messages(where, conversation),
        title=title[:500] if isinstance(title, str) else None,
        created_at=read_time(f"{where}, create_time", conversation.get("create_time")),
        state="archived" if conversation.get("is_archived") is True else None,
    )


def _messages(where: str, conversation: dict[str, Any]) -> Iterator[NewMessage]:
    number, used_ids = 0, set[str]()
    for key, node in _branch(conversation):
        author = _object(node.get("author"))
        parts = _parts(node, author)
        if not parts:
            continue
        number += 1
        location = f"{where}, mapping[{key}]"
        message = NewMessage(
            role=read_role(location, author.get("role")),
            parts=parts,
            created_at=read_time(f"{location}, create_time", node.get("create_time")),
        )
        yield assign_id(message, number, node.get("id"), used_ids)


def _branch(conversation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The messages from the root to the current node, by their keys."""
    mapping = conversation["mapping"]
    key = conversation.get("current_node")
    if not isinstance(key, str) or key not in mapping:
        key = next(reversed(mapping), None)
    branch: dict[str, dict[str, Any]] = {}
    while isinstance(key, str) and key in mapping and key not in branch:
        node = _object(mapping[key])
        branch[key] = _object(node.get("message"))
        key = node.get("parent")
    return list(reversed(branch.items()))


def _parts(message: dict[str, Any], author: dict[str, Any]) -> list[Part]:
    parts = _content(_object(message.get("content")))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    recipient = message.get("recipient") or "all"
    if author.get("role") == "tool" and parts:
        images = [part for part in parts if isinstance(part, ImagePart)]
        return [ToolPart(tool_name=str(author.get("name") or ""), tool_output=text, tool_status="completed"), *images]
    if recipient != "all" and text:
        return [ToolPart(tool_name=str(recipient), tool_input=text, tool_status="pending")]
    return parts


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _content(content: dict[str, Any]) -> list[Part]:
    """The parts of a message. The hidden messages at the root have none."""
    listed = content.get("parts")
    items = listed if isinstance(listed, list) else [content.get("text")]
    if items == [None]:
        items = [{key: value for key, value in content.items() if key != "content_type"}]
    parts: list[Part] = []
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("asset_pointer"), str):
            parts.append(ImagePart(item["asset_pointer"]))
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            parts.append(TextPart(item["text"]))
        elif item:
            parts.append(TextPart(as_text(item)))
    return parts
