"""Models that are away, wrong, slow or in no mood: every commit finishes, or says why it does not."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.client.sync.client import Client
from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers import (
    MESSAGES,
    READS_LITTLE,
    FatalModel,
    Watch,
    check_done_once,
    commit,
    running,
    said,
    wait_until_done,
)
from holdfast.testing.model import PATIENCE, Asked, Behaviour, FakeModel, Kind
from holdfast.text.tokens import estimate

HURRY: dict[str, Any] = {"task_backoff_seconds": 0.01, "task_backoff_max_seconds": 0.05, "worker_poll_seconds": 0.02}
KEY = "sk-the-key-to-the-model"


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with running(FatalModel()) as model:
        yield model


def connect(target: object, model: FakeModel, **settings: Any) -> Client:
    chosen = {**READS_LITTLE, **HURRY, "model_base_url": model.url, "model_api_key": KEY, **settings}
    return holdfast.connect(str(target), settings=Settings(**chosen))


def pieces_asked(model: FakeModel, session_id: str, archive: int) -> list[int]:
    """How often each piece of an archive was asked for."""
    assert isinstance(model, FatalModel)
    return sorted(model.asked_for(session_id, archive).values())


def test_while_the_model_is_down_nothing_is_missing_and_when_it_is_back_all_commits_finish(
    target: str, model: FakeModel
) -> None:
    sessions = ["one", "two", "three"]
    model.stop()
    with connect(target, model, task_attempts=1_000) as client:
        tasks = [commit(client, session_id, 2)[0] for session_id in sessions]
        with Watch(client, sessions, 2 * MESSAGES):
            wait_for(lambda: all(client.get_task(task_id).attempts > 2 for task_id in tasks))
            task = client.get_task(tasks[0])
            assert task.error
            assert "cannot be reached" in task.error
            model.start()
            wait_until_done(client, sessions, 2)
        for session_id in sessions:
            check_done_once(client, session_id, 2)
            assert {*pieces_asked(model, session_id, 1), *pieces_asked(model, session_id, 2)} == {1}


@pytest.mark.parametrize("kind", ["limited", "down", "hung up", "cut"])
def test_a_failure_that_passes_is_tried_again(target: str, model: FakeModel, kind: Kind) -> None:
    model.behaviour = Behaviour(kind=kind, times=3)
    with connect(target, model) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.error, task.attempts) == ("completed", None, 4)
        check_done_once(client, "s", 1)


def test_when_the_model_stays_down_the_task_fails_visibly_and_a_retry_finishes_all_in_order(
    target: str, model: FakeModel
) -> None:
    model.behaviour = "down"
    with connect(target, model, task_attempts=3) as client:
        first, second = commit(client, "s", 2)
        with Watch(client, ["s"], 2 * MESSAGES):
            task = client.wait_for_task(first)
            assert (task.status, task.attempts, model.calls) == ("failed", 3, 3)
            assert task.error
            assert "503" in task.error
            (failure,) = [it.failure for it in client.list_archives("s") if it.failure]
            assert (failure["error"], failure["code"], failure["task_id"]) == (task.error, "UNAVAILABLE", first)
            assert client.get_session_context("s").stats.failed_archives == 1
            assert client.get_task(second).stage == "waiting"
        client.batch_add_messages("s", said("s", 3))
        with pytest.raises(FailedPreconditionError, match=first):
            client.commit_session("s")
        model.behaviour = "normal"
        with Watch(client, ["s"], 3 * MESSAGES):
            client.retry_task(first)
            client.commit_session("s")
            wait_until_done(client, ["s"], 3)
        check_done_once(client, "s", 3)


def test_what_was_finished_before_a_failure_is_not_paid_again_after_a_retry(target: str, model: FakeModel) -> None:
    with connect(target, model, task_attempts=1, worker_threads=1) as client:
        model.gate.clear()
        (task_id,) = commit(client, "s", 1)
        model.wait_for_calls(1)
        model.behaviour = Behaviour(kind="down", times=1)  # for the second call; the first is held already
        model.gate.set()
        assert client.wait_for_task(task_id).status == "failed"
        assert client.retry_task(task_id).progress.done == 2  # the plan, and the first piece
        assert client.wait_for_task(task_id).status == "completed"
        assert pieces_asked(model, "s", 1)[-2:] == [1, 2]
        usage = client.list_archives("s")[0].token_usage
        assert usage == client.get_session("s").llm_token_usage
        assert usage.prompt_tokens == sum(
            len(asked.prompt) // 3 + 7 for place, asked in enumerate(model.requests) if place != 1
        )


@pytest.mark.parametrize("policy", ["wait", "proceed"])
def test_later_commits_wait_for_a_failed_one_or_go_on_without_it_by_policy(
    target: str, model: FakeModel, policy: str
) -> None:
    model.behaviour = Behaviour(kind="down", times=1)
    with connect(target, model, task_attempts=1, after_failed_archive=policy) as client:
        (first,) = commit(client, "s", 1, count=2)
        assert client.wait_for_task(first).status == "failed"
        client.batch_add_messages("s", said("s", 2, 2))
        second = client.commit_session("s").task_id
        assert second
        if policy == "wait":
            assert client.get_task(second).stage == "waiting"
            client.retry_task(first)
            wait_until_done(client, ["s"], 2)
            check_done_once(client, "s", 2)
            return
        assert client.wait_for_task(second).status == "completed"
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        client.retry_task(first)
        assert client.wait_for_task(first).status == "completed"
        assert client.get_session_context("s").messages == []


def test_a_wrong_key_fails_at_once_and_is_not_told(target: str, model: FakeModel) -> None:
    model.behaviour = "refusing"
    with connect(target, model) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.attempts, model.calls) == ("failed", 1, 1)
        assert task.error
        assert "check the API key" in task.error
        assert KEY not in task.error


def test_a_model_that_asks_to_be_left_alone_is_left_alone_for_as_long(tmp_path: Any, model: FakeModel) -> None:
    model.behaviour = Behaviour(kind="limited", times=1, retry_after=0.6)
    with connect(tmp_path, model) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        since = time.monotonic()
        model.wait_for_calls(2)
        assert time.monotonic() - since > 0.5
        assert client.wait_for_task(task_id).status == "completed"


@pytest.mark.parametrize(
    ("behaviour", "calls", "by", "notes"),
    [
        pytest.param(Behaviour(kind="wrong", times=1), 2, "openai/fake", 0, id="prose, then JSON"),
        pytest.param(Behaviour(kind="wrong"), 2, "local", 1, id="prose and prose again"),
        pytest.param(Behaviour(kind="broken"), 1, "openai/fake", 0, id="broken JSON"),
        pytest.param(Behaviour(kind="truncated"), 1, "openai/fake", 0, id="JSON that breaks off"),
        pytest.param(Behaviour(text="I cannot help with that."), 2, "local", 1, id="a refusal"),
        pytest.param(Behaviour(text=""), 2, "local", 1, id="nothing"),
    ],
)
def test_an_answer_is_repaired_or_asked_for_once_more_or_done_without(
    tmp_path: Any, model: FakeModel, behaviour: Behaviour, calls: int, by: str, notes: int
) -> None:
    model.behaviour = behaviour
    with connect(tmp_path, model) as client:
        (task_id,) = commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.attempts, model.calls) == ("completed", 1, calls)
        assert task.result
        assert (task.result["summarised_by"], len(task.result["notes"])) == (by, notes)
        assert task.result["token_usage"]["llm"]["total_tokens"] > 0
        assert client.get_session_archive("s", "archive_001").overview


def test_no_prompt_is_longer_than_the_model_may_be_given(tmp_path: Any, model: FakeModel) -> None:
    with connect(tmp_path, model, model_input_tokens=3_000) as client:
        client.add_message("s", "user", f"s~1~1 {'a very long story ' * 2_000}")
        (task_id,) = commit(client, "s", 1)
        assert client.wait_for_task(task_id).status == "completed"
    assert model.calls > 2
    for asked in model.requests:
        assert estimate(asked.prompt) < 3_000


class HoldingModel(FatalModel):
    """Does not answer about second archives until told to."""

    def __init__(self) -> None:
        super().__init__()
        self.second = threading.Event()

    def _take(self, asked: Asked) -> Behaviour:
        behaviour = super()._take(asked)
        if "~2~" in asked.prompt:
            self.second.wait(PATIENCE)
        return behaviour


def test_a_retried_archive_that_is_done_while_a_later_one_is_in_hand_is_told_of_in_its_overview(target: str) -> None:
    model = HoldingModel()
    with running(model), connect(target, model, worker_threads=2) as client:
        model.gate.clear()
        client.add_message("s", "user", "s~1~1 You must never touch the production database.")
        first = client.commit_session("s").task_id or ""
        model.wait_for_calls(1)
        client.cancel_task(first)
        client.batch_add_messages("s", said("s", 2, 2))
        second = client.commit_session("s").task_id or ""
        model.wait_for_calls(2)
        client.retry_task(first)
        model.gate.set()
        assert client.wait_for_task(first).status == "completed"
        model.second.set()
        assert client.wait_for_task(second).status == "completed"
        assert "never touch the production database" in client.get_session_context("s").latest_archive_overview
