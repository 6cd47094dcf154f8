"""A planted `holdfast.toml` in the current folder cannot redirect keys or texts."""

import json
import logging
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.fork_server import ForkedProcess
from holdfast.testing.model import FakeModel, running_model

PROGRAM = ["-W", "error", "-m", "holdfast"]
TIMEOUT_SECONDS = 60
KEYS = {
    "OPENAI_API_KEY": "sk-key-of-openai",
    "ANTHROPIC_API_KEY": "sk-key-of-anthropic",
    "HOLDFAST_API_KEY": "hf-key-of-the-server",
}
TEXT = "The kumquat is buried in Zanzibar."


class Attacker:
    """Listens at an address and records all connections. A test fails if there are any."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    connection.settimeout(1)
                    self.received.append(connection.recv(65536))

    def stop(self) -> None:
        self._listener.close()


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    attacker = Attacker()
    yield attacker
    assert attacker.received == []
    attacker.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A foreign current folder. The user's keys are in the environment, the user's data in another folder."""
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "foreign").mkdir()
    monkeypatch.chdir(tmp_path / "foreign")
    return tmp_path / "foreign"


def plant_file(folder: Path, attacker: Attacker, attack: str) -> None:
    """Write a settings file that tries to redirect keys or texts in one way."""
    model = 'model_provider = "openai"\nmodel_name = "m"\n'
    attacks = {
        "server": f'url = "{attacker.url}"\n',
        "openai": f'{model}model_base_url = "{attacker.url}/v1"\n',
        "anthropic": f'{model.replace("openai", "anthropic")}model_base_url = "{attacker.url}"\n',
        "embeddings": f'embedder = "openai"\nembedding_model = "e"\nembedding_base_url = "{attacker.url}/v1"\n',
        "file": 'path = "stolen.db"\n',
        "database": f'path = "{attacker.url.replace("http", "postgresql")}/stolen"\n',
    }
    (folder / "holdfast.toml").write_text(attacks[attack])


ATTACKS = ["server", "openai", "anthropic", "embeddings", "file", "database"]


def add_and_commit(client: holdfast.Client) -> None:
    client.add_message("chat", "user", TEXT)
    task = client.wait_for_task(str(client.commit_session("chat").task_id), TIMEOUT_SECONDS)
    assert task.result
    assert (task.status, task.result["summarised_by"], task.result["notes"]) == ("completed", "local", [])


def run(*args: str, **env: str) -> "subprocess.CompletedProcess[str]":
    process = start(*args, **env)
    output, errors = process.communicate(TIMEOUT_SECONDS)
    return subprocess.CompletedProcess(args, process.wait(), output, errors)


def start(*args: str, **env: str) -> ForkedProcess:
    return ForkedProcess(PROGRAM, args, env={**os.environ, **env})


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_client_sends_nothing_to_the_address_of_a_planted_file(
    folder: Path, attacker: Attacker, attack: str, caplog: pytest.LogCaptureFixture
) -> None:
    plant_file(folder, attacker, attack)
    with holdfast.connect() as client:
        add_and_commit(client)
    assert sorted(path.name for path in folder.iterdir()) == ["holdfast.toml"]
    assert (folder.parent / "home/holdfast/holdfast.db").is_file()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("holdfast.settings", logging.WARNING)
    assert str(folder / "holdfast.toml") in record.getMessage()


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_command_line_sends_nothing_to_the_address_of_a_planted_file(
    folder: Path, attacker: Attacker, attack: str
) -> None:
    plant_file(folder, attacker, attack)
    done = run("session", "add-message", "chat", "--role", "user", "--content", TEXT, "-o", "json")
    assert (done.returncode, json.loads(done.stdout)["seq"]) == (0, 1)
    (warning,) = done.stderr.splitlines()
    assert warning.startswith(f"warning: '{folder}/holdfast.toml': ignored ")
    assert "name it: --config holdfast.toml" in warning
    for command in (("session", "commit", "chat", "--wait"), ("status",)):
        done = run(*command)
        assert (done.returncode, done.stderr.splitlines()) == (0, [warning])
    if attack == "server":
        found = json.loads(run("doctor", "-o", "json").stdout)
        states = {(finding["name"], finding["state"]) for finding in found}
        assert {("settings", "ok"), ("settings", "warn"), ("database", "ok")} <= states
    assert sorted(path.name for path in folder.iterdir()) == ["holdfast.toml"]


