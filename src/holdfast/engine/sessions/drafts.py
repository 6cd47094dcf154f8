"""Validate new messages and turn them into drafts: accepted spellings are normalised, tokens counted, parts encoded."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.config import Settings
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.json_documents import MAX_VALUES, has_too_many_values
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
    normalise_image_fields,
    normalise_tool_fields,
)
from holdfast.provider_formats import is_droppable_field
from holdfast.storable import storable_json, storable_text, to_plain_str
from holdfast.store.checked.message_rows import Extra
from holdfast.store.tables.messages import Draft
from holdfast.store.tables.tool_results import LargeOutput, id_of_content
from holdfast.store.timestamps import storable_micros
from holdfast.text import tokens
from holdfast.validation import convert

MAX_PARTS = 1_000

_encode = msgspec.json.Encoder().encode


class CheckedMessages(msgspec.Struct, frozen=True):
    drafts: list[Draft]
    outputs: list[LargeOutput]
    given_ids: dict[str, int]
    """The ids that the caller gave, each with the index of its message."""


def make_drafts(context: CallContext, messages: Sequence[NewMessage], path: str) -> CheckedMessages:
    """Validate `messages` and make their drafts.

    `path` is the prefix of a message's fields in errors; `{}` in it is replaced by the message's index.
    """
    drafts: list[Draft] = []
    outputs: list[LargeOutput] = []
    given_ids: dict[str, int] = {}
    for index, message in enumerate(messages):
        prefix = path.format(index)
        if message.id is not None:
            if message.id in given_ids:
                raise InvalidArgumentError(f"{prefix}id", f"{message.id!r} occurs twice in this batch")
            given_ids[message.id] = index
        parts = _parse_parts(message, prefix)
        large_outputs = _extract_large_outputs(parts, index, context.settings)
        drafts.append(_draft(context, message, parts, prefix, large_outputs))
        outputs += large_outputs
    return CheckedMessages(drafts, sorted(outputs, key=lambda output: output.hash) if outputs else outputs, given_ids)


def _draft(
    context: CallContext, message: NewMessage, parts: list[Part], prefix: str, large_outputs: list[LargeOutput]
) -> Draft:
    encoded = _encode(parts)
    extra = _encode_extra(message, prefix)
    size = len(encoded)
    if extra or large_outputs:
        size += len((extra or "").encode()) + sum([len(output.content.encode()) for output in large_outputs])
    max_bytes = context.settings.max_message_bytes
    if size > max_bytes:
        raise InvalidArgumentError(f"{prefix}parts", f"are {size} bytes; a message may have at most {max_bytes}")
    if size > MAX_VALUES and has_too_many_values(encoded + (extra or "").encode()):
        raise InvalidArgumentError(
            f"{prefix}parts", f"have more than {MAX_VALUES} JSON values; give large data as a string"
        )
    return Draft(
        id=message.id,
        role=message.role,
        parts_json=encoded.decode(),
        extra=extra,
        tokens=tokens.count_parts(parts, tokens.counter(context.settings.token_counter)),
        created_at=context.now
        if message.created_at is None
        else storable_micros(f"{prefix}created_at", message.created_at),
        parts=parts,
    )


def _parse_parts(message: NewMessage, prefix: str) -> list[Part]:
    content = None if message.content is None else storable_text(f"{prefix}content", to_plain_str(message.content))
    if message.parts is None:
        if content is None:
            raise InvalidArgumentError(f"{prefix}parts", "are missing; give parts or content")
        return [TextPart(content)]
    if not 1 <= len(message.parts) <= MAX_PARTS:
        raise InvalidArgumentError(f"{prefix}parts", f"has {len(message.parts)} parts; give 1 to {MAX_PARTS}")
    return [_parse_part(part, f"{prefix}parts[{number}]") for number, part in enumerate(message.parts)]


def _parse_part(value: Any, path: str) -> Part:
    if isinstance(value, PartBase) and value.type in PART_TYPES:
        cls, fields = PART_TYPES[value.type], msgspec.structs.asdict(value)
    elif isinstance(value, dict):
        cls, fields = _normalise_part(value, path)
    else:
        raise InvalidArgumentError(path, f"is a {type(value).__name__}; give a part object or a dictionary")
    part: Part = convert({name: to_plain_str(field) for name, field in fields.items()}, cls, path=path)
    for name in cls.__struct_fields__:
        field = getattr(part, name)
        if isinstance(field, str):
            storable_text(f"{path}.{name}", field)
        elif field is not None:
            storable_json(f"{path}.{name}", field)
    return part


def _normalise_part(value: dict[str, Any], path: str) -> tuple[type[Part], dict[str, Any]]:
    """Return the class of a part and its fields, with the field names of that class."""
    kind = value.get("type")
    cls = PART_TYPES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise InvalidArgumentError(
            f"{path}.type",
            f"{short_repr(kind)} is not a part type; use one of {', '.join(PART_TYPES)},"
            " or give provider blocks as content",
        )
    fields = {name: field for name, field in value.items() if name != "type"}
    if cls is ImagePart:
        fields = normalise_image_fields(fields)
        if "url" not in fields:
            missing = "url" if kind == "image" else "image_url"
            raise InvalidArgumentError(f"{path}.{missing}", "is missing; give the URL of the image")
    if cls is ToolPart:
        fields = normalise_tool_fields(fields)
    unknown = {
        name: field
        for name, field in fields.items()
        if name not in cls.__struct_fields__ and not is_droppable_field(name, field)
    }
    return _keep_unknown_fields(value, cls, fields, unknown, path) if unknown else (cls, fields)


def _keep_unknown_fields(
    value: dict[str, Any], cls: type[Part], fields: dict[str, Any], unknown: dict[str, Any], path: str
) -> tuple[type[Part], dict[str, Any]]:
    """Keep the unknown fields of a part, or reject them if its class cannot hold them.

    A tool part keeps them in `provider_fields`. Any other part becomes a `ProviderPart` with the block as given.
    """
    if cls is ProviderPart or (cls is ToolPart and fields.get("provider_fields") is not None):
        raise InvalidArgumentError(f"{path}.{next(iter(unknown))}", "is not a field of this part; put it in metadata")
    if cls is ToolPart:
        return cls, {**fields, "provider_fields": unknown}
    return ProviderPart, {"provider": "other", "block": value}


def _extract_large_outputs(parts: list[Part], message_index: int, settings: Settings) -> list[LargeOutput]:
    """Remove large tool outputs from `parts`. A preview and the id of the stored output remain."""
    outputs: list[LargeOutput] = []
    for number, part in enumerate(parts):
        if not isinstance(part, ToolPart):
            continue
        content = as_text(part.tool_output)
        result_id, chars, kept_output = "", 0, part.tool_output
        if len(content) > settings.tool_output_threshold:
            result_id = id_of_content(content)
            chars, kept_output = len(content), content[: settings.tool_output_preview]
            outputs.append(LargeOutput(message_index, number, result_id, content, part.tool_id, part.tool_name))
        parts[number] = msgspec.structs.replace(
            part, tool_output=kept_output, tool_result_id=result_id, tool_output_chars=chars
        )
    return outputs


def _encode_extra(message: NewMessage, prefix: str) -> str | None:
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
        storable_json(f"{prefix}{name}", value)
    # Keys are sorted, so that a retried append is recognised even if its keys are in another order.
    return msgspec.json.encode(extra, order="deterministic").decode()
