"""Items of OpenAI's responses: calls and results become tool parts, any other is kept as it is."""

from typing import Any

from holdfast.model.messages import Role
from holdfast.model.parts import Part, ProviderPart, ToolPart
from holdfast.provider_formats.contents import kind_of
from holdfast.provider_formats.fields import ROLES
from holdfast.provider_formats.tools import Names, result, without

ITEMS = frozenset(
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
"""Those that are published. Later ones are known by how their names end, and read by the same rules."""
LATER_ITEMS = ("_call", "_output", "_request", "_response")

_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
_FUNCTIONS = {"function_call", "function_call_output"}
"""What a tool part is if nothing else is written in it."""
_OUTPUTS = ("output", "result", "tools")
_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "compaction_trigger": "user",
    "configuration_update": "system",
    "mcp_approval_response": "user",
}
_ABOUT = {"type", "id", "call_id", "status"}
"""What is about a call rather than asked by it."""


def is_item_kind(kind: str) -> bool:
    return kind in ITEMS or kind.endswith(LATER_ITEMS)


def read_item(item: dict[str, Any], names: Names) -> tuple[Role, Part]:
    """Who speaks in an item, and what.

    >>> read_item({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{ }"}, {})[1].tool_input
    '{ }'
    """
    kind = kind_of(item)
    call_id = item.get("id" if kind == "local_shell_call_output" else "call_id")
    if kind.endswith("_output"):
        found = next((field for field in _OUTPUTS if field in item), None)
        if not isinstance(call_id, str):
            return "tool", ProviderPart("openai", item)
        return "tool", _result(item, kind, call_id, found, names)
    part = _call(item, kind, call_id, names) if isinstance(call_id, str) else None
    return _role(item, kind), ProviderPart("openai", item) if part is None else part


def _call(item: dict[str, Any], kind: str, call_id: str, names: Names) -> Part | None:
    field = _ARGUMENTS.get(kind)
    if field is None:
        names[call_id] = kind.removesuffix("_call")
        asked = {key: value for key, value in item.items() if key not in _ABOUT}
        about = {key: value for key, value in item.items() if key in _ABOUT and key != "call_id"}
        return ToolPart(call_id, names[call_id], tool_input=asked, tool_status="pending", provider_fields=about)
    name = item.get("name")
    if not isinstance(name, str):
        return None
    names[call_id] = name
    rest = without(item, {"call_id", "name", field, "type" if kind in _FUNCTIONS else ""})
    return ToolPart(call_id, name, tool_input=item.get(field), tool_status="pending", provider_fields=rest or None)


def _result(item: dict[str, Any], kind: str, call_id: str, field: str | None, names: Names) -> Part:
    name = item.get("name")
    called = name if isinstance(name, str) else names.get(call_id)
    if called is None:
        plain = kind.startswith(("function", "custom_tool"))
        called = "" if plain else kind.removesuffix("_output").removesuffix("_call")
    taken = {"call_id", field or "", "name" if called == name else "", "type" if kind in _FUNCTIONS else ""}
    rest = without(item, taken)
    return result(call_id, called, item.get(field) if field else None, rest, failed=item.get("status") == "failed")


def _role(item: dict[str, Any], kind: str) -> Role:
    role = item.get("role")
    stated = ROLES.get(role) if isinstance(role, str) else None
    return stated or _ROLES.get(kind, "assistant")
