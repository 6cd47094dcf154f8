"""What SKILL.md says about a skill."""

from typing import Any

import msgspec

from holdfast.model.tree.files import VIEWS
from holdfast.skills import front_matter

SKILL_FILE = "SKILL.md"
MAX_NAME_CHARS = 200
RESERVED_NAMES = frozenset({"find", "validate"})
"""Names that are operations on skills: `POST /skills/find`."""
_UNSAFE = frozenset("/\\")


class SkillDefinition(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    tags: list[str]
    allowed_tools: list[str]
    license: str
    compatibility: str
    metadata: dict[str, Any]
    fields: dict[str, Any]
    """All fields of the front matter."""
    notes: list[str]
    """What other readers of YAML may refuse."""
    body: str


def read_definition(text: str) -> SkillDefinition:
    r"""Read SKILL.md. Raises `YamlError` if its front matter is missing or invalid. Fields may be missing.

    >>> skill = read_definition("---\nname: search\nallowed-tools: Read Bash(git:*)\n---\n# Search")
    >>> skill.name, skill.allowed_tools
    ('search', ['Read', 'Bash(git:*)'])
    """
    found = front_matter.split(text)
    fields = found.values
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    tools = fields.get("allowed-tools", fields.get("allowed_tools"))
    return SkillDefinition(
        name=_text(fields.get("name")),
        description=_text(fields.get("description")),
        tags=_texts(fields.get("tags", metadata.get("tags")), ","),
        allowed_tools=split_tools(tools) if isinstance(tools, str) else _texts(tools, ","),
        license=_text(fields.get("license")),
        compatibility=_text(fields.get("compatibility")),
        metadata=metadata,
        fields=fields,
        notes=found.notes,
        body=found.body,
    )


def empty_definition(body: str = "") -> SkillDefinition:
    """Return what a file without front matter says about a skill: nothing."""
    return SkillDefinition(
        name="", description="", tags=[], allowed_tools=[], license="", compatibility="", metadata={}, fields={},
        notes=[], body=body,
    )  # fmt: skip


def split_tools(text: str) -> list[str]:
    """Split a list of tools at spaces and commas. What is in brackets stays whole.

    >>> split_tools("Read, Bash(npm run *) Grep")
    ['Read', 'Bash(npm run *)', 'Grep']
    """
    tools: list[str] = []
    start = depth = 0
    for at, sign in enumerate(f"{text} "):
        depth += (sign == "(") - (sign == ")" and depth > 0)
        if sign in " ,\n\t" and not depth:
            tools.append(text[start:at])
            start = at + 1
    tools.append(text[start:])
    return [tool.strip() for tool in tools if tool.strip()]


def name_problem(name: str) -> str:
    """Return why a name cannot be that of a skill, or an empty text."""
    if not name:
        return "is missing; give the skill a name"
    if len(name) > MAX_NAME_CHARS:
        return f"is longer than {MAX_NAME_CHARS} characters; use a shorter one"
    if name != name.strip() or not name.isprintable():
        return "begins or ends with a space, or has a character that cannot be printed; remove it"
    if _UNSAFE & set(name) or name.startswith("."):
        return "begins with a dot or has a slash; use one name, such as code-review"
    if name in RESERVED_NAMES or name in VIEWS:
        return "is reserved; use another name"
    return ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: Any, separator: str) -> list[str]:
    values = value.split(separator) if isinstance(value, str) else value if isinstance(value, list) else []
    return [each.strip() for each in values if isinstance(each, str) and each.strip()]
