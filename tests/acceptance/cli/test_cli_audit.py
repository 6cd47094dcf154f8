"""What `holdfast audit` prints about a chain: what was verified, and what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]


@pytest.fixture
def audit(run_cli: Cli, tmp_path: Path) -> Cli:
    """Run `holdfast audit` on a database with one session."""
    target = ("--path", str(tmp_path / "data"))
    run_cli(*target, "session", "new", "--id", "chat")
    return lambda *args: run_cli(*target, "audit", *args)


def test_an_erasure_names_the_lines_and_not_only_their_number(audit: Cli) -> None:
    (line,) = audit("list", "--resource", "chat", "-o", "json").json["records"]
    assert audit("erase", line["id"]).out == f"erased the content of line {line['number']}\n"
    assert "is intact: 3 lines from 1 to 3, 1 erased; its last link is" in audit("verify").out


def test_a_wrong_signature_is_named(audit: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AUDIT_KEY", "a key")
    file = str(tmp_path / "audit.jsonl")
    audit("export", file)
    done = audit("verify", file, "--key", "another key")
    assert done.out == "The chain of account default is not intact (signature): the head is not signed with this key.\n"
    assert done.code == 1


def test_verifying_says_how_many_saved_heads_it_found_even_if_there_are_none(audit: Cli, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    heads.write_text("")
    done = audit("verify", "--heads", str(heads))
    assert (done.code, ", 0 saved heads found;" in done.out) == (0, True)
    assert "saved heads" not in audit("verify").out


def test_the_log_of_operators_is_called_by_its_name(audit: Cli, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    assert audit("verify", "--operator").out.startswith(
        "The chain of the log of operators is intact: 0 lines; its last"
    )
    assert audit("export", str(file), "--operator").out == f"0 lines of the log of operators were written to {file}\n"
