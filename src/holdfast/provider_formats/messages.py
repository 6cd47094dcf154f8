"""Translates a message of OpenAI or Anthropic to the fields of a `NewMessage`."""

from difflib import get_close_matches
from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.model.base import safe_name
from holdfast.model.parts import Part, ProviderPart, TextPart
from holdfast.provider_formats.contents import split_blocks, translate_block, type_of
from holdfast.provider_formats.fields import (
    AFTER_CONTENT,
    BEFORE_CONTENT,
    KNOWN_FIELDS,
    OWN_FIELDS,
    PROVIDER_FIELDS,
    ROLES,
    SHARED_FIELDS,
    ProviderFields,
    is_empty,
)
from holdfast.provider_formats.items import is_response_item_type, translate_item
from holdfast.provider_formats.tools import (
    ToolNames,
    is_tool_result,
    tool_result_part,
    translate_function_call,
    translate_tool_call,
    translate_tool_result,
    translate_tool_use,
)
from holdfast.storable import storable_json
from holdfast.validation import convert

Fields = dict[str, Any]

_PROVIDER_ROLES = ("developer", "function")
_BLOCK_CONTAINERS = (list, tuple, dict)
_LOG_FIELDS = frozenset({"seq", "tokens"})
"""Fields that a message has by its position in a session. A copy in another session gets new values."""
_SUGGESTED_FIELDS = sorted({*OWN_FIELDS, "idempotency_key", "expected_seq"})
_MIN_SIMILARITY = 0.88
"""How similar an unknown field must be to a suggested one to count as a misspelling."""
_CONTENT_FIELDS = ("tool_calls", "tool_call_id", "function_call", "refusal", *BEFORE_CONTENT, *AFTER_CONTENT)
"""Fields that are translated to parts, except `content`."""


def is_native_message(message: Fields, own: frozenset[str] = OWN_FIELDS) -> bool:
    """Return whether a message needs no translation: it has only the fields `own`, and its content is a string."""
    content = message.get("content")
    return (
        message.keys() <= own
        and (type(content) is str or not isinstance(content, _BLOCK_CONTAINERS))
        and message.get("role") not in _PROVIDER_ROLES
    )


def is_response_item(item: Any) -> bool:
    """Return whether an object is an item of OpenAI's Responses API other than a message."""
    if not is_response_item_type(type_of(item)):
        return False
    return "role" not in item or all(is_empty(item.get(field)) for field in ("content", "parts", *_CONTENT_FIELDS))


def translate_message(path: str, message: Fields, names: ToolNames) -> Fields:
    """Return the fields of a `NewMessage`, not yet validated.

    `path` precedes the field names in errors, such as `messages[3].`. `names` are the tools called so far; calls in
    the message are added to it, and results are named by it. Fields that are not known here, which a newer client or
    another provider may send, are kept in the metadata.
    """
    if is_response_item(message):
        return _translate_item(path, message, names)
    if message.get("role") is None:
        raise InvalidArgumentError(f"{path}role", _missing_role_problem(type_of(message)))
    known = KNOWN_FIELDS if message.get("parts") is None else KNOWN_FIELDS | _LOG_FIELDS
    unknown = {key: value for key, value in message.items() if key not in known and value is not None}
    if unknown.get("type") == "message":
        del unknown["type"]
    _reject_misspelled(path, unknown)
    given = {key: value for key, value in message.items() if key in ProviderFields.__struct_fields__}
    for key, value in given.items():
        storable_json(f"{path}{key}", value)
    fields = convert(given, ProviderFields, path=path.rstrip(", ."))
    translated: Fields = {
        key: value for key, value in message.items() if key in OWN_FIELDS and key not in SHARED_FIELDS
    }
    translated["role"] = _role(fields)
    translated |= _content_or_parts(path, message, fields, names)
    if fields.name and fields.tool_call_id is None and translated["role"] != "tool":
        if translated.get("peer_id") is None:
            translated["peer_id"] = safe_name(fields.name)
        if translated["peer_id"] != fields.name:
            unknown["name"] = fields.name
    if _is_refusal(fields) and translated.get("message_kind") is None:
        translated["message_kind"] = "refusal"
    if unknown:
        translated["metadata"] = _add_unknown(path, translated.get("metadata"), unknown)
    return translated


