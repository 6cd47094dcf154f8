"""Check the structure of the source: `python tools/structure.py` prints each violation and fails if there is one.

Folders, files and functions stay small. SQL stays in the store. Words of a private vocabulary stay out.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src/holdfast"
MAX_MODULES = 18
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAY_HOLD_SQL = ("store", "testing")
SQL = re.compile(r"\s*(SELECT |INSERT INTO |UPDATE \w+ SET |DELETE FROM |PRAGMA )")
PRIVATE_WORDS = re.compile(r"\b(told|whom|breathe\w*|amiss|MOST_\w+|LEAST_\w+|LONGEST_\w+|SHORTEST_\w+)\b")


def violations(source: Path) -> Iterator[str]:
    files = sorted(source.rglob("*.py"))
    for folder in sorted({file.parent for file in files}):
        count = sum(file.parent == folder for file in files)
        if count > MAX_MODULES:
            yield f"{folder}: {count} modules, more than {MAX_MODULES}; find the second capability in it"
    for file in files:
        text = file.read_text("utf-8")
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{file}: {lines} lines, more than {MAX_FILE_LINES}; split it by noun"
        yield from _long_functions(file, ast.parse(text))
        if file.relative_to(source).parts[0] not in MAY_HOLD_SQL:
            yield from _sql(file, ast.parse(text))
        yield from _private_words(file, text)


def _long_functions(file: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield f"{file}:{node.lineno}: {node.name} has {lines} lines, more than {MAX_FUNCTION_LINES}"


def _sql(file: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
            yield f"{file}:{node.lineno}: SQL outside store/"


def _private_words(file: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.split("\n"), 1):
        found = PRIVATE_WORDS.search(line)
        if found and not _is_data(file):
            yield f"{file}:{number}: {found[0]!r}; use the usual technical word"


def _is_data(file: Path) -> bool:
    """Whether the file lists words that users write."""
    return "rules" in file.parts or file.stem in {"cues", "selection", "concepts"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, nargs="?", default=SOURCE, help="the package to check")
    found = list(violations(parser.parse_args().source))
    for violation in found:
        print(violation, file=sys.stderr)
    return min(len(found), 1)


if __name__ == "__main__":
    raise SystemExit(main())
