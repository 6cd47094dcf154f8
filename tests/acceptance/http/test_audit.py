"""The audit log over HTTP, with real keys: who, from where, and with which key."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import PermissionDeniedError, UnauthenticatedError
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("served"), root_api_key=ROOT_KEY) as server:
        yield server


@pytest.fixture
def operator(server: ServerProcess) -> Iterator[holdfast.Client]:
    with holdfast.connect(server.url, api_key=ROOT_KEY) as client:
        yield client
        client.admin.delete_account("acme")


@pytest.fixture
def admin(server: ServerProcess, operator: holdfast.Client) -> Iterator[holdfast.Client]:
    key = operator.admin.create_account("acme", "boss").user_key
    with holdfast.connect(server.url, api_key=key) as client:
        yield client


def test_a_change_names_the_address_and_the_key(server: ServerProcess, admin: holdfast.Client) -> None:
    created = admin.admin.create_user("acme", "alice")
    (key,) = admin.admin.list_keys("acme", "alice")
    with holdfast.connect(server.url, api_key=created.user_key) as alice:
        alice.create_session("s")
        alice.get_messages("s")
    lines = admin.list_audit(user_id="alice").records
    assert {line.action for line in lines} == {"UseKey", "CreateSession", "OpenSession"}
    assert {(line.address, line.key_id) for line in lines} == {("127.0.0.1", key.key_id)}
    assert admin.verify_audit().is_intact


def test_a_wrong_key_is_audited_in_the_account_that_it_names(server: ServerProcess, admin: holdfast.Client) -> None:
    created = admin.admin.create_user("acme", "alice")
    wrong = created.user_key[:-1] + ("A" if created.user_key[-1] != "A" else "B")
    for _ in range(3):
        with holdfast.connect(server.url, api_key=wrong) as eve, pytest.raises(UnauthenticatedError):
            eve.list_sessions()
    (line,) = admin.list_audit(outcome="denied").records
    (key,) = admin.admin.list_keys("acme", "alice")
    assert (line.action, line.resource, line.address, line.user_id) == ("UseKey", key.key_id, "127.0.0.1", "")


def test_what_the_operator_may_not_read_is_in_the_operators_audit(operator: holdfast.Client) -> None:
    operator.admin.create_account("acme")
    with pytest.raises(PermissionDeniedError):
        operator.get_session("private")
    denied = operator.admin.list_operator_audit(outcome="denied").records
    assert [(line.action, line.user_id) for line in denied] == [("GetSession", "operator")]


def test_an_auditor_exports_and_verifies_with_the_command_line(
    server: ServerProcess, admin: holdfast.Client, tmp_path: Path
) -> None:
    key = admin.admin.create_user("acme", "carol", "auditor").user_key
    file = tmp_path / "audit.jsonl"

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    exported = run("audit", "export", str(file), "--url", server.url, "--api-key", key)
    assert (exported.returncode, exported.stderr) == (0, "")
    verified = run("audit", "verify", str(file))
    assert verified.returncode == 0
    assert "The chain of account acme is intact" in verified.stdout
    file.write_text(file.read_text().replace("carol", "eve", 1))
    changed = run("audit", "verify", str(file))
    assert changed.returncode == 1
    assert "The chain of account acme is not intact (changed): the content of line" in changed.stdout
    assert run("audit", "verify", "--url", server.url, "--api-key", key).returncode == 0
