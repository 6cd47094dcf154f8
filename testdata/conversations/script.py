"""How a test conversation is written down: turns by functions, tool calls beside the words they came with."""

from dataclasses import dataclass
from typing import Any

Turn = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """Realistic agent work, and what of it nobody may forget."""

    name: str
    language: str
    messages: list[Turn]
    """As `add_message` takes them."""
    essentials: list[str]
    """Ids, paths, numbers and rules that must be in the overview, letter by letter."""


def user(text: str) -> Turn:
    return {"role": "user", "content": text}


def system(text: str) -> Turn:
    return {"role": "system", "content": text}


def assistant(text: str, *calls: dict[str, Any]) -> Turn:
    if not calls:
        return {"role": "assistant", "content": text}
    said = [{"type": "text", "text": text}] if text else []
    return {"role": "assistant", "parts": [*said, *calls]}


def tool(name: str, given: Any, output: Any) -> dict[str, Any]:
    return _call(name, given, output, "completed")


def failed(name: str, given: Any, output: Any) -> dict[str, Any]:
    return _call(name, given, output, "error")


def _call(name: str, given: Any, output: Any, status: str) -> dict[str, Any]:
    spelled = {"type": "tool", "tool_id": f"call_{name}", "tool_name": name, "tool_input": given}
    return {**spelled, "tool_output": output, "tool_status": status}
