"""Objects and MCP tool definitions as SKILL.md."""

from typing import Any

import msgspec

from holdfast.skills import front_matter
from holdfast.skills.simple_yaml import YamlError

MAX_PARAMETER_DEPTH = 6
"""How deep nested parameters are described. The schema below them has all of it."""
MAX_PARAMETERS = 500
MAX_PARAMETER_NAME = 200
_SCHEMA_NAMES = ("inputSchema", "input_schema")
_TEXT_FIELDS = ("description", "license", "compatibility")
_CONTENT_NAMES = ("content", "body", "instructions")


class ConversionError(ValueError):
    """An object is no skill."""

    def __init__(self, rule: str, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.rule, self.field, self.problem = rule, field, problem


def to_skill_text(data: Any) -> str:
    """Return an object, or the definition of an MCP tool, as the text of SKILL.md.

    >>> print(to_skill_text({"name": "search", "description": "Finds text.", "content": "# Search"}))
    ---
    name: "search"
    description: "Finds text."
    ---
    <BLANKLINE>
    # Search
    <BLANKLINE>
    """
    if not isinstance(data, dict):
        raise ConversionError("type", "data", "is not an object or a text; give the text of SKILL.md, or an object")
    if not isinstance(data.get("name"), str) or not data["name"].strip():
        raise ConversionError("name", "name", "is missing; give the skill a name")
    schema = next((data[name] for name in _SCHEMA_NAMES if isinstance(data.get(name), dict)), None)
    fields, body = _fields_of(data)
    if schema is not None:
        body = f"{_tool_body(data, schema)}\n\n{body}".rstrip()
    front = "".join(_field_lines(name, value) for name, value in fields.items())
    return f"---\n{front}---\n\n{body.strip()}\n" if body.strip() else f"---\n{front}---\n"


def _fields_of(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the front matter and the body of an object. Its content may be a whole SKILL.md."""
    content = next((data[name] for name in _CONTENT_NAMES if isinstance(data.get(name), str)), "")
    fields: dict[str, Any] = {"name": data["name"].strip()}
    given: dict[str, Any] = {}
    if front_matter.has_front_matter(content):
        try:
            found = front_matter.split(content)
        except YamlError as error:
            raise ConversionError("front_matter", "content", str(error)) from None
        given, content = {name: value for name, value in found.values.items() if value is not None}, found.body
    for name in _TEXT_FIELDS:
        value = data.get(name)
        if value is not None and not isinstance(value, str):
            raise ConversionError("field_type", name, "is not a text")
        if value:
            fields[name] = value
    tools = data.get("allowed-tools", data.get("allowed_tools", data.get("allowedTools")))
    others = {"allowed-tools": tools, "tags": data.get("tags"), "metadata": data.get("metadata")}
    return {**given, **fields, **{name: value for name, value in others.items() if value}}, content


def _field_lines(name: str, value: Any) -> str:
    """Return a field of the front matter. JSON is YAML, so a list or a mapping is one line of JSON."""
    key = name if name.isascii() and name.replace("-", "").replace("_", "").isalnum() else _json(name)
    try:
        return f"{key}: {_json(value)}\n"
    except (TypeError, ValueError, RecursionError):
        raise ConversionError("field_type", name, "cannot be written as JSON; use texts, numbers and lists") from None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f").replace("\u2028", "\\u2028")


def _tool_body(data: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return a readable description of an MCP tool, and its schemas."""
    description = data.get("description") or ""
    title = data.get("title")
    lines = [f"# {title if isinstance(title, str) and title else data['name']}", ""]
    if description:
        lines += [description, ""]
    lines += ["## Parameters", ""]
    parameters = _parameter_lines(schema, 0)[:MAX_PARAMETERS]
    lines += parameters or ["This tool takes no parameters."]
    shown = {name: data[name] for name in (*_SCHEMA_NAMES, "outputSchema", "annotations") if data.get(name)}
    encoded = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    fence = "`" * max(3, _longest_run(encoded) + 1)
    return "\n".join([*lines, "", "## Definition of the tool", "", f"{fence}json", encoded, fence])


def _parameter_lines(schema: dict[str, Any], depth: int) -> list[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or depth >= MAX_PARAMETER_DEPTH:
        return []
    required = schema.get("required")
    required = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    lines: list[str] = []
    for name, value in properties.items():
        if len(lines) >= MAX_PARAMETERS:
            break
        definition = value if isinstance(value, dict) else {}
        kind = ", ".join([_type_name(definition), *(["required"] if name in required else [])])
        shown = " ".join(name.split())[:MAX_PARAMETER_NAME]
        lines.append(f"{'  ' * depth}- `{shown}` ({kind}){_explanation(definition)}")
        items = definition.get("items")
        inner = items if isinstance(items, dict) and "properties" not in definition else definition
        lines += _parameter_lines(inner, depth + 1)
    return lines


def _type_name(definition: dict[str, Any]) -> str:
    kind = definition.get("type")
    if isinstance(kind, list):
        return " or ".join(str(each) for each in kind[:10])
    if kind == "array" and isinstance(definition.get("items"), dict):
        return f"array of {definition['items'].get('type', 'any')!s:.80}"
    return str(kind)[:80] if isinstance(kind, str) else "any"


def _explanation(definition: dict[str, Any]) -> str:
    pieces = []
    description = definition.get("description")
    if isinstance(description, str) and description.strip():
        pieces.append(" ".join(description.split()))
    values = definition.get("enum")
    if isinstance(values, list) and values:
        pieces.append(f"One of: {', '.join(_json(value) for value in values[:50])}.")
    if "default" in definition:
        pieces.append(f"Default: {_json(definition['default'])}.")
    return f": {' '.join(pieces)}" if pieces else ""


def _longest_run(text: str) -> int:
    """Return how many backticks follow one another."""
    longest = run = 0
    for sign in text:
        run = run + 1 if sign == "`" else 0
        longest = max(longest, run)
    return longest
