"""The documentation matches the behaviour."""

import contextlib
import doctest
import importlib
import io
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import holdfast
from holdfast import Settings, errors
from holdfast.config_file import DISCOVERED_FILE_MAY_SET
from holdfast.testing.server import running_server

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = [
    "README.md",
    "docs/sessions.md",
    "docs/sharing.md",
    "docs/commits.md",
    "docs/search.md",
    "docs/files.md",
    "docs/skills.md",
    "docs/resources.md",
    "docs/server.md",
    "docs/exchange.md",
    "docs/audit.md",
    "docs/evaluation.md",
]
SERVER = "localhost:1933"


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_print_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all blocks of a page in one folder: Python in one namespace, commands in a shell, with a real server.

    A text block is the expected output of the block before it.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    text = (ROOT / page).read_text("utf-8")
    with contextlib.ExitStack() as stack:
        if SERVER in text:
            server = stack.enter_context(running_server(tmp_path / "served"))
            text = text.replace(SERVER, f"localhost:{server.port}")
        output, checked = "", 0
        namespace: dict[str, Any] = {"__name__": "__example__"}
        for language, options, code in BLOCK.findall(text):
            if language == "python" and "no-run" not in options:
                stdout = io.StringIO()
                with contextlib.redirect_stdout(stdout):
                    exec(compile(code, page, "exec"), namespace)
                output = stdout.getvalue()
            elif language == "console":
                output = "".join(run_in_shell(command) for command in commands(code))
            elif language == "text":
                assert output == code
                checked += 1
        for client in [value for value in namespace.values() if isinstance(value, holdfast.Client)]:
            client.close()
    assert checked >= 1


def commands(block: str) -> list[str]:
    """Return the commands of a block that can be run here: not those that install, serve or are marked `# no-run`."""
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    skipped = ("make ", "pip ", "holdfast serve", "export ")
    runnable = [line.removeprefix("$ ") for line in lines if line.startswith("$ ") and "# no-run" not in line]
    return [line for line in runnable if not line.startswith(skipped) and "db.internal" not in line]


def run_in_shell(command: str) -> str:
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    if command.startswith("curl"):
        assert json.loads(result.stdout)["status"] == "ok", f"{command}: {result.stdout}"
    return result.stdout


def test_make_serve_starts_the_server(tmp_path: Path) -> None:
    venv = Path(sys.executable).parent.parent
    command = ["make", "--no-print-directory", "serve", f"VENV={venv}", f"DATA={tmp_path}", "PORT=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True) as process:
        try:
            assert process.stdout
            (url,) = re.findall(r"http://\S+:\d+", process.stdout.readline())
            assert httpx2.get(f"{url}/health").json()["healthy"]
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")]


@pytest.mark.parametrize("name", ["holdfast", *modules()])
def test_the_examples_in_docstrings_pass(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_setting_is_documented_with_its_default() -> None:
    table = (ROOT / "docs/settings.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", table, re.MULTILINE))
    defaults = msgspec.structs.asdict(Settings())
    assert documented == {name: "none" if value is None else str(value) for name, value in defaults.items()}


def test_the_settings_that_a_discovered_file_can_set_are_documented() -> None:
    table = (ROOT / "docs/settings.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(\w+)` \| \S+ \| (yes|no) \|", table, re.MULTILINE))
    assert documented == {
        name: "yes" if name in DISCOVERED_FILE_MAY_SET else "no" for name in Settings.__struct_fields__
    }


def test_every_error_is_documented() -> None:
    page = (ROOT / "docs/sessions.md").read_text("utf-8")
    for kind in errors.HoldfastError.__subclasses__():
        assert f"| `{kind.__name__}` | {kind.code} |" in page


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text("utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


@pytest.mark.parametrize(
    "page", [str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
)
def test_relative_links_exist(page: str) -> None:
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", (ROOT / page).read_text("utf-8")):
        assert ((ROOT / page).parent / link).exists(), link


def test_every_documented_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"[`$] ?make ([a-z-]+)", (ROOT / page).read_text("utf-8"))) <= targets


def test_the_demo_runs() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "demo/demo.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "missing 0, without gaps: True" in result.stdout
    assert "lost 0, duplicated 0" in result.stdout
    assert "End of the demo." in result.stdout


def test_the_bench_runs_and_writes_its_figures(tmp_path: Path) -> None:
    """Speed is not checked, because it depends on other load on the machine."""
    result = subprocess.run(
        [
            sys.executable,
            str(ROOT / "bench/bench.py"),
            "--quick",
            "--dir",
            str(tmp_path),
            "--out",
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    (written,) = (tmp_path / "out").iterdir()
    figures = json.loads(written.read_text())["figures"]
    assert len(figures) == 88
    assert all(figure["measured"]["count"] > 0 for figure in figures)
