"""Packs between databases, over HTTP as published clients use it, and on the command line."""

import io
import random
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

import holdfast
from holdfast.testing.server import running_server

GUIDE = "viking://resources/guide"
ROOT_KEY = "the-operators-key"
Cli = Callable[..., Any]


def plain_pack(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"guide/files/{name}", content)
    return path


def test_a_pack_moves_a_thousand_files_to_another_database(target: str, tmp_path: Path) -> None:
    rng = random.Random(1)
    files = {f"{number % 7}/{number % 31}/{number}.md": rng.randbytes(rng.randint(0, 300)) for number in range(998)}
    files |= {"zeros.bin": bytes(5 << 20), "noise.bin": rng.randbytes((3 << 20) + 1)}
    began = time.process_time()
    progress: list[tuple[int, int]] = []
    with holdfast.connect(":memory:", settings=holdfast.Settings(worker_threads=0)) as source:
        source.import_pack(plain_pack(tmp_path / "plain", files), "viking://resources")
        source.export_pack(GUIDE, tmp_path / "pack", on_progress=lambda done, all_, _: progress.append((done, all_)))
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        imported = client.import_pack(tmp_path / "pack", "viking://resources")
        assert imported.files == 1_000
        assert time.process_time() - began < 5
        assert client.ls(GUIDE, recursive=True, simple=True, node_limit=10_000).count(f"{GUIDE}/0/0/0.md") == 1
        for name in ("zeros.bin", "noise.bin", "1/1/1.md", "3/5/997.md"):
            assert client.read_bytes(f"{GUIDE}/{name}") == files[name]
    assert progress[-1] == (sum(map(len, files.values())),) * 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx2.Client]]:
    """HTTP clients of two users, on a server with keys."""
    with ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path_factory.mktemp("served"), root_api_key=ROOT_KEY))
        operator = stack.enter_context(holdfast.connect(server.url, api_key=ROOT_KEY))
        operator.admin.create_account("acme")
        keys = {user: operator.admin.create_user("acme", user).user_key for user in ("alice", "bob")}
        yield {
            user: stack.enter_context(
                httpx2.Client(base_url=f"{server.url}/api/v1/", headers={"X-API-Key": key}, timeout=30)
            )
            for user, key in keys.items()
        }


def write(client: httpx2.Client, uri: str, content: str) -> None:
    assert client.post("content/write", json={"uri": uri, "content": content}).status_code == 200


def upload(client: httpx2.Client, content: bytes) -> str:
    sent = client.post("resources/temp_upload", files={"file": ("x.ovpack", content)})
    return str(sent.json()["result"]["temp_file_id"])


def test_a_server_sends_a_pack_and_imports_it(served: dict[str, httpx2.Client]) -> None:
    alice = served["alice"]
    write(alice, "viking://resources/日本/a.md", "one")
    sent = alice.post("pack/export?profile=0", json={"uri": "viking://resources/日本", "include_vectors": True})
    assert sent.headers["content-type"] == "application/zip"
    assert sent.headers["content-disposition"].startswith("attachment; filename=\"pack.ovpack\"; filename*=UTF-8''%E6")
    assert zipfile.ZipFile(io.BytesIO(sent.content)).read("日本/files/a.md") == b"one"
    fields = {"temp_file_id": upload(alice, sent.content), "parent": "viking://resources/copies"}
    imported = alice.post("pack/import", json=fields | {"vector_mode": "auto"})
    assert imported.json()["result"]["uri"] == "viking://resources/copies/日本"
    assert alice.post("pack/import", json=fields).status_code == 409
    assert alice.post("pack/import", json=fields | {"vector_mode": "require"}).status_code == 400
    backup = alice.post("pack/backup", json={"include_vectors": False})
    assert 'filename="backup.ovpack"' in backup.headers["content-disposition"]
    restored = alice.post("pack/restore", json={"temp_file_id": upload(alice, backup.content), "on_conflict": "skip"})
    assert restored.json()["result"]["uri"] == "viking://"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"uri": "viking://resources/missing"}, 404),
        ({"uri": "viking://user/alice/resources"}, 404),
        ({"uri": "viking://"}, 400),
        ({"uri": 5}, 400),
        ({}, 400),
        ({"uri": "viking://resources/%2F", "include_vectors": "yes"}, 400),
        ({"uri": "viking://resources/../x"}, 403),
    ],
)
def test_a_server_refuses_to_export_what_is_not_there_or_not_the_callers(
    served: dict[str, httpx2.Client], fields: dict[str, Any], status: int
) -> None:
    write(served["alice"], "viking://~/resources/secret.md", "private")
    refused = served["bob"].post("pack/export", json=fields)
    assert (refused.status_code, refused.json()["status"]) == (status, "error")


def test_the_upload_of_another_user_cannot_be_imported(served: dict[str, httpx2.Client], tmp_path: Path) -> None:
    pack = plain_pack(tmp_path / "pack", {"a.md": b"one"}).read_bytes()
    fields = {"temp_file_id": upload(served["alice"], pack), "parent": "viking://~/resources"}
    assert served["bob"].post("pack/import", json=fields).status_code == 403
    assert served["alice"].post("pack/import", json=fields).status_code == 200


def test_the_command_line_exports_and_imports_packs(
    cli_ok: Cli, cli: Cli, client: holdfast.Client, tmp_path: Path
) -> None:
    client.write(f"{GUIDE}/a.md", "one")
    pack, everything = str(tmp_path / "guide.ovpack"), str(tmp_path / "all.ovpack")
    assert "1 files in 1 folders with 1 versions" in cli_ok("pack", "export", GUIDE, pack).out
    assert cli("pack", "export", GUIDE, pack).code != 0
    cli_ok("pack", "export", GUIDE, pack, "--overwrite", "--current-only")
    done = cli_ok("pack", "import", pack, "viking://resources/copies", "--output", "json").json
    assert (done["uri"], done["files"]) == ("viking://resources/copies/guide", 1)
    assert "exists already" in cli("pack", "import", pack, "viking://resources/copies").err
    assert "1 stay as they are" in cli_ok("pack", "import", pack, "viking://resources", "--on-conflict", "skip").out
    cli_ok("pack", "backup", everything)
    assert "2 stay as they are" in cli_ok("pack", "restore", everything, "--on-conflict", "overwrite").out
