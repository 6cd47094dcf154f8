"""From what a caller handed in to what can be stored: every spelling understood, everything checked and counted."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.rule import CallContext
from holdfast.errors import InvalidArgumentError, shown
from holdfast.model.messages import NewMessage
from holdfast.model.parts import (
    PART_TYPES,
    ImagePart,
    Part,
    PartBase,
    ProviderPart,
    TextPart,
    ToolPart,
    as_text,
    spell_image,
    spell_tool,
)
from holdfast.provider_formats import is_no_content
from holdfast.storable import plain, storable_json, storable_text
from holdfast.store.tables.messages import Draft, Extra
from holdfast.store.tables.tool_results import Output
from holdfast.store.timestamps import storable_micros
from holdfast.text import tokens
from holdfast.validation import conform

MAX_PARTS = 1_000

_encode = msgspec.json.Encoder().encode


class Prepared(msgspec.Struct, frozen=True):
    drafts: list[Draft]
    outputs: list[Output]


def prepare(context: CallContext, messages: Sequence[NewMessage], path: str) -> Prepared:
    """Drafts of `messages`. `path` names the field of a message in errors; `{}` in it is the message's number."""
    drafts: list[Draft] = []
    outputs: list[Output] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = path.format(number)
        if message.id is not None:
            if message.id in seen:
                raise InvalidArgumentError(f"{where}id", f"{message.id!r} stands twice in this batch")
            seen.add(message.id)
        parts = _parts(message, where)
        apart = _moved_apart(parts, number, context.settings)
        drafts.append(_draft(context, message, parts, where, apart))
        outputs += apart
    return Prepared(drafts, sorted(outputs, key=lambda output: output.hash) if outputs else outputs)


def _draft(context: CallContext, message: NewMessage, parts: list[Part], where: str, apart: list[Output]) -> Draft:
    encoded = _encode(parts)
    extra = _extra(message, where)
    size = len(encoded)
    if extra or apart:
        size += len((extra or "").encode()) + sum([len(output.content.encode()) for output in apart])
    most = context.settings.max_message_bytes
    if size > most:
        raise InvalidArgumentError(f"{where}parts", f"are {size} bytes, more than the {most} that a message may have")
    return Draft(
        id=message.id,
        role=message.role,
        parts=encoded.decode(),
        extra=extra,
        tokens=tokens.of_parts(parts, tokens.counter(context.settings.token_counter)),
        created_at=context.now
        if message.created_at is None
        else storable_micros(f"{where}created_at", message.created_at),
        said=parts,
    )


def _parts(message: NewMessage, where: str) -> list[Part]:
    content = None if message.content is None else storable_text(f"{where}content", plain(message.content))
    if message.parts is None:
        if content is None:
            raise InvalidArgumentError(f"{where}parts", "are missing; give parts or content")
        return [TextPart(content)]
    if not 1 <= len(message.parts) <= MAX_PARTS:
        raise InvalidArgumentError(f"{where}parts", f"has {len(message.parts)} parts; give 1 to {MAX_PARTS}")
    return [_part(part, f"{where}parts[{number}]") for number, part in enumerate(message.parts)]


def _part(given: Any, where: str) -> Part:
    if isinstance(given, PartBase) and given.type in PART_TYPES:
        cls, fields = PART_TYPES[given.type], msgspec.structs.asdict(given)
    elif isinstance(given, dict):
        cls, fields = _spelled(given, where)
    else:
        raise InvalidArgumentError(where, f"is a {type(given).__name__}; give a part object or a dictionary")
    part: Part = conform({name: plain(value) for name, value in fields.items()}, cls, where=where)
    for name in cls.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, str):
            storable_text(f"{where}.{name}", value)
        elif value is not None:
            storable_json(f"{where}.{name}", value)
    return part


def _spelled(given: dict[str, Any], where: str) -> tuple[type[Part], dict[str, Any]]:
    kind = given.get("type")
    cls = PART_TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise InvalidArgumentError(
            f"{where}.type",
            f"{shown(kind)} is not a type of part; use one of {', '.join(PART_TYPES)}, or give a provider's as content",
        )
    fields = {key: value for key, value in given.items() if key != "type"}
    if cls is ImagePart:
        fields = spell_image(fields)
        if "url" not in fields:
            missing = "url" if kind == "image" else "image_url"
            raise InvalidArgumentError(f"{where}.{missing}", "is missing; say where the image is")
    if cls is ToolPart:
        fields = spell_tool(fields)
    unknown = {
        name: value
        for name, value in fields.items()
        if name not in cls.__struct_fields__ and not is_no_content(name, value)
    }
    return _keeping(given, cls, fields, unknown, where) if unknown else (cls, fields)


def _keeping(
    given: dict[str, Any], cls: type[Part], fields: dict[str, Any], unknown: dict[str, Any], where: str
) -> tuple[type[Part], dict[str, Any]]:
    """A part with fields that are not known here: they are kept, or refused where there is no place for them."""
    if cls is ProviderPart or (cls is ToolPart and fields.get("provider_fields") is not None):
        raise InvalidArgumentError(f"{where}.{next(iter(unknown))}", "is not a field of this part; put it in metadata")
    if cls is ToolPart:
        return cls, {**fields, "provider_fields": unknown}
    return ProviderPart, {"provider": "other", "block": given}


def _moved_apart(parts: list[Part], message: int, settings: Settings) -> list[Output]:
    """Take large tool outputs out of `parts`, leaving a preview and the key under which the whole can be read."""
    outputs: list[Output] = []
    for number, part in enumerate(parts):
        if not isinstance(part, ToolPart):
            continue
        content = as_text(part.tool_output)
        result_id, chars, shown = "", 0, part.tool_output
        if len(content) > settings.tool_output_threshold:
            result_id = f"tr_{hashlib.sha256(content.encode()).hexdigest()[:40]}"
            chars, shown = len(content), content[: settings.tool_output_preview]
            outputs.append(Output(message, number, result_id, content, part.tool_id, part.tool_name))
        parts[number] = msgspec.structs.replace(
            part, tool_output=shown, tool_result_id=result_id, tool_output_chars=chars
        )
    return outputs


def _extra(message: NewMessage, where: str) -> str | None:
    if (
        message.peer_id is None
        and message.turn_id is None
        and message.message_kind is None
        and message.source_message_ids is None
        and message.metadata is None
    ):
        return None
    extra = Extra(message.peer_id, message.turn_id, message.message_kind, message.source_message_ids, message.metadata)
    for name, value in msgspec.structs.asdict(extra).items():
        storable_json(f"{where}{name}", value)
    # Sorted: whoever repeats an append may have the keys in another order.
    return msgspec.json.encode(extra, order="deterministic").decode()
