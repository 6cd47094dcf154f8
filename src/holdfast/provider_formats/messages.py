"""A message of any of these formats as the fields of a `NewMessage`."""

from difflib import get_close_matches
from typing import Any

from holdfast.errors import InvalidArgumentError, shown
from holdfast.model.parts import Part, ProviderPart, TextPart
from holdfast.provider_formats.contents import blocks_of, kind_of, read_block
from holdfast.provider_formats.fields import (
    AFTER_CONTENT,
    BEFORE_CONTENT,
    KNOWN,
    OWN,
    PROVIDER_FIELDS,
    ROLES,
    SHARED,
    ProviderFields,
    is_nothing,
)
from holdfast.provider_formats.items import is_item_kind, read_item
from holdfast.provider_formats.tools import (
    Names,
    is_result,
    read_call,
    read_function_call,
    read_tool_result,
    read_tool_use,
    result,
)
from holdfast.storable import storable_json
from holdfast.validation import conform

Fields = dict[str, Any]

_ELSEWHERE = ("developer", "function")
_OF_BLOCKS = (list, tuple, dict)
_OF_THE_LOG = frozenset({"seq", "tokens"})
"""What a message that was read from Holdfast has by where it stood: added elsewhere, it gets its own."""
_MEANT, _ALMOST = sorted({*OWN, "idempotency_key", "expected_seq"}), 0.88
"""Names that are easily misspelled, and how alike a name must be to be taken for one of them."""
_PARTS_OF = ("tool_calls", "tool_call_id", "function_call", "refusal", *BEFORE_CONTENT, *AFTER_CONTENT)
"""Fields that say something, as parts do."""


def is_plain(given: Fields, own: frozenset[str] = OWN) -> bool:
    """Whether a message needs no translation: it has Holdfast's own fields alone, `own`, and its content is a text."""
    content = given.get("content")
    return (
        given.keys() <= own
        and (type(content) is str or not isinstance(content, _OF_BLOCKS))
        and given.get("role") not in _ELSEWHERE
    )


def is_item(given: Any) -> bool:
    """Whether an object is an item of OpenAI's responses that is not a message: its type says so, and nothing else."""
    if not is_item_kind(kind_of(given)):
        return False
    return "role" not in given or all(is_nothing(given.get(field)) for field in ("content", "parts", *_PARTS_OF))


def read_message(where: str, given: Fields, names: Names) -> Fields:
    """The fields of a `NewMessage`, still to be checked. `where` is the path to `given`, up to a field's name.

    `names` are the tools called so far, for the results that follow. Fields that nothing is known of, which a newer
    client or another provider may send, are kept in the metadata.
    """
    if is_item(given):
        return _read_item(where, given, names)
    if given.get("role") is None:
        raise InvalidArgumentError(f"{where}role", _role_is_missing(kind_of(given)))
    known = KNOWN if given.get("parts") is None else KNOWN | _OF_THE_LOG
    unknown = {key: value for key, value in given.items() if key not in known and value is not None}
    if unknown.get("type") == "message":
        del unknown["type"]
    _refuse_misspelled(where, unknown)
    stated = {key: value for key, value in given.items() if key in ProviderFields.__struct_fields__}
    for key, value in stated.items():
        storable_json(f"{where}{key}", value)
    fields = conform(stated, ProviderFields, where=where.rstrip(", .")) if where else conform(stated, ProviderFields)
    read: Fields = {key: value for key, value in given.items() if key in OWN and key not in SHARED}
    read["role"] = _role(fields)
    _read_parts(where, given, fields, names, read)
    if fields.name is not None and fields.tool_call_id is None and read["role"] != "tool":
        if read.get("peer_id") is None:
            read["peer_id"] = fields.name
        elif read["peer_id"] != fields.name:
            unknown["name"] = fields.name
    if _is_refusal(fields) and read.get("message_kind") is None:
        read["message_kind"] = "refusal"
    return read if not unknown else {**read, "metadata": _with_unknown(where, read.get("metadata"), unknown)}


