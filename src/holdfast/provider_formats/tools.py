"""Calls of tools and their results, as OpenAI's chat, its responses and Anthropic's messages have them."""

from typing import Any

from holdfast.model.parts import Part, ProviderPart, ToolPart, ToolStatus
from holdfast.provider_formats.contents import CACHE_MARKS, kept, kind_of, read_output

Names = dict[str, str]
"""The names of the tools that were called so far, by the ids of the calls."""


def read_call(call: dict[str, Any], names: Names) -> Part:
    """One of `tool_calls`. What is called is inside: `function`, or `custom`; the arguments stay the text they are.

    >>> call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n":  1}'}}
    >>> read_call(call, {}).tool_input
    '{"n":  1}'
    """
    field = next((key for key in ("function", "custom") if isinstance(call.get(key), dict)), None)
    function = call if field is None else call[field]
    given = "input" if field == "custom" or "arguments" not in function else "arguments"
    taken = {"name", given}
    if field is None:
        rest = without(call, {"id", *taken})
    else:
        inner = without(function, taken)
        rest = without(call, {"id", field}) | ({field: inner} if inner else {})
    if rest.get("type") == "function":
        del rest["type"]
    part = _call(call.get("id") or "", function.get("name"), function.get(given), rest, names)
    return part or ProviderPart("openai", {"tool_calls": [call]})


def read_function_call(call: dict[str, Any], names: Names) -> Part:
    """A `function_call`, from the time before calls had ids."""
    part = _call("", call.get("name"), call.get("arguments"), without(call, {"name", "arguments"}), names)
    return part or ProviderPart("openai", {"function_call": call})


def read_tool_use(block: dict[str, Any], names: Names) -> Part:
    rest = without(block, {"type", "id", "name", "input"})
    return _call(block.get("id"), block.get("name"), block.get("input"), rest, names) or kept(block)


def read_tool_result(block: dict[str, Any], names: Names) -> Part:
    tool_id = block.get("tool_use_id")
    if not isinstance(tool_id, str):
        return kept(block)
    rest = without(block, {"type", "tool_use_id", "content", "is_error"})
    return result(tool_id, names.get(tool_id, ""), block.get("content"), rest, failed=block.get("is_error") is True)


def result(tool_id: str, name: str, output: Any, rest: dict[str, Any], *, failed: bool = False) -> ToolPart:
    status: ToolStatus = "error" if failed else "completed"
    return ToolPart(
        tool_id=tool_id,
        tool_name=name,
        tool_output=read_output(output),
        tool_status=status,
        provider_fields=rest or None,
    )


def without(given: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """What is left of an object: neither what was taken from it, nor what is empty, nor marks for a cache."""
    return {
        key: value for key, value in given.items() if key not in taken and key not in CACHE_MARKS and value is not None
    }


def is_result(block: Any) -> bool:
    return kind_of(block) == "tool_result"


def _call(tool_id: Any, name: Any, given: Any, rest: dict[str, Any], names: Names) -> ToolPart | None:
    """A call that is pending, or nothing if it does not call a tool by its name."""
    if not isinstance(name, str) or not isinstance(tool_id, str):
        return None
    names[tool_id] = name
    return ToolPart(
        tool_id=tool_id, tool_name=name, tool_input=given, tool_status="pending", provider_fields=rest or None
    )
