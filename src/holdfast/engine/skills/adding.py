"""Adding, updating and removing skills."""

from collections.abc import Generator
from functools import partial
from typing import Any

import msgspec

from holdfast.engine.gate import access
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.polling import not_done, poll
from holdfast.engine.skills import storing
from holdfast.engine.skills.archives import MAX_UPLOAD_BYTES, read_upload, require_choice
from holdfast.engine.skills.skill_roots import SkillRoot, require_skill, root_for_writing
from holdfast.engine.skills.sources import NewSkill, from_fields
from holdfast.engine.transfers.uploads import require_complete
from holdfast.engine.tree import changes
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, TooLargeError, short_repr
from holdfast.model.identity import Principal
from holdfast.model.tree.skills import InstalledSkill, SkillAdded, SkillRemoved
from holdfast.model.uris import encode_path
from holdfast.ops.tree.skills import AddSkill, RemoveSkill, SkillFields, UpdateSkill
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, nodes, roots, skill_nodes, unprocessed

_DONE = {"processed": 1, "requeue_count": 0, "error_count": 0, "errors": []}
"""The state of a queue, as published clients read it, when a skill is processed."""


def _add(tx: Tx, principal: Principal, op: AddSkill, skills: list[NewSkill], context: CallContext) -> SkillAdded:
    root = root_for_writing(principal, op.target_uri)
    if op.list_only:
        return _result(root, skills, [_installed(root, skill, "list") for skill in skills])
    require_choice(skills, op.skills)
    access.ensure_account(tx, principal, context)
    roots.lock(tx, [root.root])
    meta = _meta(op)
    installed = [_store(tx, principal, context, root, skill, meta) for skill in skills]
    return _result(root, skills, installed)


def _update(tx: Tx, principal: Principal, op: UpdateSkill, skills: list[NewSkill], context: CallContext) -> SkillAdded:
    root = root_for_writing(principal, op.target_uri)
    roots.lock(tx, [root.root])
    _, node = require_skill(tx, [root], op.name)
    if op.from_source:
        raise FailedPreconditionError(
            f"from_source: {op.name} cannot be read from its source, because this server fetches nothing; send data",
            resource=root.uri_of(op.name),
        )
    if [skill.name for skill in skills] != [op.name]:
        names = ", ".join(skill.name for skill in skills[:10])
        raise InvalidArgumentError("name", f"is {short_repr(op.name)}, but the data is of {names}; add it as a new one")
    meta = _meta(op) if op.source_metadata is not None else node.meta
    installed = [_store(tx, principal, context, root, skills[0], meta)]
    return msgspec.structs.replace(_result(root, skills, installed), action="update")


def _store(
    tx: Tx, principal: Principal, context: CallContext, root: SkillRoot, skill: NewSkill, meta: str
) -> InstalledSkill:
    return _installed(root, skill, storing.store(tx, principal, context, root, skill.name, skill.files, meta))


def _installed(root: SkillRoot, skill: NewSkill, action: Any) -> InstalledSkill:
    return InstalledSkill(
        name=skill.name,
        uri=root.uri_of(skill.name),
        description=skill.definition.description[:1_024],
        auxiliary_files=len(skill.files) - 1,
        action=action,
    )


def _result(root: SkillRoot, skills: list[NewSkill], installed: list[InstalledSkill]) -> SkillAdded:
    first = installed[0]
    return SkillAdded(
        action=first.action,
        uri=first.uri,
        name=first.name,
        root_uri=root.uri,
        auxiliary_files=first.auxiliary_files,
        skills=installed,
        warnings=[warning for skill in skills for warning in skill.warnings],
    )


def _meta(op: SkillFields) -> str:
    if op.source_metadata is None:
        return "{}"
    return changes.encode_meta({"source": msgspec.to_builtins(op.source_metadata)})


def _check_add(_context: CallContext, op: AddSkill) -> list[NewSkill]:
    if op.skills == []:
        raise InvalidArgumentError("skills", "is an empty list; name the skills to add, or leave it out")
    skill = from_fields(op)
    if skill is not None and op.skills is not None and not {skill.name, "*"} & set(op.skills):
        raise InvalidArgumentError("skills", f"does not have the name of the skill, {short_repr(skill.name)}")
    return [] if skill is None else [skill]


def _check_update(_context: CallContext, op: UpdateSkill) -> list[NewSkill]:
    if op.from_source:
        return []
    skill = from_fields(op, op.name)
    return [] if skill is None else [skill]


def _read_upload(
    resources: EngineResources, principal: Principal, op: AddSkill | UpdateSkill, _checked: Any
) -> list[NewSkill]:
    assert op.temp_file_id is not None  # noqa: S101 - see `_has_upload`
    name, data = resources.db.read(principal.account_id, partial(_read_bytes, principal, op.temp_file_id))
    return read_upload(name, data, op.skills if isinstance(op, AddSkill) else [op.name])


def _read_bytes(principal: Principal, temp_file_id: str, tx: Tx) -> tuple[str, bytes]:
    upload, digest = require_complete(tx, principal, temp_file_id)
    if upload.size > MAX_UPLOAD_BYTES:
        raise TooLargeError(f"temp_file_id: {upload.name} has more than {MAX_UPLOAD_BYTES:,} bytes; upload less")
    return upload.name, blobs.read(tx, digest)


def _has_upload(op: AddSkill | UpdateSkill) -> bool:
    return op.temp_file_id is not None


def _follow(
    resources: EngineResources, principal: Principal, op: AddSkill | UpdateSkill, added: SkillAdded
) -> Generator[float, None, SkillAdded]:
    """Wait until the skills can be found, if the caller asked for it."""
    if not op.wait or added.action == "list":
        return added
    root = root_for_writing(principal, op.target_uri)
    paths = [encode_path([skill.name]) for skill in added.skills]

    def is_processed() -> bool:
        return not resources.db.read(
            principal.account_id,
            lambda tx: any(skill_nodes.has_unprocessed(tx, root.root, path) for path in paths),
        )

    if not is_processed():  # the caller waits, so that the end of a burst of changes is not waited for
        resources.db.write(principal.account_id, lambda tx: unprocessed.make_due(tx, principal.account_id))
        resources.wake_workers()
    yield from poll(resources, is_processed, op.timeout, not_done(f"the processing of {added.uri}"))
    return msgspec.structs.replace(added, queue_status={"Semantic": _DONE, "Embedding": _DONE})


def _remove(tx: Tx, principal: Principal, op: RemoveSkill, _checked: None, context: CallContext) -> SkillRemoved:
    root = root_for_writing(principal, op.target_uri)
    roots.lock(tx, [root.root])
    node = nodes.find(tx, root.root, encode_path([op.name]))
    if node is None or not node.is_folder:
        raise NotFoundError("skill", op.name)
    count = nodes.remove(tx, node, context.ids.log_id(), context.now)
    changes.note_changes(tx, context, [node])
    return SkillRemoved(name=op.name, uri=root.uri_of(op.name), root_uri=root.uri, estimated_deleted_count=count)


HANDLERS: dict[type, OperationHandler] = {
    AddSkill: OperationHandler(
        _add, writes=always, check=_check_add, prepare=_read_upload, prepares=_has_upload, follow=_follow
    ),
    UpdateSkill: OperationHandler(
        _update, writes=always, check=_check_update, prepare=_read_upload, prepares=_has_upload, follow=_follow
    ),
    RemoveSkill: OperationHandler(_remove, writes=always),
}
