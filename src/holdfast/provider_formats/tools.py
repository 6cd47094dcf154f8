"""Translates tool calls and their results in the formats of OpenAI and Anthropic."""

from typing import Any

from holdfast.model.parts import Part, ProviderPart, ToolPart, ToolStatus
from holdfast.provider_formats.contents import CACHE_FIELDS, as_provider_part, translate_output, type_of

ToolNames = dict[str, str]
"""The name of the called tool by the id of each call so far."""


def translate_tool_call(call: dict[str, Any], names: ToolNames) -> Part:
    """Translate an entry of `tool_calls`. The arguments keep their exact text.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n":  1}'}}
    >>> translate_tool_call(call, {}).tool_input
    '{"n":  1}'
    """
    field = next((key for key in ("function", "custom") if isinstance(call.get(key), dict)), None)
    function = call if field is None else call[field]
    input_field = "input" if field == "custom" or "arguments" not in function else "arguments"
    used = {"name", input_field}
    if field is None:
        rest = remaining_fields(call, {"id", *used})
    else:
        inner = remaining_fields(function, used)
        rest = remaining_fields(call, {"id", field}) | ({field: inner} if inner else {})
    if rest.get("type") == "function":
        del rest["type"]
    part = _pending_call(call.get("id") or "", function.get("name"), function.get(input_field), rest, names)
    return part or ProviderPart("openai", {"tool_calls": [call]})


def translate_function_call(call: dict[str, Any], names: ToolNames) -> Part:
    """Translate a `function_call`, the deprecated format without call ids."""
    part = _pending_call(
        "", call.get("name"), call.get("arguments"), remaining_fields(call, {"name", "arguments"}), names
    )
    return part or ProviderPart("openai", {"function_call": call})


def translate_tool_use(block: dict[str, Any], names: ToolNames) -> Part:
    rest = remaining_fields(block, {"type", "id", "name", "input"})
    return _pending_call(block.get("id"), block.get("name"), block.get("input"), rest, names) or as_provider_part(block)


def translate_tool_result(block: dict[str, Any], names: ToolNames) -> Part:
    tool_id = block.get("tool_use_id")
    if not isinstance(tool_id, str):
        return as_provider_part(block)
    rest = remaining_fields(block, {"type", "tool_use_id", "content", "is_error"})
    return tool_result_part(
        tool_id, names.get(tool_id, ""), block.get("content"), rest, failed=block.get("is_error") is True
    )


def tool_result_part(tool_id: str, name: str, output: Any, rest: dict[str, Any], *, failed: bool = False) -> ToolPart:
    status: ToolStatus = "error" if failed else "completed"
    return ToolPart(
        tool_id=tool_id,
        tool_name=name,
        tool_output=translate_output(output),
        tool_status=status,
        provider_fields=rest or None,
    )


def remaining_fields(fields: dict[str, Any], used: set[str]) -> dict[str, Any]:
    """Return the fields that are not used elsewhere, without null values and hints for a cache."""
    return {
        key: value for key, value in fields.items() if key not in used and key not in CACHE_FIELDS and value is not None
    }


def is_tool_result(block: Any) -> bool:
    return type_of(block) == "tool_result"


def _pending_call(tool_id: Any, name: Any, tool_input: Any, rest: dict[str, Any], names: ToolNames) -> ToolPart | None:
    """Return a pending call, or None if the id or the name of the tool is not a string."""
    if not isinstance(name, str) or not isinstance(tool_id, str):
        return None
    names[tool_id] = name
    return ToolPart(
        tool_id=tool_id, tool_name=name, tool_input=tool_input, tool_status="pending", provider_fields=rest or None
    )
