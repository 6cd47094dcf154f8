"""The operations as data: their fields, results, routes and required roles.

Importing one of these modules imports all of them, so that `table.OPERATIONS` is always complete.
"""

from holdfast.ops import administration, audit, commits, search, sessions, system, tasks, vectors
from holdfast.ops.tree import files, skills

__all__ = ["administration", "audit", "commits", "files", "search", "sessions", "skills", "system", "tasks", "vectors"]
