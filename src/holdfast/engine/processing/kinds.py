"""Which kind of document the nodes of a root are."""


def kind_of(root: str) -> str:
    """Return `skill` or `resource`.

    >>> kind_of("user/alice/skills"), kind_of("resources")
    ('skill', 'resource')
    """
    return "skill" if root.endswith("/skills") else "resource"
