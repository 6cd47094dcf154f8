"""Operations on skills: adding, listing, reading, finding, checking, removing and publishing them."""

from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.base import Name
from holdfast.model.tree.skills import (
    FoundSkills,
    Skill,
    SkillAdded,
    SkillList,
    SkillPublished,
    SkillRemoved,
    SkillUnpublished,
    SkillValidation,
)
from holdfast.ops.search import HitLimit, Level, Query, Score, TargetUri
from holdfast.ops.table import Operation, operation

MAX_TEXT_CHARS = 1_000_000
SkillName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        description="give the name of a skill, such as code-review",
        extra_json_schema={"pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*$"},  # only for the schema
    ),
]
SkillText = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_CHARS)]
SkillData = dict[str, Any] | SkillText
UploadId = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Choice = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class SourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Where a skill comes from."""

    type: Annotated[str, msgspec.Meta(max_length=100)] = ""
    source: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    path: Annotated[str, msgspec.Meta(max_length=4_000)] = ""


class SkillFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of operations that store a skill. They have `data` or `temp_file_id`."""

    data: SkillData | None = None
    """The text of SKILL.md, an object with `name`, `description` and `content`, or the definition of an MCP tool."""
    temp_file_id: UploadId | None = None
    """An upload: SKILL.md, or a zip archive of the folder that SKILL.md is in."""
    source_metadata: SourceMetadata | None = None
    target_uri: TargetUri = ""
    """The folder for the skill: that of the caller, or `viking://system/skills` for an admin."""
    wait: bool = False
    timeout: Seconds | None = None


@operation("POST /skills", audit="{result.uri}")
class AddSkill(SkillFields, Operation[SkillAdded], frozen=True, kw_only=True):
    """Add a skill, or replace the one with its name. Every change of a file is a version."""

    skills: Annotated[list[Choice], msgspec.Meta(max_length=1_000)] | None = None
    """The names of the skills to add from an archive with several; `*` for all."""
    list_only: bool = False
    """Only list which skills there are in the source."""


@operation("PUT /skills/{name}", audit="{name} {result.uri}")
class UpdateSkill(SkillFields, Operation[SkillAdded], frozen=True, kw_only=True):
    """Replace a skill that exists."""

    name: SkillName
    from_source: bool = False
    """Read it from its source again."""


@operation("DELETE /skills/{name}", audit="{name} {result.uri}")
class RemoveSkill(Operation[SkillRemoved], frozen=True, kw_only=True):
    """Remove a skill with its files. `RestoreFile` brings it back."""

    name: SkillName
    target_uri: TargetUri = ""


@operation("GET /skills", answer="bounded")
class ListSkills(Operation[SkillList], frozen=True, kw_only=True):
    """List the caller's skills, then the published ones, each by name."""

    node_limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000
    target_uri: TargetUri = ""


@operation("GET /skills/{name}")
class GetSkill(Operation[Skill], frozen=True, kw_only=True):
    """Read a skill: the caller's own, or else the published one."""

    name: SkillName
    include_content: bool = True
    include_files: bool = False
    include_source: bool = False
    include_integrity: bool = False
    """Add the hash of SKILL.md."""
    level: Literal[0, 1, 2] | None = None
    """0 for the abstract, 1 for the overview, 2 for SKILL.md. Without it, all of them."""
    target_uri: TargetUri = ""


@operation("POST /skills/find", answer="bounded", reads=True)
class FindSkills(Operation[FoundSkills], frozen=True, kw_only=True):
    """Find skills by what they say, best first."""

    query: Query
    limit: HitLimit = 10
    score_threshold: Score | None = None
    level: Level | list[Level] | None = None
    target_uri: TargetUri = ""


@operation("POST /skills/validate", reads=True)
class ValidateSkill(Operation[SkillValidation], frozen=True, kw_only=True):
    """Check a skill, and store nothing."""

    data: SkillData
    strict: bool = False
    """Treat what the specification of agent skills demands as errors, not as warnings."""
    source_path: Annotated[str, msgspec.Meta(max_length=4_000)] | None = None
    """Where SKILL.md is. The skill should have the name of its folder."""
    skill_dir_name: Annotated[str, msgspec.Meta(max_length=255)] | None = None
    """The name of the folder of SKILL.md."""


@operation("POST /skills/{name}/publish", role="admin", audit="{name} {result.source_uri}")
class PublishSkill(Operation[SkillPublished], frozen=True, kw_only=True):
    """Publish a skill of a user to the account: every user can read a copy of it. Publishing it again updates it."""

    name: SkillName
    user_id: Name | None = None
    """The user whose skill it is. The default is the caller."""


@operation("POST /skills/{name}/unpublish", role="admin", audit="{name}")
class UnpublishSkill(Operation[SkillUnpublished], frozen=True, kw_only=True):
    """Remove a published skill. The skill of the user whose it is stays."""

    name: SkillName
