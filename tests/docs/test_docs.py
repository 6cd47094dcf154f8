"""What the documentation says is what happens."""

import contextlib
import doctest
import importlib
import io
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast import Settings, errors

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/sessions.md"])
def test_the_examples_of_a_page_print_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python blocks run in one namespace; a text block is what the block before it prints."""
    monkeypatch.chdir(tmp_path)
    printed, names, expected = "", {"__name__": "__example__"}, 0
    for language, options, code in BLOCK.findall((ROOT / page).read_text("utf-8")):
        if language == "python" and "no-run" not in options:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, page, "exec"), names)
            printed = out.getvalue()
        elif language == "text":
            assert printed == code
            expected += 1
    assert expected >= 1
    for client in [value for value in names.values() if isinstance(value, holdfast.Client)]:
        client.close()


def modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")]


@pytest.mark.parametrize("name", ["holdfast", *modules()])
def test_the_examples_in_docstrings_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_setting_is_documented_with_its_default() -> None:
    table = (ROOT / "docs/storage.md").read_text("utf-8").split("<!-- settings -->")[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", table, re.MULTILINE))
    defaults = msgspec.structs.asdict(Settings())
    assert documented == {name: "none" if value is None else str(value) for name, value in defaults.items()}


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
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", (ROOT / page).read_text("utf-8")):
        assert ((ROOT / page).parent / link).exists(), link


def test_every_make_target_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"[`$] ?make ([a-z-]+)", (ROOT / page).read_text("utf-8"))) <= targets


def test_the_demo_runs_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "demo/demo.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "missing 0, gapless: True" in done.stdout
    assert "That was it." in done.stdout


def test_the_bench_runs_to_its_end_and_writes_its_figures(tmp_path: Path) -> None:
    """Whether it works, not how fast: a busy machine would make a timed test lie."""
    done = subprocess.run(
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
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (written,) = (tmp_path / "out").iterdir()
    figures = json.loads(written.read_text())["figures"]
    assert len(figures) == 10
    assert all(figure["ours"]["count"] > 0 for figure in figures)
