"""Finding skills: the one search, limited to skills."""

from typing import Any

from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler
from holdfast.engine.recall import search
from holdfast.engine.skills.reading import list_entries
from holdfast.engine.skills.skill_roots import PUBLISHED, find_skill, own_root
from holdfast.model.identity import Principal
from holdfast.model.search import FindResult, Hit
from holdfast.model.tree.skills import FoundSkill, FoundSkills, SkillEntry
from holdfast.model.uris import parse_uri
from holdfast.ops.search import Find
from holdfast.ops.tree.skills import FindSkills
from holdfast.store.database import Tx

MAX_HITS = 1_000
HITS_PER_SKILL = 4
"""Several files of a skill may be found. Each skill is returned once."""
_FIND = search.HANDLERS[Find]


def _find_operation(op: FindSkills) -> Find:
    return Find(
        query=op.query,
        target_uri=op.target_uri,
        limit=min(op.limit * HITS_PER_SKILL, MAX_HITS),
        score_threshold=op.score_threshold,
        level=op.level,
        context_type="skill",
    )


def _check(context: CallContext, op: FindSkills) -> Any:
    return _FIND.check(context, _find_operation(op))


def _prepare(resources: EngineResources, principal: Principal, op: FindSkills, checked: Any) -> Any:
    assert _FIND.prepare is not None  # noqa: S101 - a search always prepares
    return _FIND.prepare(resources, principal, _find_operation(op), checked)


def _find(tx: Tx, principal: Principal, op: FindSkills, prepared: Any, context: CallContext) -> FoundSkills:
    result: FindResult = _FIND.handle(tx, principal, _find_operation(op), prepared, context)
    own = own_root(principal)
    found: dict[str, FoundSkill] = {}
    for hit in result.skills:
        entry = _entry_of(tx, principal, hit)
        if entry is not None and entry.uri not in found:
            found[entry.uri] = _found(entry, hit)
    return FoundSkills(root_uris=[own.uri, PUBLISHED.uri], skills=list(found.values())[: op.limit])


def _entry_of(tx: Tx, principal: Principal, hit: Hit) -> SkillEntry | None:
    """Return the skill that a found file belongs to."""
    names = parse_uri(hit.uri)
    root, path = (PUBLISHED, names[2:]) if names[:1] == ("system",) else (own_root(principal), names[3:])
    located = find_skill(tx, [root], path[0]) if path else None
    return None if located is None else list_entries(tx, principal, root, [located[1]])[0]


def _found(entry: SkillEntry, hit: Hit) -> FoundSkill:
    fields = {name: getattr(entry, name) for name in SkillEntry.__struct_fields__}
    reasons = ", ".join(reason.signal for reason in hit.reasons)
    return FoundSkill(
        **fields,
        score=hit.score,
        level=hit.level,
        abstract=hit.abstract or entry.description,
        match_reason=reasons,
    )


HANDLERS: dict[type, OperationHandler] = {FindSkills: OperationHandler(_find, check=_check, prepare=_prepare)}
