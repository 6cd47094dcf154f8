"""The `conversations.json` of ChatGPT's data export: trees of messages, of which the branch shown last is taken."""

from collections.abc import Iterator
from typing import Any

from holdfast.errors import InvalidArgumentError, shown
from holdfast.exchange.formats.provider_files import read_role
from holdfast.exchange.formats.records import SessionRecord, named
from holdfast.exchange.formats.times import read_time
from holdfast.model.base import is_name
from holdfast.model.messages import NewMessage
from holdfast.model.parts import ImagePart, Part, TextPart, ToolPart, as_text


def is_chatgpt(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read_chatgpt(where: str, given: Any, session_id: str) -> SessionRecord:
    if not is_chatgpt(given):
        raise InvalidArgumentError(where, f"{shown(given)} is not a conversation of ChatGPT; it has a mapping")
    own = given.get("conversation_id") or given.get("id")
    title = given.get("title")
    return SessionRecord(
        session_id=own if is_name(own) else session_id,
        messages=lambda: _messages(where, given),
        title=title[:500] if isinstance(title, str) else None,
        created_at=read_time(f"{where}, create_time", given.get("create_time")),
        state="archived" if given.get("is_archived") is True else None,
    )


def _messages(where: str, given: dict[str, Any]) -> Iterator[NewMessage]:
    number, seen = 0, set[str]()
    for key, said in _branch(given):
        author = _object(said.get("author"))
        parts = _parts(said, author)
        if not parts:
            continue
        number += 1
        place = f"{where}, mapping[{key}]"
        message = NewMessage(
            role=read_role(place, author.get("role")),
            parts=parts,
            created_at=read_time(f"{place}, create_time", said.get("create_time")),
        )
        yield named(message, number, said.get("id"), seen)


def _branch(given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The messages from the root to the current node."""
    mapping = given["mapping"]
    at = given.get("current_node")
    if not isinstance(at, str) or at not in mapping:
        at = next(reversed(mapping), None)
    found: dict[str, dict[str, Any]] = {}
    while isinstance(at, str) and at in mapping and at not in found:
        node = _object(mapping[at])
        found[at] = _object(node.get("message"))
        at = node.get("parent")
    return list(reversed(found.items()))


def _parts(said: dict[str, Any], author: dict[str, Any]) -> list[Part]:
    parts = _content(_object(said.get("content")))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    recipient = said.get("recipient") or "all"
    if author.get("role") == "tool" and parts:
        images = [part for part in parts if isinstance(part, ImagePart)]
        return [ToolPart(tool_name=str(author.get("name") or ""), tool_output=text, tool_status="completed"), *images]
    if recipient != "all" and text:
        return [ToolPart(tool_name=str(recipient), tool_input=text, tool_status="pending")]
    return parts


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _content(content: dict[str, Any]) -> list[Part]:
    """What a message shows; one that shows nothing is one of the hidden ones at the root."""
    given = content.get("parts")
    pieces = given if isinstance(given, list) else [content.get("text")]
    if pieces == [None]:
        pieces = [{key: value for key, value in content.items() if key != "content_type"}]
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, dict) and isinstance(piece.get("asset_pointer"), str):
            parts.append(ImagePart(piece["asset_pointer"]))
        elif isinstance(piece, dict) and isinstance(piece.get("text"), str):
            parts.append(TextPart(piece["text"]))
        elif piece:
            parts.append(TextPart(as_text(piece)))
    return parts