def _refuse_misspelled(where: str, unknown: Fields) -> None:
    """An error for a field that is almost one of ours: kept as unknown, a misspelled key would keep nothing once."""
    for key in unknown:
        if meant := get_close_matches(key, _MEANT, 1, _ALMOST):
            raise InvalidArgumentError(f"{where}{key}", f"is not a field of a message; {meant[0]} is")


def _role_is_missing(kind: str) -> str:
    if kind and kind != "message":
        return f"is missing, and {shown(kind)} is not a message by itself; give it as content of a message with a role"
    return f"is missing; use one of {', '.join(ROLES)}"


def _read_item(where: str, given: Fields, names: Names) -> Fields:
    own = {key: value for key, value in given.items() if key in OWN and key not in {*SHARED, "id"}}
    item = {key: value for key, value in given.items() if key not in own}
    for key, value in item.items():
        storable_json(f"{where}{key}", value)
    role, part = read_item(item, names)
    return {**own, "role": role, "parts": [part]}


def _role(fields: ProviderFields) -> str:
    content = fields.content
    if fields.role == "user" and isinstance(content, list) and content and all(map(is_result, content)):
        return "tool"
    return ROLES[fields.role]


def _read_parts(where: str, given: Fields, fields: ProviderFields, names: Names, read: Fields) -> None:
    if given.get("parts") is not None:
        beside = next((field for field in _PARTS_OF if not is_nothing(getattr(fields, field))), None)
        beside = "content" if isinstance(fields.content, list | dict) else beside
        if beside is not None:
            raise InvalidArgumentError(f"{where}{beside}", "stands beside parts, which say it all; give one of them")
        read |= {"content": fields.content or None, "parts": given["parts"]}
        return
    parts = _parts(where, fields, names)
    if parts:
        read["parts"] = parts
    else:  # as it is: nothing, or an empty text
        read["content"] = None if isinstance(fields.content, list | dict) else fields.content


def _parts(where: str, fields: ProviderFields, names: Names) -> list[Part]:
    parts = _kept(fields, BEFORE_CONTENT)
    if fields.tool_call_id is not None or (ROLES[fields.role] == "tool" and fields.name is not None):
        tool_id = fields.tool_call_id or ""
        parts.append(result(tool_id, fields.name or names.get(tool_id, ""), fields.content, {}))
    else:
        parts += [_block(block, names) for block in blocks_of(f"{where}content", fields.content)]
    if fields.refusal:
        parts.append(TextPart(fields.refusal))
    parts += [read_call(call, names) for call in fields.tool_calls or []]
    if fields.function_call:
        parts.append(read_function_call(fields.function_call, names))
    return parts + _kept(fields, AFTER_CONTENT)


def _block(block: Any, names: Names) -> Part:
    match kind_of(block):
        case "tool_use":
            return read_tool_use(block, names)
        case "tool_result":
            return read_tool_result(block, names)
        case _:
            return read_block(block)


def _kept(fields: ProviderFields, among: tuple[str, ...]) -> list[Part]:
    found = {field: getattr(fields, field) for field in among}
    return [ProviderPart("openai", {field: value}) for field, value in found.items() if not is_nothing(value)]


def _is_refusal(fields: ProviderFields) -> bool:
    blocks = fields.content if isinstance(fields.content, list) else []
    return bool(fields.refusal) or any(kind_of(block) == "refusal" for block in blocks)


def _with_unknown(where: str, metadata: Any, unknown: Fields) -> Fields:
    for key, value in unknown.items():
        storable_json(f"{where}{key}", value)
    if metadata is None:
        return {PROVIDER_FIELDS: unknown}
    if not isinstance(metadata, dict):
        raise InvalidArgumentError(f"{where}metadata", f"{shown(metadata)} is not an object")
    if PROVIDER_FIELDS in metadata:
        raise InvalidArgumentError(
            f"{where}metadata.{PROVIDER_FIELDS}", f"is where {', '.join(unknown)} would be kept; use another key"
        )
    return {**metadata, PROVIDER_FIELDS: unknown}
