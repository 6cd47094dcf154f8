"""Publishing skills of users to their account."""

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler, always
from holdfast.engine.skills import storing
from holdfast.engine.skills.skill_roots import PUBLISHED, SkillRoot, own_root, require_skill
from holdfast.engine.skills.sources import BINARY, NewFile
from holdfast.engine.tree import changes
from holdfast.errors import NotFoundError, TooLargeError
from holdfast.model.identity import Principal
from holdfast.model.tree.skills import SkillPublished, SkillUnpublished
from holdfast.model.uris import encode_path
from holdfast.ops.tree.skills import PublishSkill, UnpublishSkill
from holdfast.store.access import user_ids
from holdfast.store.database import Tx
from holdfast.store.tables.tree import nodes, roots

MAX_FILES = 10_000


def _publish(tx: Tx, principal: Principal, op: PublishSkill, _checked: None, context: CallContext) -> SkillPublished:
    source = own_root(_user(tx, principal, op.user_id))
    roots.lock(tx, [source.root, PUBLISHED.root])
    _, node = require_skill(tx, [source], op.name)
    if nodes.count_subtree(tx, source.root, node.path) > MAX_FILES:
        raise TooLargeError(f"{source.uri_of(op.name)} has more than {MAX_FILES:,} files, so it cannot be published")
    files = _files(tx, source, node.path)
    meta = changes.encode_meta({"source": {"type": "skill", "source": source.uri_of(op.name), "path": ""}})
    storing.store(tx, principal, context, PUBLISHED, op.name, files, meta)
    return SkillPublished(
        name=op.name, uri=PUBLISHED.uri_of(op.name), source_uri=source.uri_of(op.name), files=len(files)
    )


def _user(tx: Tx, principal: Principal, user_id: str | None) -> Principal:
    if user_id is None or user_id == principal.user_id:
        return principal
    return Principal(principal.account_id, user_id, internal_id=user_ids.current(tx, user_id))


def _files(tx: Tx, source: SkillRoot, path: str) -> list[NewFile]:
    """Return the files of a skill. Their bytes are stored already."""
    return [
        NewFile(node.path[len(path) + 1 :], node.blob, node.size, node.media_type or BINARY, None)
        for node in nodes.walk(tx, source.root, path)
        if not node.is_folder and node.blob is not None
    ]


def _unpublish(
    tx: Tx, _principal: Principal, op: UnpublishSkill, _checked: None, context: CallContext
) -> SkillUnpublished:
    roots.lock(tx, [PUBLISHED.root])
    node = nodes.find(tx, PUBLISHED.root, encode_path([op.name]))
    if node is None:
        raise NotFoundError("skill", PUBLISHED.uri_of(op.name))
    count = nodes.remove(tx, node, context.ids.log_id(), context.now)
    changes.note_changes(tx, context, [node])
    return SkillUnpublished(name=op.name, uri=PUBLISHED.uri_of(op.name), removed=count)


HANDLERS: dict[type, OperationHandler] = {
    PublishSkill: OperationHandler(_publish, writes=always),
    UnpublishSkill: OperationHandler(_unpublish, writes=always),
}