def _reject_misspelled(path: str, unknown: Fields) -> None:
    """Raise an error for an almost correct field name. Kept as unknown, a misspelled key would have no effect."""
    for key in unknown:
        if similar := get_close_matches(key, _SUGGESTED_FIELDS, 1, _MIN_SIMILARITY):
            raise InvalidArgumentError(f"{path}{key}", f"is not a field of a message; did you mean {similar[0]}?")


def _missing_role_problem(message_type: str) -> str:
    if message_type and message_type != "message":
        return (
            f"is missing, and {short_repr(message_type)} is not a message by itself;"
            " pass it in the content of a message with a role"
        )
    return f"is missing; use one of {', '.join(ROLES)}"


def _translate_item(path: str, message: Fields, names: ToolNames) -> Fields:
    own = {key: value for key, value in message.items() if key in OWN_FIELDS and key not in {*SHARED_FIELDS, "id"}}
    item = {key: value for key, value in message.items() if key not in own}
    for key, value in item.items():
        storable_json(f"{path}{key}", value)
    role, part = translate_item(item, names)
    return {**own, "role": role, "parts": [part]}


def _role(fields: ProviderFields) -> str:
    content = fields.content
    if fields.role == "user" and isinstance(content, list) and content and all(map(is_tool_result, content)):
        return "tool"
    return ROLES[fields.role]


def _content_or_parts(path: str, message: Fields, fields: ProviderFields, names: ToolNames) -> Fields:
    if message.get("parts") is not None:
        extra = next((field for field in _CONTENT_FIELDS if not is_empty(getattr(fields, field))), None)
        extra = "content" if isinstance(fields.content, list | dict) else extra
        if extra is not None:
            raise InvalidArgumentError(f"{path}{extra}", "cannot be combined with parts; pass one of them")
        return {"content": fields.content or None, "parts": message["parts"]}
    if parts := _translate_parts(path, fields, names):
        return {"parts": parts}
    return {"content": None if isinstance(fields.content, list | dict) else fields.content}


def _translate_parts(path: str, fields: ProviderFields, names: ToolNames) -> list[Part]:
    parts = _provider_parts(fields, BEFORE_CONTENT)
    if fields.tool_call_id is not None or (ROLES[fields.role] == "tool" and fields.name is not None):
        tool_id = fields.tool_call_id or ""
        parts.append(tool_result_part(tool_id, fields.name or names.get(tool_id, ""), fields.content, {}))
    else:
        parts += [_translate_block(block, names) for block in split_blocks(f"{path}content", fields.content)]
    if fields.refusal:
        parts.append(TextPart(fields.refusal))
    parts += [translate_tool_call(call, names) for call in fields.tool_calls or []]
    if fields.function_call:
        parts.append(translate_function_call(fields.function_call, names))
    return parts + _provider_parts(fields, AFTER_CONTENT)


def _translate_block(block: Any, names: ToolNames) -> Part:
    match type_of(block):
        case "tool_use":
            return translate_tool_use(block, names)
        case "tool_result":
            return translate_tool_result(block, names)
        case _:
            return translate_block(block)


def _provider_parts(fields: ProviderFields, names: tuple[str, ...]) -> list[Part]:
    """Return a provider part for each of the named fields that is not empty."""
    values = {name: getattr(fields, name) for name in names}
    return [ProviderPart("openai", {name: value}) for name, value in values.items() if not is_empty(value)]


def _is_refusal(fields: ProviderFields) -> bool:
    blocks = fields.content if isinstance(fields.content, list) else []
    return bool(fields.refusal) or any(type_of(block) == "refusal" for block in blocks)


def _add_unknown(path: str, metadata: Any, unknown: Fields) -> Fields:
    """Return the metadata with the unknown fields of the message."""
    for key, value in unknown.items():
        storable_json(f"{path}{key}", value)
    if metadata is None:
        return {PROVIDER_FIELDS: unknown}
    if not isinstance(metadata, dict):
        raise InvalidArgumentError(f"{path}metadata", f"{short_repr(metadata)} is not an object")
    if PROVIDER_FIELDS in metadata:
        raise InvalidArgumentError(
            f"{path}metadata.{PROVIDER_FIELDS}",
            f"is reserved for unknown fields such as {', '.join(unknown)}; use another key",
        )
    return {**metadata, PROVIDER_FIELDS: unknown}
