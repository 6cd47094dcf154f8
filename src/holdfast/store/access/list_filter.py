"""Which accounts or users a list has."""

import msgspec

from holdfast.model.identity import TenantRole

UNLIMITED = 2**31 - 1


class ListFilter(msgspec.Struct, frozen=True, kw_only=True):
    name_parts: tuple[str, ...] = ()
    """Texts that a name must contain, ignoring case."""
    role: TenantRole | None = None
    limit: int | None = None
    offset: int = 0

    def conditions(self, name_column: str, role_column: str | None = None) -> tuple[str, list[str]]:
        """Return SQL conditions, each after AND, and their parameters."""
        where = [f" AND LOWER({name_column}) LIKE ? ESCAPE '!'" for _ in self.name_parts]
        params = [_like_pattern(part) for part in self.name_parts]
        if self.role is not None and role_column is not None:
            where.append(f" AND {role_column} = ?")
            params.append(self.role)
        return "".join(where), params

    def page_params(self) -> tuple[int, int]:
        """Return the parameters of LIMIT and OFFSET."""
        return UNLIMITED if self.limit is None else self.limit, self.offset


EVERY_ROW = ListFilter()


def _like_pattern(part: str) -> str:
    """Return the pattern of names with a text in them. `*` and `?` in it stand for any characters, and for one."""
    escaped = part.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    if "*" in escaped or "?" in escaped:
        return escaped.replace("*", "%").replace("?", "_")
    return f"%{escaped}%"
