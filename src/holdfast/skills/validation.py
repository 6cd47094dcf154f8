"""Checking a skill against the published format, as the specification of agent skills describes it."""

import re
from typing import Any

from holdfast.model.tree.skills import SkillProblem, SkillValidation
from holdfast.skills.conversion import ConversionError, to_skill_text
from holdfast.skills.definition import SkillDefinition, name_problem, read_definition
from holdfast.skills.simple_yaml import YamlError

MAX_SPEC_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
MAX_COMPATIBILITY_CHARS = 500
MAX_BODY_LINES = 500
_SPEC_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_KNOWN_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_USUAL_FIELDS = _KNOWN_FIELDS | {"tags", "allowed_tools", "version", "author"}


def validate(data: Any, *, strict: bool = False, folder_name: str = "") -> SkillValidation:
    """Check a skill: the text of SKILL.md, or an object. What only the specification demands is a warning.

    With `strict` it is an error. `folder_name` is the name of the folder that the skill is in.
    """
    try:
        text = data if isinstance(data, str) else to_skill_text(data)
        skill = read_definition(text)
    except YamlError as error:
        return _failed(strict, SkillProblem(rule="front_matter", message=str(error), field="data"))
    except ConversionError as error:
        return _failed(strict, SkillProblem(rule=error.rule, message=error.problem, field=error.field))
    errors = _errors(skill)
    demands = _demands(skill, folder_name)
    if strict:
        errors, demands = [*errors, *demands], []
    return SkillValidation(
        valid=not errors,
        strict=strict,
        name=skill.name,
        description=skill.description,
        tags=skill.tags,
        allowed_tools=skill.allowed_tools,
        body_lines=count_lines(skill.body),
        errors=errors,
        warnings=[*demands, *_advice(skill)],
    )


def warnings_of(skill: SkillDefinition, folder_name: str = "") -> list[SkillProblem]:
    """Return what is not wrong with a skill, but other readers may refuse."""
    return [*_demands(skill, folder_name), *_advice(skill)]


def count_lines(body: str) -> int:
    """Count the lines of a text, without empty ones at its beginning and end."""
    stripped = body.strip("\r\n")
    return stripped.count("\n") + 1 if stripped else 0


def _failed(strict: bool, problem: SkillProblem) -> SkillValidation:
    return SkillValidation(valid=False, strict=strict, errors=[problem])


def _errors(skill: SkillDefinition) -> list[SkillProblem]:
    problem = name_problem(skill.name)
    return [SkillProblem(rule="name", message=f"the name {problem}", field="name")] if problem else []


def _demands(skill: SkillDefinition, folder_name: str) -> list[SkillProblem]:
    """Return what the specification demands, and other readers of skills may refuse."""
    found = []
    if skill.name and (len(skill.name) > MAX_SPEC_NAME_CHARS or not _SPEC_NAME.match(skill.name)):
        message = f"the name should have 1 to {MAX_SPEC_NAME_CHARS} of a-z, 0-9 and single hyphens, such as code-review"
        found.append(SkillProblem(rule="name_format", message=message, field="name"))
    if folder_name and skill.name and folder_name != skill.name:
        message = f"the name should be that of the folder, {folder_name}"
        found.append(SkillProblem(rule="name_matches_folder", message=message, field="name"))
    if not skill.description:
        message = "the description is missing; say what the skill does and when to use it"
        found.append(SkillProblem(rule="description", message=message, field="description"))
    if len(skill.description) > MAX_DESCRIPTION_CHARS:
        message = f"the description should have at most {MAX_DESCRIPTION_CHARS:,} characters"
        found.append(SkillProblem(rule="description_length", message=message, field="description"))
    if len(skill.compatibility) > MAX_COMPATIBILITY_CHARS:
        message = f"compatibility should have at most {MAX_COMPATIBILITY_CHARS} characters"
        found.append(SkillProblem(rule="compatibility_length", message=message, field="compatibility"))
    for field in ("name", "description", "license", "compatibility"):
        if isinstance(skill.fields.get(field), dict | list):
            message = f"{field} should be a text, not a list or a mapping"
            found.append(SkillProblem(rule="field_type", message=message, field=field))
    metadata = skill.fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        found.append(SkillProblem(rule="field_type", message="metadata should be a mapping", field="metadata"))
    found += [SkillProblem(rule="yaml", message=note, field="data") for note in skill.notes[:20]]
    return found


def _advice(skill: SkillDefinition) -> list[SkillProblem]:
    found = []
    lines = count_lines(skill.body)
    if not lines:
        found.append(
            SkillProblem(rule="body", message="the skill has no instructions below its front matter", field="content")
        )
    if lines > MAX_BODY_LINES:
        message = f"the body has {lines:,} lines; move details to other files if it has more than {MAX_BODY_LINES}"
        found.append(SkillProblem(rule="body_length", message=message, field="content"))
    for field in sorted(set(skill.fields) - _USUAL_FIELDS)[:20]:
        message = f"the field {field!r:.80} is not in the specification; it is kept"
        found.append(SkillProblem(rule="unknown_field", message=message, field=field[:80]))
    return found
