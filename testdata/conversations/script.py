"""Functions that build the turns of a test conversation. Tool calls are parts of the turn that contains them."""

from dataclasses import dataclass
from typing import Any

Turn = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A conversation of realistic agent work, and the values that a summary must keep."""

    name: str
    language: str
    messages: list[Turn]
    """The arguments of `add_message` for each message."""
    essentials: list[str]
    """Ids, paths, numbers and rules that the overview must contain literally."""


def user(text: str) -> Turn:
    return {"role": "user", "content": text}


def system(text: str) -> Turn:
    return {"role": "system", "content": text}


def assistant(text: str, *calls: dict[str, Any]) -> Turn:
    if not calls:
        return {"role": "assistant", "content": text}
    text_parts = [{"type": "text", "text": text}] if text else []
    return {"role": "assistant", "parts": [*text_parts, *calls]}


def tool(name: str, arguments: Any, output: Any) -> dict[str, Any]:
    """Return the part of a tool call that succeeded."""
    return _call(name, arguments, output, "completed")


def failed(name: str, arguments: Any, output: Any) -> dict[str, Any]:
    """Return the part of a tool call that failed."""
    return _call(name, arguments, output, "error")


def _call(name: str, arguments: Any, output: Any, status: str) -> dict[str, Any]:
    call = {"type": "tool", "tool_id": f"call_{name}", "tool_name": name, "tool_input": arguments}
    return {**call, "tool_output": output, "tool_status": status}
