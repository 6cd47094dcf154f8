"""Skills: what they are listed and read as, and the results of changes of them."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from holdfast.model.base import WireStruct


class SkillProblem(WireStruct, frozen=True, kw_only=True):
    rule: str
    message: str
    field: str


class SkillValidation(WireStruct, frozen=True, kw_only=True):
    valid: bool
    strict: bool
    name: str = ""
    description: str = ""
    tags: list[str] = msgspec.field(default_factory=list)
    allowed_tools: list[str] = msgspec.field(default_factory=list)
    body_lines: int = 0
    errors: list[SkillProblem] = msgspec.field(default_factory=list)
    warnings: list[SkillProblem] = msgspec.field(default_factory=list)


class SkillUses(WireStruct, frozen=True, kw_only=True):
    """How often the caller used a skill."""

    calls: int = 0
    successes: int = 0
    last_used_at: datetime | None = None


class SkillEntry(WireStruct, frozen=True, kw_only=True):
    """A skill in a list."""

    type: Literal["skill"] = "skill"
    name: str
    uri: str
    """The folder of the skill."""
    root_uri: str
    """The folder with the skills of the user, or with the published ones."""
    skill_md_uri: str
    description: str
    tags: list[str]
    allowed_tools: list[str]
    published: bool
    """Whether every user of the account can read it."""
    uses: SkillUses = SkillUses()


class SkillList(WireStruct, frozen=True, kw_only=True):
    root_uris: list[str]
    skills: list[SkillEntry]
    has_more: bool = False


class SkillFile(WireStruct, frozen=True, kw_only=True):
    path: str
    uri: str
    is_dir: bool
    size: int = 0


class SkillSource(WireStruct, frozen=True, kw_only=True):
    """Where a skill comes from, as its author said."""

    type: str = ""
    source: str = ""
    path: str = ""


class Skill(SkillEntry, frozen=True, kw_only=True):
    """A skill, with what was asked for. What was not is None."""

    license: str = ""
    compatibility: str = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    version: int
    """The number of the current version of SKILL.md."""
    changed_at: datetime
    abstract: str | None = None
    overview: str | None = None
    content: str | None = None
    content_sha256: str | None = None
    files: list[SkillFile] | None = None
    files_truncated: bool = False
    """Whether there are more files than `files` has."""
    source: SkillSource | None = None


class FoundSkill(SkillEntry, frozen=True, kw_only=True):
    """A skill that a search found."""

    score: float
    level: int
    abstract: str
    match_reason: str = ""


class FoundSkills(WireStruct, frozen=True, kw_only=True):
    root_uris: list[str]
    skills: list[FoundSkill]


class InstalledSkill(WireStruct, frozen=True, kw_only=True):
    name: str
    uri: str
    description: str
    auxiliary_files: int
    """How many files it has beside SKILL.md."""
    action: Literal["add", "update", "none", "list"]
    """`none` if it was the same already; `list` if it was only listed."""


class SkillAdded(WireStruct, frozen=True, kw_only=True):
    status: Literal["success"] = "success"
    action: Literal["add", "update", "none", "list"]
    uri: str
    name: str
    root_uri: str
    auxiliary_files: int
    skills: list[InstalledSkill]
    """All skills of the source that were added. The fields above are those of the first one."""
    warnings: list[SkillProblem] = msgspec.field(default_factory=list)
    task_id: str | None = None
    queue_status: dict[str, Any] | None = None


class SkillRemoved(WireStruct, frozen=True, kw_only=True):
    name: str
    uri: str
    root_uri: str
    estimated_deleted_count: int
    """How many files and folders were removed. `restore` brings them back."""
    privacy_deleted: bool = False


class SkillPublished(WireStruct, frozen=True, kw_only=True):
    name: str
    uri: str
    """The address of the skill for every user of the account."""
    source_uri: str
    """The skill of the user that it is a copy of."""
    files: int


class SkillUnpublished(WireStruct, frozen=True, kw_only=True):
    name: str
    uri: str
    removed: int
