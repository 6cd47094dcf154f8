"""Client methods for skills."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from holdfast.client.skill_folders import pack
from holdfast.client.sync.transport import Transport
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
from holdfast.ops.tree.skills import (
    AddSkill,
    FindSkills,
    GetSkill,
    ListSkills,
    PublishSkill,
    RemoveSkill,
    SourceMetadata,
    UnpublishSkill,
    UpdateSkill,
    ValidateSkill,
)
from holdfast.ops.tree.uploads import AppendUpload, FinishUpload, StartUpload

SkillData = dict[str, Any] | str | Path
"""An object, the text of SKILL.md, or the path of SKILL.md or of its folder."""


class Skills:
    """Adding, listing, reading, finding, removing and publishing skills."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def add_skill(
        self,
        data: SkillData | None = None,
        *,
        temp_file_id: str | None = None,
        skills: Sequence[str] | None = None,
        list_only: bool = False,
        target_uri: str = "",
        wait: bool = False,
        timeout: float | None = None,
    ) -> SkillAdded:
        """Add a skill, or replace the one with its name. Every change of a file is a version.

        - `data`: the text of SKILL.md, a `Path` of it or of its folder, an object with `name`, `description` and
          `content`, or the definition of an MCP tool. Or `temp_file_id`, of an uploaded file or zip archive.
        - `skills`: the names of the skills to add from a folder with several; `["*"]` for all.
        - `list_only`: only list which skills there are.
        - `target_uri`: `viking://system/skills` adds a published skill. Only an admin may.
        - `wait`: return when the skill can be found.
        """
        value, upload_id, source = self._source(data, temp_file_id)
        return self._transport.call(
            AddSkill(
                data=value,
                temp_file_id=upload_id,
                source_metadata=source,
                skills=None if skills is None else list(skills),
                list_only=list_only,
                target_uri=target_uri,
                wait=wait,
                timeout=timeout,
            )
        )

    def update_skill(
        self,
        name: str,
        data: SkillData | None = None,
        *,
        temp_file_id: str | None = None,
        target_uri: str = "",
        wait: bool = False,
        timeout: float | None = None,
    ) -> SkillAdded:
        """Replace a skill that exists. The parameters are those of `add_skill`."""
        value, upload_id, source = self._source(data, temp_file_id)
        return self._transport.call(
            UpdateSkill(
                name=name,
                data=value,
                temp_file_id=upload_id,
                source_metadata=source,
                target_uri=target_uri,
                wait=wait,
                timeout=timeout,
            )
        )

    def list_skills(self, *, limit: int = 1_000, target_uri: str = "") -> SkillList:
        """List the caller's skills, then the published ones, with how often the caller used them."""
        return self._transport.call(ListSkills(node_limit=limit, target_uri=target_uri))

    def get_skill(
        self,
        name: str,
        *,
        include_content: bool = True,
        include_files: bool = True,
        include_source: bool = True,
        include_integrity: bool = True,
        level: Literal[0, 1, 2] | None = None,
        target_uri: str = "",
    ) -> Skill:
        """Read a skill: the caller's own, or else the published one.

        `level` limits it to the abstract (0), the overview (1) or SKILL.md (2).
        """
        return self._transport.call(
            GetSkill(
                name=name,
                include_content=include_content,
                include_files=include_files,
                include_source=include_source,
                include_integrity=include_integrity,
                level=level,
                target_uri=target_uri,
            )
        )

    def remove_skill(self, name: str, *, target_uri: str = "") -> SkillRemoved:
        """Remove a skill with its files. `restore` of its address brings it back."""
        return self._transport.call(RemoveSkill(name=name, target_uri=target_uri))

    def find_skills(
        self, query: str, limit: int = 10, score_threshold: float | None = None, *, target_uri: str = ""
    ) -> FoundSkills:
        """Find skills by what they say, best first."""
        return self._transport.call(
            FindSkills(query=query, limit=limit, score_threshold=score_threshold, target_uri=target_uri)
        )

    def validate_skill(
        self, data: dict[str, Any] | str, *, strict: bool = False, skill_dir_name: str | None = None
    ) -> SkillValidation:
        """Check a skill, and store nothing. With `strict`, all that the specification of agent skills demands."""
        return self._transport.call(ValidateSkill(data=data, strict=strict, skill_dir_name=skill_dir_name))

    def publish_skill(self, name: str, *, user_id: str | None = None) -> SkillPublished:
        """Publish a skill to the account, for an admin. `user_id` is the user whose skill it is, by default the caller.

        Every user of the account can read the copy. Publishing it again updates it.
        """
        return self._transport.call(PublishSkill(name=name, user_id=user_id))

    def unpublish_skill(self, name: str) -> SkillUnpublished:
        """Remove a published skill, for an admin. The skill of its user stays."""
        return self._transport.call(UnpublishSkill(name=name))

    def _source(
        self, data: SkillData | None, temp_file_id: str | None
    ) -> tuple[dict[str, Any] | str | None, str | None, SourceMetadata | None]:
        """Return the data or the upload of a skill, and where it comes from. A path is uploaded."""
        if not isinstance(data, Path):
            return data, temp_file_id, None
        packed = pack(data)
        upload = self._transport.call(StartUpload(name=packed.name))
        for part in packed.parts():
            upload = self._transport.call(AppendUpload(upload_id=upload.upload_id, number=upload.parts, data=part))
        file = self._transport.call(FinishUpload(upload_id=upload.upload_id))
        source = SourceMetadata(type="local", source=str(data), path=data.name)
        return None, file.temp_file_id, source
