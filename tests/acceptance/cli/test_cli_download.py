"""`holdfast download`, on an embedded database and through a real server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast

Cli = Callable[..., Any]
URI = "viking://resources/notes/plan ü.md"


@pytest.fixture(autouse=True)
def file(client: holdfast.Client) -> None:
    client.write(URI, "first")
    client.write(URI, "second\r\n")


def test_a_file_is_written_as_it_is_stored(
    cli: Cli, cli_ok: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "copy.md"
    done = cli_ok("download", URI, str(target))
    assert target.read_bytes() == b"second\r\n"
    assert done.out == f"Wrote 8 bytes to {target}.\n"
    refused = cli("download", URI, str(target))
    assert refused.code != 0
    assert "exists already" in refused.err
    assert cli_ok("download", URI, str(target), "--version", "1", "--overwrite", "-o", "json").json["size"] == 5
    assert target.read_bytes() == b"first"
    assert "not found" in cli("download", "viking://resources/missing.md", str(tmp_path / "x")).err
    assert not (tmp_path / "x").exists()
