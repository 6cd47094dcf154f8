"""Which files of a source are added: patterns of names, and folders to leave out."""

from fnmatch import fnmatchcase

import msgspec

IGNORED_FOLDERS = ".git,node_modules,__pycache__"
"""Folders that are left out unless the request names others."""


class FileSelection(msgspec.Struct, frozen=True):
    """Patterns as in a shell. One without a slash is compared with names, one with a slash with paths."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    """Names, or paths from the top of the source, of folders."""

    def accepts(self, path: str) -> bool:
        """Whether a file is added. `path` has the names from the top of the source on, with slashes between.

        >>> selection = parse_selection("*.md,docs/*.txt", "draft*", None)
        >>> [selection.accepts(path) for path in ("a.md", "docs/b.txt", "b.txt", "x/draft.md", ".git/a.md")]
        [True, True, False, False, False]
        """
        name = path.rpartition("/")[2]
        if self.include and not any(_matches(pattern, path, name) for pattern in self.include):
            return False
        if any(_matches(pattern, path, name) for pattern in self.exclude):
            return False
        return not self.ignores_folder_of(path)

    def ignores_folder_of(self, path: str) -> bool:
        """Whether a file is in a folder that is left out."""
        names = path.split("/")[:-1]
        return any(self.ignores("/".join(names[: depth + 1])) for depth in range(len(names)))

    def ignores(self, folder: str) -> bool:
        """Whether a folder is left out, by its path from the top of the source on."""
        return folder in self.ignored or folder.rpartition("/")[2] in self.ignored


def parse_selection(include: str | None, exclude: str | None, ignore_dirs: str | None) -> FileSelection:
    """Return the selection that comma-separated lists describe. `None` as `ignore_dirs` means the usual folders."""
    ignored = _split(IGNORED_FOLDERS if ignore_dirs is None else ignore_dirs)
    return FileSelection(_split(include), _split(exclude), frozenset(each.strip("/") for each in ignored))


def _split(patterns: str | None) -> tuple[str, ...]:
    return tuple(stripped for each in (patterns or "").split(",") if (stripped := each.strip()))


def _matches(pattern: str, path: str, name: str) -> bool:
    return fnmatchcase(path if "/" in pattern else name, pattern)
