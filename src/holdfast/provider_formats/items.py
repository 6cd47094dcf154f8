"""Translates items of OpenAI's Responses API: calls and results become tool parts, others are kept unchanged."""

from typing import Any

from holdfast.model.messages import Role
from holdfast.model.parts import Part, ProviderPart, ToolPart
from holdfast.provider_formats.contents import type_of
from holdfast.provider_formats.fields import ROLES
from holdfast.provider_formats.tools import ToolNames, remaining_fields, tool_result_part

RESPONSE_ITEM_TYPES = frozenset(
    {
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_trigger",
        "computer_call",
        "computer_call_output",
        "configuration_update",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "function_call",
        "function_call_output",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "reasoning",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
"""The published types."""
RESPONSE_ITEM_SUFFIXES = ("_call", "_output", "_request", "_response")
"""Endings of types that OpenAI may add. Such items are translated by the same rules."""

_ARGUMENT_FIELDS = {"function_call": "arguments", "custom_tool_call": "input"}
_FUNCTION_ITEMS = {"function_call", "function_call_output"}
"""The default types of a tool part. Other types are stored in its `provider_fields`."""
_OUTPUT_FIELDS = ("output", "result", "tools")
_ITEM_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "compaction_trigger": "user",
    "configuration_update": "system",
    "mcp_approval_response": "user",
}
_CALL_FIELDS = {"type", "id", "call_id", "status"}
"""Fields that describe a call. All other fields are its input."""


def is_response_item_type(item_type: str) -> bool:
    return item_type in RESPONSE_ITEM_TYPES or item_type.endswith(RESPONSE_ITEM_SUFFIXES)


def translate_item(item: dict[str, Any], names: ToolNames) -> tuple[Role, Part]:
    """Return the role and the part of the message that an item becomes.

    >>> translate_item({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{ }"}, {})[1].tool_input
    '{ }'
    """
    item_type = type_of(item)
    call_id = item.get("id" if item_type == "local_shell_call_output" else "call_id")
    if item_type.endswith("_output"):
        if not isinstance(call_id, str):
            return "tool", ProviderPart("openai", item)
        return "tool", _translate_result(item, item_type, call_id, names)
    part = _translate_call(item, item_type, call_id, names) if isinstance(call_id, str) else None
    return _role(item, item_type), ProviderPart("openai", item) if part is None else part


def _translate_call(item: dict[str, Any], item_type: str, call_id: str, names: ToolNames) -> Part | None:
    field = _ARGUMENT_FIELDS.get(item_type)
    if field is None:
        names[call_id] = item_type.removesuffix("_call")
        tool_input = {key: value for key, value in item.items() if key not in _CALL_FIELDS}
        rest = {key: value for key, value in item.items() if key in _CALL_FIELDS and key != "call_id"}
        return ToolPart(call_id, names[call_id], tool_input=tool_input, tool_status="pending", provider_fields=rest)
    name = item.get("name")
    if not isinstance(name, str):
        return None
    names[call_id] = name
    rest = remaining_fields(item, {"call_id", "name", field, "type" if item_type in _FUNCTION_ITEMS else ""})
    return ToolPart(call_id, name, tool_input=item.get(field), tool_status="pending", provider_fields=rest or None)


def _translate_result(item: dict[str, Any], item_type: str, call_id: str, names: ToolNames) -> Part:
    field = next((field for field in _OUTPUT_FIELDS if field in item), None)
    name = item.get("name")
    tool_name = name if isinstance(name, str) else names.get(call_id)
    if tool_name is None:
        is_user_tool = item_type.startswith(("function", "custom_tool"))
        tool_name = "" if is_user_tool else item_type.removesuffix("_output").removesuffix("_call")
    used = {
        "call_id",
        field or "",
        "name" if tool_name == name else "",
        "type" if item_type in _FUNCTION_ITEMS else "",
    }
    output = item.get(field) if field else None
    return tool_result_part(
        call_id, tool_name, output, remaining_fields(item, used), failed=item.get("status") == "failed"
    )


def _role(item: dict[str, Any], item_type: str) -> Role:
    role = item.get("role")
    own_role = ROLES.get(role) if isinstance(role, str) else None
    return own_role or _ITEM_ROLES.get(item_type, "assistant")
