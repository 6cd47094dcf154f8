"""Listing, reading and checking skills."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.skills.skill_roots import SkillRoot, require_skill, roots_at
from holdfast.model.identity import Principal
from holdfast.model.tree.skills import Skill, SkillEntry, SkillFile, SkillList, SkillSource, SkillUses, SkillValidation
from holdfast.model.uris import build_uri, child_uri
from holdfast.ops.tree.skills import GetSkill, ListSkills, ValidateSkill
from holdfast.skills.definition import SKILL_FILE, SkillDefinition, empty_definition, read_definition
from holdfast.skills.front_matter import MAX_CHARS
from holdfast.skills.simple_yaml import YamlError
from holdfast.skills.summaries import overview_of
from holdfast.skills.validation import validate
from holdfast.storable import storable_json, storable_text
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables.tree import blobs, contents, nodes, skill_nodes, skill_uses
from holdfast.store.tables.tree.skill_nodes import SkillNode
from holdfast.store.timestamps import from_micros

PAGE_SIZE = 50
MAX_LISTED_FILES = 1_000
MAX_DESCRIPTION_CHARS = 1_024
MAX_LISTED_NAMES = 50
_BEGINNING_BYTES = 4 * MAX_CHARS
"""What has the whole front matter of a file, whatever its characters are."""


def _list(tx: Tx, principal: Principal, op: ListSkills, found_roots: Any, _context: CallContext) -> SkillList:
    del found_roots
    searched = roots_at(principal, op.target_uri)
    entries: list[SkillEntry] = []
    for root in searched:
        for page in _pages(tx, root):
            entries += list_entries(tx, principal, root, page)
            if len(entries) > op.node_limit:
                break
    return SkillList(
        root_uris=[root.uri for root in searched],
        skills=entries[: op.node_limit],
        has_more=len(entries) > op.node_limit,
    )


def _pages(tx: Tx, root: SkillRoot) -> Iterator[list[SkillNode]]:
    after = ""
    while page := skill_nodes.read_page(tx, root.root, after, PAGE_SIZE):
        yield page
        after = page[-1].name


def list_entries(tx: Tx, principal: Principal, root: SkillRoot, page: Sequence[SkillNode]) -> list[SkillEntry]:
    """Return skills as they are listed. Their front matter is read."""
    beginnings = skill_nodes.read_beginnings(tx, [node.blob for node in page], _BEGINNING_BYTES)
    uses = find_uses(tx, principal, root, [node.name for node in page])
    return [
        _entry(root, node, _definition(beginnings.get(node.blob, b"")), uses.get(node.name, SkillUses()))
        for node in page
    ]


def _entry(root: SkillRoot, node: SkillNode, definition: SkillDefinition, uses: SkillUses) -> SkillEntry:
    uri = root.uri_of(node.name)
    return SkillEntry(
        name=node.name,
        uri=uri,
        root_uri=root.uri,
        skill_md_uri=child_uri(uri, SKILL_FILE),
        description=definition.description[:MAX_DESCRIPTION_CHARS],
        tags=[tag[:200] for tag in definition.tags[:MAX_LISTED_NAMES]],
        allowed_tools=[tool[:200] for tool in definition.allowed_tools[:MAX_LISTED_NAMES]],
        published=root.is_published,
        uses=uses,
    )


def _definition(beginning: bytes) -> SkillDefinition:
    """Read front matter. A file that was written without any is a skill without a description."""
    with contextlib.suppress(YamlError):
        return read_definition(beginning.decode("utf-8", "replace"))
    return empty_definition()


def find_uses(tx: Tx, principal: Principal, root: SkillRoot, names: Sequence[str]) -> dict[str, SkillUses]:
    """Return how often the caller used skills of a root, by name."""
    folder = root.uri if root.is_published else build_uri(("user", principal.internal_id, "skills"))
    by_uri = {child_uri(folder, name): name for name in names}
    found = skill_uses.find(tx, principal.internal_id, list(by_uri))
    return {
        by_uri[uri]: SkillUses(calls=each.calls, successes=each.successes, last_used_at=from_micros(each.last_used_at))
        for uri, each in found.items()
    }


def _get(tx: Tx, principal: Principal, op: GetSkill, _checked: None, _context: CallContext) -> Skill:
    root, node = require_skill(tx, roots_at(principal, op.target_uri), op.name)
    read_memory.require(2 * node.size)
    text = blobs.read(tx, node.blob).decode("utf-8", "replace")
    try:
        definition = read_definition(text)
    except YamlError:
        definition = empty_definition(text)
    uses = find_uses(tx, principal, root, [node.name]).get(node.name, SkillUses())
    entry = _entry(root, node, definition, uses)
    files, is_truncated = _files(tx, root, node) if op.include_files else (None, False)
    abstract = definition.description or node.abstract or node.name
    return Skill(
        **{name: getattr(entry, name) for name in SkillEntry.__struct_fields__ if name != "description"},
        description=definition.description,
        license=definition.license,
        compatibility=definition.compatibility,
        metadata=definition.metadata,
        version=node.version,
        changed_at=from_micros(node.changed_at),
        abstract=abstract if op.level in {None, 0} else None,
        overview=_overview(tx, node, abstract, definition) if op.level in {None, 1} else None,
        content=text if op.level == 2 or (op.include_content and op.level is None) else None,  # noqa: PLR2004
        content_sha256=node.blob if op.include_integrity else None,
        files=files,
        files_truncated=is_truncated,
        source=_source(node) if op.include_source else None,
    )


def _overview(tx: Tx, node: SkillNode, abstract: str, definition: SkillDefinition) -> str:
    """Return the overview of SKILL.md, or until it is made, the description and the headings."""
    content = contents.find(tx, node.content_id)
    made = content.overview if content is not None else ""
    return made if len(made) >= len(abstract) else overview_of(abstract, definition)


def _files(tx: Tx, root: SkillRoot, node: SkillNode) -> tuple[list[SkillFile], bool]:
    found = nodes.subtree(tx, root.root, node.path, "", MAX_LISTED_FILES + 1)
    files = [
        SkillFile(
            path=each.path[len(node.path) + 1 :],
            uri=f"{root.uri}/{each.path}",
            is_dir=bool(each.is_folder),
            size=each.size,
        )
        for each in found[:MAX_LISTED_FILES]
    ]
    return files, len(found) > MAX_LISTED_FILES


def _source(node: SkillNode) -> SkillSource | None:
    source = msgspec.json.decode(node.meta).get("source")
    return msgspec.convert(source, SkillSource) if isinstance(source, dict) else None


def _validate(
    _tx: Tx, _principal: Principal, _op: ValidateSkill, checked: SkillValidation, _context: CallContext
) -> SkillValidation:
    return checked


def _check_data(_context: CallContext, op: ValidateSkill) -> SkillValidation:
    if isinstance(op.data, str):
        storable_text("data", op.data)
    else:
        storable_json("data", op.data)
    names = [name for name in (op.source_path or "").replace("\\", "/").split("/") if name]
    from_path = names[-2] if len(names) > 1 and names[-1].upper() == SKILL_FILE.upper() else ""
    return validate(op.data, strict=op.strict, folder_name=op.skill_dir_name or from_path)


HANDLERS: dict[type, OperationHandler] = {
    ListSkills: OperationHandler(_list),
    GetSkill: OperationHandler(_get),
    ValidateSkill: OperationHandler(_validate, check=_check_data),
}
