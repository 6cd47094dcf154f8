"""What the model for tests says: plain rules, the same words each time for the same prompt."""

import hashlib
import re
from typing import Any

import msgspec

DIMENSIONS = 16
TURN = re.compile(r"^\[(m\d+)\] (\w+): (.*)$", re.MULTILINE)
"""How a conversation is written in a prompt: an alias, a role, and what was said."""


def summary_like(body: dict[str, Any], prompt: str) -> str:
    """JSON that fits the schema of the request, said of the conversation in its prompt; without a schema, prose."""
    schema = _schema(body, prompt)
    if schema is None:
        return prose(prompt)
    return msgspec.json.encode(_fill(schema, "", TURN.findall(prompt))).decode().replace('],"', '], "')


def prose(prompt: str) -> str:
    turns = TURN.findall(prompt)
    return f"Sure! They talked about this: {turns[0][2] if turns else prompt[:60]}"


def vector_of(text: str) -> list[float]:
    """Not of length one, and the same for the same text."""
    return [byte / 32 - 4 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def _schema(body: dict[str, Any], prompt: str) -> dict[str, Any] | None:
    if "output_config" in body:
        return body["output_config"]["format"]["schema"]  # type: ignore[no-any-return]
    if "tools" in body:
        return body["tools"][0]["input_schema"]  # type: ignore[no-any-return]
    if body.get("response_format", {}).get("type") == "json_schema":
        return body["response_format"]["json_schema"]["schema"]  # type: ignore[no-any-return]
    told = re.search(r"JSON schema:\n(\{.*\})$", prompt, re.MULTILINE)
    return msgspec.json.decode(told[1]) if told else None


def _fill(schema: dict[str, Any], name: str, turns: list[tuple[str, str, str]]) -> Any:
    """A value for a schema: lists have an item for each turn that is theirs, and `sources` cite the turn."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _fill(inner, name, turns) for name, inner in schema.get("properties", {}).items()}
        case "array" if name == "sources":
            return [alias for alias, _, _ in turns[:1]]
        case "array":
            return [_fill(schema["items"], "text", [turn]) for turn in _turns_of(name, turns)]
        case "string":
            return _words(name, turns)
    return {"integer": 0, "number": 0, "boolean": False}.get(schema.get("type", ""))


def _turns_of(name: str, turns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    role = {"requests": "user", "steps": "assistant", "facts": "assistant", "constraints": "user"}.get(name)
    return [turn for turn in turns if turn[1] == role][:3]


def _words(name: str, turns: list[tuple[str, str, str]]) -> str:
    said = turns[-1 if name in {"result", "status"} else 0][2] if turns else "nothing was said"
    return " ".join(said.split())[:200] if name in {"text", ""} else " ".join(said.split()[:12])
