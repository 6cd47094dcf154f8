"""Counting the calls of skills. All addresses of a skill and of its files count for the same skill."""

from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.model.identity import Principal
from holdfast.model.sessions import SkillUse
from holdfast.model.uris import CALLER, build_uri, encode_path, parse_uri
from holdfast.store.database import Tx
from holdfast.store.tables.tree import roots, skill_nodes, skill_uses

_OWN = ("user", CALLER, "skills")
_PUBLISHED = ("system", "skills")


def count_skill_use(tx: Tx, principal: Principal, skill: SkillUse, used_at: int) -> None:
    """Count a call of a skill for the caller. What is no address of a skill counts for none."""
    if principal.role == "guest":
        return
    uri = _address(tx, principal, skill.uri)
    if uri is not None:
        skill_uses.count(tx, principal.internal_id, uri, used_at, success=skill.success)


def _address(tx: Tx, principal: Principal, uri: str) -> str | None:
    """Return the address of the skill that a use names, or None."""
    names: tuple[str, ...] = ()
    with suppress(HoldfastError):
        names = parse_uri(uri)
    if names[:2] in {("user", principal.user_id), ("user", principal.internal_id)}:
        return _own(principal, names[3]) if names[2:3] == ("skills",) and names[3:] else None
    if names[:2] == _PUBLISHED and names[2:]:
        return build_uri((*_PUBLISHED, names[2]))
    if names[:3] != _OWN or not names[3:]:
        return None
    path = encode_path([names[3]])
    is_own = skill_nodes.exists(tx, roots.of_user(principal.internal_id, "skills"), path)
    if not is_own and skill_nodes.exists(tx, roots.PUBLISHED_SKILLS, path):
        return build_uri((*_PUBLISHED, names[3]))
    return _own(principal, names[3])


def _own(principal: Principal, name: str) -> str:
    return build_uri(("user", principal.internal_id, "skills", name))
