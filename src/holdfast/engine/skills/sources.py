"""What skills are made from: a text, an object, the definition of an MCP tool, or an uploaded file."""

import mimetypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.engine.tree.changes import text_type_of
from holdfast.engine.tree.stored_texts import is_text
from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.model.tree.skills import SkillProblem
from holdfast.ops.tree.skills import MAX_TEXT_CHARS, SkillFields
from holdfast.skills.conversion import ConversionError, to_skill_text
from holdfast.skills.definition import SKILL_FILE, SkillDefinition, name_problem, read_definition
from holdfast.skills.simple_yaml import YamlError
from holdfast.skills.validation import warnings_of
from holdfast.storable import storable_json, storable_text
from holdfast.store.tables.tree import blobs

BINARY = "application/octet-stream"


class NewFile(NamedTuple):
    """A file of a skill. Bytes that are stored already are missing."""

    path: str
    """Its encoded path below the folder of the skill."""
    hash: str
    size: int
    media_type: str
    data: bytes | None


class NewSkill(NamedTuple):
    name: str
    definition: SkillDefinition
    files: list[NewFile]
    warnings: list[SkillProblem]
    folder_name: str = ""
    """The name of its folder in an archive."""


def from_fields(op: SkillFields, name: str = "") -> NewSkill | None:
    """Return the skill that an operation has as data, or None if it names an upload."""
    if op.temp_file_id is not None:
        return None
    if op.data is None:
        raise InvalidArgumentError("data", "is missing; give data, or the temp_file_id of an upload")
    return from_data(op.data, name)


def from_data(data: Any, name: str = "") -> NewSkill:
    """Return the skill that a text or an object describes. An object without a name gets the one that is known."""
    text = _text_of(data, name)
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidArgumentError("data", f"is longer than {MAX_TEXT_CHARS:,} characters; use more than one file")
    return from_text("data", text, text.encode())


def _text_of(data: Any, name: str) -> str:
    if isinstance(data, str):
        storable_text("data", data)
        begin = data.lstrip()[:8]
        if begin.startswith(("http://", "https://")):
            raise InvalidArgumentError(
                "data", f"{short_repr(data)} is a URL, which a server does not fetch; send the text, or upload the file"
            )
        if not begin.startswith("{"):
            return data
        try:
            data = msgspec.json.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            raise InvalidArgumentError("data", "begins with { but is no JSON; send the text of SKILL.md") from None
    storable_json("data", data)
    if isinstance(data, dict) and name:
        data = {"name": name, **data}
    try:
        return to_skill_text(data)
    except ConversionError as error:
        field = "data" if error.field == "data" else f"data.{error.field}"
        raise InvalidArgumentError(field, error.problem) from None


def from_text(field: str, text: str, data: bytes, files: Sequence[NewFile] = (), folder_name: str = "") -> NewSkill:
    """Return the skill of a SKILL.md, with its other files. `field` is what errors name."""
    try:
        definition = read_definition(text)
    except YamlError as error:
        raise InvalidArgumentError(field, str(error)) from None
    problem = name_problem(definition.name)
    if problem:
        raise InvalidArgumentError(f"{field}.name", f"{short_repr(definition.name)} {problem}")
    skill_file = new_file(SKILL_FILE, data)
    return NewSkill(
        definition.name, definition, [skill_file, *files], warnings_of(definition, folder_name), folder_name
    )


def new_file(path: str, data: bytes) -> NewFile:
    name = path.rpartition("/")[2]
    return NewFile(path, blobs.hash_of(data), len(data), _media_type(name, data), data)


def _media_type(name: str, data: bytes) -> str:
    """Return the media type of a file, by its name and by whether it is a text."""
    guessed = mimetypes.guess_type(name, strict=False)[0]
    if guessed is not None and not is_text(guessed):
        return guessed
    try:
        data.decode()
    except UnicodeDecodeError:
        return BINARY
    return text_type_of(name)
