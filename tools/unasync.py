"""Generate `aclient.py` from `client.py`, and so on: `python tools/unasync.py`, or `--check` that they are up to date.

The client is written once, synchronously. A method becomes asynchronous if it asks the transport, or uses a method
or property that does; exactly those calls get an `await`. Everything else stays as it is written.
"""

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src/holdfast/client"
TWINS = {
    FOLDER / f"{name}.py": FOLDER / f"a{name}.py"
    for name in ("client", "operations", "session", "commits", "files", "admin", "http")
}

NAMES = {
    "Client": "AsyncClient",
    "Session": "AsyncSession",
    "Admin": "AsyncAdmin",
    "Commits": "AsyncCommits",
    "Files": "AsyncFiles",
    "Operations": "AsyncOperations",
    "Transport": "AsyncTransport",
    "HttpTransport": "AsyncHttpTransport",
    "open_transport": "open_async_transport",
    "connect": "connect_async",
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "_connections.close": "_connections.aclose",
    "time.sleep": "asyncio.sleep",
    "import time": "import asyncio",
}
HEADER = '"""The asynchronous twin. Generated from `{}` by `tools/unasync.py`; do not edit."""\n'
ALWAYS = {"__enter__", "__exit__"}
"""Python awaits these whether they wait for something or not."""


def generate(file: Path) -> str:
    source = file.read_text("utf-8")
    tree = ast.parse(source)
    methods = _methods(tree)
    # A class may call what another file defines: the client's files are read as one.
    apart = {file, FOLDER / "http.py"} if file.stem != "http" else set(TWINS)
    others = [method for twin in TWINS if twin not in apart for method in _methods(_parsed(twin))]
    waiting = _waiting([*methods, *others])
    edits: list[tuple[int, int, str]] = []
    for method in methods:
        if method.name not in waiting | ALWAYS:
            continue
        edits.append((method.lineno, method.col_offset, "async "))
        edits += [(call.lineno, call.col_offset, "await ") for call in _calls(method) if _waits(call, waiting)]
    lines = source.splitlines(keepends=True)
    for line, column, text in sorted(set(edits), reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]
    names = "|".join(map(re.escape, NAMES))
    body = re.sub(rf"\b({names})\b", lambda found: NAMES[found[1]], "".join(lines[tree.body[1].lineno - 1 :]))
    for module in ("transport", "admin", "operations", "session", "commits", "files"):
        body = body.replace(f"holdfast.client.{module} ", f"holdfast.client.a{module} ")
    return _formatted(f"{HEADER.format(file.name)}\n{body.replace('a `with`', 'an `async with`')}")


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _methods(tree: ast.Module) -> list[ast.FunctionDef]:
    return [f for c in tree.body if isinstance(c, ast.ClassDef) for f in c.body if isinstance(f, ast.FunctionDef)]


def _waiting(methods: list[ast.FunctionDef]) -> set[str]:
    """The names of methods that reach the transport, directly or through one another."""
    waiting: set[str] = set()
    while True:
        more = {m.name for m in methods if any(_waits(call, waiting) for call in _calls(m))}
        if more == waiting:
            return waiting
        waiting = more


def _calls(method: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in ast.walk(method) if isinstance(node, ast.Call)]


def _waits(call: ast.Call, waiting: set[str]) -> bool:
    """Whether a call asks the transport or the network, sleeps, or is one of a method that does."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = ast.unparse(call.func.value)
    if owner == "time" or owner.endswith(("._transport", "._connections")):
        return True
    return owner in {"self", "self._client"} and call.func.attr in waiting


def _formatted(source: str) -> str:
    command = [sys.executable, "-m", "ruff"]
    for arguments in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [*command, *arguments, "--stdin-filename", str(FOLDER / "aclient.py"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        source = done.stdout
    return source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the file is out of date")
    check = parser.parse_args().check
    stale = 0
    for source, target in TWINS.items():
        generated = generate(source)
        if not check:
            target.write_text(generated, "utf-8")
        elif not target.exists() or target.read_text("utf-8") != generated:
            print(f"{target.relative_to(ROOT)} is out of date: run `python tools/unasync.py`", file=sys.stderr)
            stale += 1
    return min(stale, 1)


if __name__ == "__main__":
    raise SystemExit(main())