@pytest.mark.parametrize("attack", ["server", "database"])
def test_shell_completion_sends_nothing_to_the_address_of_a_planted_file(
    folder: Path, attacker: Attacker, attack: str
) -> None:
    plant_file(folder, attacker, attack)
    assert run("session", "new", "--id", "chat").returncode == 0
    done = run(
        _HOLDFAST_COMPLETE="complete_bash",
        COMP_WORDS="holdfast session get ch",
        COMP_CWORD="3",
        COMP_LINE="x",
        COMP_POINT="1",
    )
    assert (done.stdout.split(), done.stderr) == (["chat"], "")


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_server_and_a_worker_send_nothing_to_the_address_of_a_planted_file(
    folder: Path, attacker: Attacker, attack: str
) -> None:
    plant_file(folder, attacker, attack)
    server = start("serve", "--port", "0")
    try:
        url = server.stdout.readline().decode().split()[2]
        with holdfast.connect(url, settings=holdfast.Settings()) as client:
            add_and_commit(client)
    finally:
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(TIMEOUT_SECONDS)
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["event"] for line in lines[:2]] == ["settings read", "settings ignored"]
    assert (lines[0]["file"], lines[0]["named"]) == (str(folder / "holdfast.toml"), False)
    assert "which only a file that you name may set" in lines[1]["reason"]
    with holdfast.connect(settings=holdfast.Settings(worker_threads=0)) as client:
        client.add_message("later", "user", TEXT)
        task_id = str(client.commit_session("later").task_id)
        worked = run("worker", "--drain")
        assert client.get_task(task_id).status == "completed"
    assert f"settings are read from '{folder}/holdfast.toml', found in the current folder: none" in worked.stderr
    assert "which only a file that you name may set" in worked.stderr


def test_a_planted_file_cannot_redirect_the_provider_of_the_user(folder: Path, attacker: Attacker) -> None:
    """The user configured a provider in the environment; the file sets only the address or the model."""
    with running_model() as model:
        mine = {
            "HOLDFAST_MODEL_PROVIDER": "openai",
            "HOLDFAST_MODEL_NAME": "mine",
            "HOLDFAST_MODEL_BASE_URL": model.url,
        }
        (folder / "holdfast.toml").write_text(
            f'model_base_url = "{attacker.url}/v1"\nmodel_name = "dear"\n'
            'model_api_key = "stolen"\nmodel_output_tokens = 99999\n'
        )
        run("session", "add-message", "chat", "--role", "user", "--content", TEXT, **mine)
        assert run("session", "commit", "chat", "--wait", **mine).returncode == 0
        assert {request.headers["authorization"] for request in model.requests} == {"Bearer sk-key-of-openai"}
        assert {request.body["model"] for request in model.requests} == {"mine"}
        assert {request.body["max_tokens"] for request in model.requests} == {2_000}


def count_model_calls(model: FakeModel, *args: str, **env: str) -> int:
    run("session", "add-message", "chat", "--role", "user", "--content", TEXT, *args, **env)
    done = run("session", "commit", "chat", "--wait", *args, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return model.calls


def test_a_file_given_explicitly_is_trusted(folder: Path) -> None:
    with running_model() as model:
        (folder / "holdfast.toml").write_text(
            f'model_provider = "openai"\nmodel_name = "m"\nmodel_base_url = "{model.url}"\npath = "data"\n'
        )
        assert count_model_calls(model, "--config", "holdfast.toml") == 1
        assert count_model_calls(model, HOLDFAST_CONFIG=str(folder / "holdfast.toml")) == 2
        status = json.loads(run("status", "-o", "json", "--config", "holdfast.toml").stdout)
        assert (status["settings_file"], status["where"]) == (
            str(folder / "holdfast.toml"),
            str(folder / "data/holdfast.db"),
        )


def test_the_command_line_reports_the_use_of_a_discovered_file(folder: Path) -> None:
    assert json.loads(run("status", "-o", "json").stdout)["settings_file"] is None
    (folder / "holdfast.toml").write_text("tool_output_threshold = 500\n")
    note = f"settings are read from '{folder}/holdfast.toml', found in the current folder: tool_output_threshold\n"
    assert run("session", "list").stderr == note
    assert run("session", "list", "-o", "json").stderr == ""
    assert f"settings_file  {folder}/holdfast.toml" in run("status").stdout
    assert note.strip() in run("doctor").stdout


def test_an_invalid_discovered_file_does_not_stop_a_command(folder: Path) -> None:
    (folder / "holdfast.toml").write_text("<<<<<<< HEAD\n")
    for command in (("session", "list"), ("status",), ("worker", "--drain")):
        done = run(*command)
        assert (done.returncode, "is not TOML" in done.stderr) == (0, True)
    broken = run("session", "list", "--config", "holdfast.toml")
    assert (broken.returncode, "is not TOML" in broken.stderr) == (1, True)


def test_a_server_does_not_start_if_an_ignored_file_requires_keys(folder: Path) -> None:
    """The file requires keys. A server that ignored it would accept every local caller."""
    (folder / "holdfast.toml").write_text('root_api_key = "operator-key-0123456789"\n')
    refused = run("serve", "--port", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "sets root_api_key, but is ignored because it was not given explicitly" in refused.stderr
    assert "operator-key" not in refused.stderr
    assert "(api_key mode)" in first_line("serve", "--port", "0", "--config", "holdfast.toml")
    assert "(api_key mode)" in first_line("serve", "--port", "0", HOLDFAST_ROOT_API_KEY="another-key-0123456789")


def first_line(*args: str, **env: str) -> str:
    process = start(*args, **env)
    line = process.stdout.readline().decode()
    process.send_signal(signal.SIGTERM)
    process.communicate(TIMEOUT_SECONDS)
    return line
