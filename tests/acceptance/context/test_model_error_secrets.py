"""Errors of a model that repeat the prompt: no log, task, archive or file may contain the conversation or the key."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.config import Settings
from holdfast.model.summaries import Prompt, Reply
from holdfast.providers import configured
from holdfast.providers.limits import RateLimitedModel, RateLimiter
from holdfast.testing.model import Behaviour, FakeModel, running_model
from holdfast.testing.server import running_server

KEY = "sk-very-secret-0123456789"
SECRET_MESSAGE = "The kumquat is buried in Zanzibar."
SECRETS = ("kumquat", "Zanzibar", KEY)
TIMEOUT_SECONDS = 60
FAILURES = [
    *(Behaviour(kind="echo_error", status=status) for status in (400, 401, 500)),
    Behaviour(kind="echo_html"),
]


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with running_model() as model:
        yield model


def settings_for(model: FakeModel) -> dict[str, Any]:
    return {
        "model_provider": "openai",
        "model_name": "fake",
        "model_base_url": model.url,
        "model_api_key": KEY,
        "task_attempts": 1,
    }


def commit_and_fail(client: holdfast.Client) -> str:
    """Return everything that can be read about a failed commit, except the conversation itself."""
    client.add_message("s", "user", SECRET_MESSAGE)
    task = client.wait_for_task(str(client.commit_session("s").task_id), TIMEOUT_SECONDS)
    assert task.status == "failed"
    assert task.error
    assert "answered" in task.error
    failed = client.read("viking://session/s/history/archive_001/.failed.json")
    (archive,) = client.list_archives("s")
    readable = [repr(task), repr(archive), failed, repr(client.list_tasks()), repr(client.get_session("s"))]
    return "\n".join(readable)


def find_secrets(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("behaviour", FAILURES, ids=lambda behaviour: f"{behaviour.kind} {behaviour.status}")
def test_a_prompt_that_a_model_repeats_is_in_no_task_archive_or_log(
    target: str, model: FakeModel, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model.behaviour = behaviour
    with holdfast.connect(target, settings=Settings(**settings_for(model))) as client:
        readable = commit_and_fail(client)
        changes = [event.change for event in client.read_events("s").events if event.change is not None]
    assert SECRET_MESSAGE in model.requests[0].prompt
    assert find_secrets(f"{readable}\n{changes}\n{caplog.text}") == []
    assert "commit_failed" in {change.kind for change in changes}
    assert "task " in caplog.text


@pytest.mark.parametrize("behaviour", FAILURES, ids=lambda behaviour: f"{behaviour.kind} {behaviour.status}")
def test_a_server_does_not_log_a_prompt_that_a_model_repeats(
    target: str, model: FakeModel, behaviour: Behaviour
) -> None:
    model.behaviour = behaviour
    with running_server(target, log_level="debug", **settings_for(model)) as server:
        with holdfast.connect(server.url) as client:
            assert find_secrets(commit_and_fail(client)) == []
        server.stop()
        assert find_secrets(server.log()) == []
        assert "answered" in server.log()


def test_a_worker_does_not_log_a_prompt_that_a_model_repeats(target: str, model: FakeModel) -> None:
    model.behaviour = Behaviour(kind="echo_error", status=400)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        client.add_message("s", "user", SECRET_MESSAGE)
        task_id = str(client.commit_session("s").task_id)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        worker = subprocess.run(
            [sys.executable, "-m", "holdfast", "worker", "--path", target, "--drain"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
            env=environment | {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings_for(model).items()},
        )
        assert client.get_task(task_id).status == "failed"
    assert "answered 400" in worker.stderr
    assert find_secrets(worker.stdout + worker.stderr) == []


def test_a_text_that_an_embedder_repeats_is_not_in_the_notes(target: str, model: FakeModel) -> None:
    settings = Settings(
        embedder="openai", embedding_model="e", embedding_base_url=model.url, embedding_api_key=KEY, worker_threads=1
    )
    with holdfast.connect(target, settings=settings) as client:
        for behaviour in (Behaviour(), Behaviour(kind="echo_error", status=503)):  # it works, then it fails
            model.behaviour = behaviour
            client.batch_add_messages(
                "s", [{"role": "user", "content": f"{SECRET_MESSAGE} Number {n}."} for n in range(20)]
            )
            task = client.wait_for_task(str(client.commit_session("s").task_id), TIMEOUT_SECONDS)
    assert "kumquat" in model.requests[-1].quotable_text
    assert task.result
    (note,) = task.result["notes"]
    assert "no vectors were used" in note
    assert "answered 503" in note
    assert find_secrets(note) == []


class RepeatingModel:
    """A third-party model that raises an unexpected error with the prompt as its message."""

    name = "repeating"

    def complete(self, prompt: Prompt) -> Reply:
        raise ValueError(prompt.user)

    def close(self) -> None:
        pass


def test_an_unexpected_error_is_reported_by_its_type_and_location(
    target: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        configured,
        "open_model",
        lambda _settings, estimate: RateLimitedModel(RepeatingModel(), RateLimiter(), estimate),
    )
    with holdfast.connect(target, settings=Settings(task_attempts=1)) as client:
        client.add_message("s", "user", SECRET_MESSAGE)
        task = client.wait_for_task(str(client.commit_session("s").task_id), TIMEOUT_SECONDS)
    assert task.error
    assert re.fullmatch(r"ValueError in holdfast\.providers\.limits, line \d+", task.error)
    assert task.error in caplog.text
    assert find_secrets(caplog.text) == []
