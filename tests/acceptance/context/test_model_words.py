"""A model that repeats what it was told in its errors: nobody reads it in a log, a task, an archive or a file."""

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
from holdfast.providers.limits import LimitedModel, Limiter
from holdfast.testing.model import Behaviour, FakeModel, running_model
from holdfast.testing.server import running_server

KEY = "sk-very-secret-0123456789"
WORDS = "The kumquat is buried in Zanzibar."
SECRETS = ("kumquat", "Zanzibar", KEY)
PATIENCE = 60
FAILURES = [
    *(Behaviour(kind="repeating", status=status) for status in (400, 401, 500)),
    Behaviour(kind="web page"),
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
    """Everything that can be read of a commit that failed, but the conversation itself."""
    client.add_message("s", "user", WORDS)
    task = client.wait_for_task(str(client.commit_session("s").task_id), PATIENCE)
    assert task.status == "failed"
    assert task.error
    assert "answered" in task.error
    failed = client.read("viking://session/s/history/archive_001/.failed.json")
    (archive,) = client.list_archives("s")
    seen = [repr(task), repr(archive), failed, repr(client.list_tasks()), repr(client.get_session("s"))]
    return "\n".join(seen)


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("behaviour", FAILURES, ids=lambda one: f"{one.kind} {one.status}")
def test_no_word_that_a_model_repeats_is_read_in_a_task_an_archive_or_a_log(
    target: str, model: FakeModel, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model.behaviour = behaviour
    with holdfast.connect(target, settings=Settings(**settings_for(model))) as client:
        told = commit_and_fail(client)
        changes = [event.change for event in client.read_events("s").events if event.change is not None]
    assert WORDS in model.requests[0].prompt
    assert secrets_in(f"{told}\n{changes}\n{caplog.text}") == []
    assert "commit_failed" in {change.kind for change in changes}
    assert "task " in caplog.text


@pytest.mark.parametrize("behaviour", FAILURES, ids=lambda one: f"{one.kind} {one.status}")
def test_a_server_logs_no_word_that_a_model_repeats(target: str, model: FakeModel, behaviour: Behaviour) -> None:
    model.behaviour = behaviour
    with running_server(target, log_level="debug", **settings_for(model)) as server:
        with holdfast.connect(server.url) as client:
            assert secrets_in(commit_and_fail(client)) == []
        server.stop()
        assert secrets_in(server.log()) == []
        assert "answered" in server.log()


def test_a_worker_logs_no_word_that_a_model_repeats(target: str, model: FakeModel) -> None:
    model.behaviour = Behaviour(kind="repeating", status=400)
    with holdfast.connect(target, settings=Settings(worker_threads=0)) as client:
        client.add_message("s", "user", WORDS)
        task_id = str(client.commit_session("s").task_id)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "worker", "--path", target, "--drain"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
            env=ours | {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings_for(model).items()},
        )
        assert client.get_task(task_id).status == "failed"
    assert "answered 400" in done.stderr
    assert secrets_in(done.stdout + done.stderr) == []


def test_no_word_that_an_embedder_repeats_is_in_the_notes(target: str, model: FakeModel) -> None:
    settings = Settings(
        embedder="openai", embedding_model="e", embedding_base_url=model.url, embedding_api_key=KEY, worker_threads=1
    )
    with holdfast.connect(target, settings=settings) as client:
        for behaviour in (Behaviour(), Behaviour(kind="repeating", status=503)):  # it answers, then it does not
            model.behaviour = behaviour
            client.batch_add_messages("s", [{"role": "user", "content": f"{WORDS} Number {n}."} for n in range(20)])
            task = client.wait_for_task(str(client.commit_session("s").task_id), PATIENCE)
    assert "kumquat" in model.requests[-1].words
    assert task.result
    (note,) = task.result["notes"]
    assert "no vectors were used" in note
    assert "answered 503" in note
    assert secrets_in(note) == []


class Gossip:
    """A model of somebody else's making, whose errors nobody foresaw."""

    name = "gossip"

    def complete(self, prompt: Prompt) -> Reply:
        raise ValueError(prompt.user)

    def close(self) -> None:
        pass


def test_an_error_that_nobody_foresaw_is_told_by_its_kind_and_its_place(
    target: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        configured, "open_model", lambda _settings, estimate: LimitedModel(Gossip(), Limiter(), estimate)
    )
    with holdfast.connect(target, settings=Settings(task_attempts=1)) as client:
        client.add_message("s", "user", WORDS)
        task = client.wait_for_task(str(client.commit_session("s").task_id), PATIENCE)
    assert task.error
    assert re.fullmatch(r"ValueError in holdfast\.providers\.limits, line \d+", task.error)
    assert task.error in caplog.text
    assert secrets_in(caplog.text) == []
