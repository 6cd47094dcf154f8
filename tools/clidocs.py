"""Write `docs/cli.md` from the commands themselves, or `--check` it.

It is made from the tree of commands (names, options, help), not from what `--help` prints: that differs with the
terminal and with the version of typer.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.cli import program
from holdfast.cli.errors import EXIT_CODES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/cli.md"

HEAD = """\
# The command line

<!-- Made by `tools/clidocs.py` from the commands themselves; do not edit. -->

`holdfast` does on the command line what the client does in Python, embedded or through a server alike.

```console
$ holdfast session add-message chat_001 --role user --content "How do I authenticate users?"
$ holdfast session messages chat_001
$ holdfast serve --path ./data
$ holdfast --url http://127.0.0.1:1933 session list -o json
```

Where it looks is said by `--path` or `--url`, else by `HOLDFAST_PATH` or `HOLDFAST_URL`, else by the settings file
that `--config` or `HOLDFAST_CONFIG` names; without any of these it is a file in the platform's data folder. A
`holdfast.toml` that merely lies in the current folder may set little; [settings](settings.md) says what.

- **Output**: a table by default, fitted to the terminal; whole and without colours where there is none. `-o json`
  prints one document, exactly as it is on the wire, and `-o jsonl` a line for each item of a list.
- **Input**: `-` reads the standard input, and `@file` a file, wherever an option or argument says so.
- **Errors** are one sentence on the error output, and a code:
"""

TAIL_OF_HEAD = """
`holdfast --install-completion` teaches your shell to complete commands, options and the ids of sessions;
`--show-completion` only shows what it would install.
"""


def page() -> str:
    root = program()
    rows = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    codes = "\n".join(["| code | meaning |", "|---|---|", *rows])
    general = "## Options of every command\n\nThey may stand before or behind the command's name.\n"
    options = "\n".join(described(param) for param in root.params if param.expose_value)
    sections = [section(path, command) for path, command in commands(root, ("holdfast",))]
    return "\n".join([HEAD, codes, TAIL_OF_HEAD, general, options, "", *sections]).rstrip() + "\n"


def commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        here = (*path, name)
        yield " ".join(here), command
        if hasattr(command, "commands"):
            yield from commands(command, here)


def section(path: str, command: Any) -> str:
    params = [param for param in command.params if param.expose_value]
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option"]
    depth = "#" * min(len(path.split()), 3)
    if hasattr(command, "commands"):
        return f"{depth} {path}\n\n{command.help}\n"
    usage = " ".join([path, *(param.metavar for param in arguments), *(["[OPTIONS]"] if options else [])])
    pieces = [f"{depth} {path}", "", flowing(command.help), "", "```text", usage, "```", ""]
    if params:
        pieces += [*(described(param) for param in [*arguments, *options]), ""]
    examples = re.findall(r"^ +(\$ .*)$", command.epilog or "", re.MULTILINE)
    return "\n".join([*pieces, "```console", *examples, "```", ""])


def described(param: Any) -> str:
    names = [param.metavar] if param.param_type_name == "argument" else [", ".join(sorted(param.opts, key=len))]
    if param.param_type_name == "option" and not param.is_flag:
        names.append(param.metavar)
    notes = ["required"] if param.required and param.param_type_name == "option" else []
    if param.show_default and param.default not in (None, False):
        notes.append(f"default: {param.default}")
    return f"- `{' '.join(names)}`: {param.help}" + (f" ({', '.join(notes)})" if notes else "")


def flowing(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is out of date")
    check = parser.parse_args().check
    made = page()
    if not check:
        PAGE.write_text(made, "utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text("utf-8") == made:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is out of date: run `python tools/clidocs.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
