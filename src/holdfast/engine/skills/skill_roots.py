"""Where skills are: the caller's own folder, and the folder of the published ones."""

from typing import NamedTuple

from holdfast.engine.tree import mounts
from holdfast.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from holdfast.model.identity import Principal
from holdfast.model.uris import build_uri, child_uri, encode_path, parse_uri
from holdfast.store.database import Tx
from holdfast.store.tables.tree import roots, skill_nodes
from holdfast.store.tables.tree.skill_nodes import SkillNode

SKILLS = "skills"
PUBLISHED_URI = "viking://system/skills"


class SkillRoot(NamedTuple):
    root: str
    uri: str
    is_published: bool

    def uri_of(self, name: str) -> str:
        return child_uri(self.uri, name)


PUBLISHED = SkillRoot(roots.PUBLISHED_SKILLS, PUBLISHED_URI, is_published=True)


def own_root(principal: Principal) -> SkillRoot:
    uri = build_uri((mounts.USERS, principal.user_id, SKILLS))
    return SkillRoot(roots.of_user(principal.internal_id, SKILLS), uri, is_published=False)


def roots_at(principal: Principal, target_uri: str) -> list[SkillRoot]:
    """Return the roots at or below an address: the caller's own first. Without an address, all of them."""
    every = [own_root(principal), PUBLISHED]
    if not target_uri:
        return every
    names = _names_of(principal, target_uri)
    found = [root for root in every if parse_uri(root.uri)[: len(names)] == names]
    if found:
        return found
    mounts.require_scope(target_uri, names)
    if names[:1] == (mounts.USERS,) and names[1:2] != (principal.user_id,):
        error = NotFoundError("folder", target_uri)
        error.denies_access = True
        raise error
    raise InvalidArgumentError(
        "target_uri", f"{target_uri} is no folder of skills; use {every[0].uri} or {PUBLISHED_URI}"
    )


def root_for_writing(principal: Principal, target_uri: str) -> SkillRoot:
    """Return the root that a change is for: by default the caller's own."""
    root = roots_at(principal, target_uri)[0]
    if root.is_published and principal.role not in {"admin", "root"}:
        raise PermissionDeniedError(
            f"only an administrator of the account may change skills in {PUBLISHED_URI}", role=principal.role
        )
    return root


def find_skill(tx: Tx, found_roots: list[SkillRoot], name: str) -> tuple[SkillRoot, SkillNode] | None:
    """Return the skill with a name in the first root that has one."""
    for root in found_roots:
        node = skill_nodes.find(tx, root.root, encode_path([name]))
        if node is not None:
            return root, node
    return None


def require_skill(tx: Tx, found_roots: list[SkillRoot], name: str) -> tuple[SkillRoot, SkillNode]:
    found = find_skill(tx, found_roots, name)
    if found is None:
        raise NotFoundError("skill", name)
    return found


def _names_of(principal: Principal, uri: str) -> tuple[str, ...]:
    """Return the names of an address, with the name of the caller in place of an alias."""
    names = tuple(name or principal.user_id for name in parse_uri(uri))
    if names[:2] == (mounts.USERS, principal.internal_id):
        return (mounts.USERS, principal.user_id, *names[2:])
    return names
