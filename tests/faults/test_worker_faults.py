"""Models that are down, wrong, slow or rate limited: every commit finishes or reports why not."""

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
from holdfast.testing.faults.workers.processes import (
    MESSAGES,
    SMALL_MODEL,
    ContextWatcher,
    KillingModel,
    add_and_commit,
    check_archived_once,
    labelled_messages,
    stopping,
    wait_for_archives,
)
from holdfast.testing.model import TIMEOUT_SECONDS, Behaviour, FakeModel, Kind, ReceivedRequest
from holdfast.text.tokens import estimate

FAST_RETRIES: dict[str, Any] = {
    "task_backoff_seconds": 0.01,
    "task_backoff_max_seconds": 0.05,
    "worker_poll_seconds": 0.02,
}
MODEL_KEY = "sk-the-key-to-the-model"


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with stopping(KillingModel()) as model:
        yield model


def connect(target: object, model: FakeModel, **settings: Any) -> Client:
    all_settings = {**SMALL_MODEL, **FAST_RETRIES, "model_base_url": model.url, "model_api_key": MODEL_KEY, **settings}
    return holdfast.connect(str(target), settings=Settings(**all_settings))


def request_counts(model: FakeModel, session_id: str, archive: int) -> list[int]:
    """Return the number of model requests for each piece of an archive, sorted."""
    assert isinstance(model, KillingModel)
    return sorted(model.count_requests(session_id, archive).values())


def test_while_the_model_is_down_contexts_are_complete_and_later_all_commits_finish(
    target: str, model: FakeModel
) -> None:
    sessions = ["one", "two", "three"]
    model.stop()
    with connect(target, model, task_attempts=1_000) as client:
        tasks = [add_and_commit(client, session_id, 2)[0] for session_id in sessions]
        with ContextWatcher(client, sessions, 2 * MESSAGES):
            wait_for(lambda: all(client.get_task(task_id).attempts > 2 for task_id in tasks))
            task = client.get_task(tasks[0])
            assert task.error
            assert "cannot be reached" in task.error
            model.start()
            wait_for_archives(client, sessions, 2)
        for session_id in sessions:
            check_archived_once(client, session_id, 2)
            assert {*request_counts(model, session_id, 1), *request_counts(model, session_id, 2)} == {1}


@pytest.mark.parametrize("kind", ["rate_limited", "unavailable", "disconnect", "partial_response"])
def test_a_temporary_model_error_is_retried(target: str, model: FakeModel, kind: Kind) -> None:
    model.behaviour = Behaviour(kind=kind, times=3)
    with connect(target, model) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.error, task.attempts) == ("completed", None, 4)
        check_archived_once(client, "s", 1)


def test_when_the_model_stays_down_the_task_fails_and_a_retry_finishes_all_in_order(
    target: str, model: FakeModel
) -> None:
    model.behaviour = "unavailable"
    with connect(target, model, task_attempts=3) as client:
        first, second = add_and_commit(client, "s", 2)
        with ContextWatcher(client, ["s"], 2 * MESSAGES):
            task = client.wait_for_task(first)
            assert (task.status, task.attempts, model.calls) == ("failed", 3, 3)
            assert task.error
            assert "503" in task.error
            (failure,) = [archive.failure for archive in client.list_archives("s") if archive.failure]
            assert (failure["error"], failure["code"], failure["task_id"]) == (task.error, "UNAVAILABLE", first)
            assert client.get_session_context("s").stats.failed_archives == 1
            assert client.get_task(second).stage == "waiting"
        client.batch_add_messages("s", labelled_messages("s", 3))
        with pytest.raises(FailedPreconditionError, match=first):
            client.commit_session("s")
        model.behaviour = "normal"
        with ContextWatcher(client, ["s"], 3 * MESSAGES):
            client.retry_task(first)
            client.commit_session("s")
            wait_for_archives(client, ["s"], 3)
        check_archived_once(client, "s", 3)


def test_a_retry_does_not_repeat_steps_that_finished_before_the_failure(target: str, model: FakeModel) -> None:
    with connect(target, model, task_attempts=1, worker_threads=1) as client:
        model.gate.clear()
        (task_id,) = add_and_commit(client, "s", 1)
        model.wait_for_calls(1)
        model.behaviour = Behaviour(kind="unavailable", times=1)  # for the second call; the first is already waiting
        model.gate.set()
        assert client.wait_for_task(task_id).status == "failed"
        assert client.retry_task(task_id).progress.done == 2  # the plan and the first piece
        assert client.wait_for_task(task_id).status == "completed"
        assert request_counts(model, "s", 1)[-2:] == [1, 2]
        usage = client.list_archives("s")[0].token_usage
        assert usage == client.get_session("s").llm_token_usage
        assert usage.prompt_tokens == sum(
            len(asked.prompt) // 3 + 7 for place, asked in enumerate(model.requests) if place != 1
        )


@pytest.mark.parametrize("policy", ["wait", "proceed"])
def test_later_commits_wait_for_a_failed_one_or_proceed_by_policy(target: str, model: FakeModel, policy: str) -> None:
    model.behaviour = Behaviour(kind="unavailable", times=1)
    with connect(target, model, task_attempts=1, after_failed_archive=policy) as client:
        (first,) = add_and_commit(client, "s", 1, count=2)
        assert client.wait_for_task(first).status == "failed"
        client.batch_add_messages("s", labelled_messages("s", 2, 2))
        second = client.commit_session("s").task_id
        assert second
        if policy == "wait":
            assert client.get_task(second).stage == "waiting"
            client.retry_task(first)
            wait_for_archives(client, ["s"], 2)
            check_archived_once(client, "s", 2)
            return
        assert client.wait_for_task(second).status == "completed"
        assert [message.seq for message in client.get_session_context("s").messages] == [1, 2]
        client.retry_task(first)
        assert client.wait_for_task(first).status == "completed"
        assert client.get_session_context("s").messages == []


def test_a_wrong_model_key_fails_at_once_and_is_not_in_the_error(target: str, model: FakeModel) -> None:
    model.behaviour = "unauthorized"
    with connect(target, model) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.attempts, model.calls) == ("failed", 1, 1)
        assert task.error
        assert "check the API key" in task.error
        assert MODEL_KEY not in task.error


def test_retry_after_of_the_model_is_respected(tmp_path: Any, model: FakeModel) -> None:
    model.behaviour = Behaviour(kind="rate_limited", times=1, retry_after=0.6)
    with connect(tmp_path, model) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        model.wait_for_calls(1)
        started = time.monotonic()
        model.wait_for_calls(2)
        assert time.monotonic() - started > 0.5
        assert client.wait_for_task(task_id).status == "completed"


@pytest.mark.parametrize(
    ("behaviour", "calls", "summarised_by", "notes"),
    [
        pytest.param(Behaviour(kind="prose", times=1), 2, "openai/fake", 0, id="prose, then JSON"),
        pytest.param(Behaviour(kind="prose"), 2, "local", 1, id="prose and prose again"),
        pytest.param(Behaviour(kind="invalid_json"), 1, "openai/fake", 0, id="broken JSON"),
        pytest.param(Behaviour(kind="truncated"), 1, "openai/fake", 0, id="truncated JSON"),
        pytest.param(Behaviour(text="I cannot help with that."), 2, "local", 1, id="a refusal"),
        pytest.param(Behaviour(text=""), 2, "local", 1, id="no text"),
    ],
)
def test_a_bad_model_response_is_repaired_or_requested_once_more_or_replaced_by_a_local_summary(
    tmp_path: Any, model: FakeModel, behaviour: Behaviour, calls: int, summarised_by: str, notes: int
) -> None:
    model.behaviour = behaviour
    with connect(tmp_path, model) as client:
        (task_id,) = add_and_commit(client, "s", 1, count=2)
        task = client.wait_for_task(task_id)
        assert (task.status, task.attempts, model.calls) == ("completed", 1, calls)
        assert task.result
        assert (task.result["summarised_by"], len(task.result["notes"])) == (summarised_by, notes)
        assert task.result["token_usage"]["llm"]["total_tokens"] > 0
        assert client.get_session_archive("s", "archive_001").overview


def test_no_prompt_exceeds_the_input_limit_of_the_model(tmp_path: Any, model: FakeModel) -> None:
    with connect(tmp_path, model, model_input_tokens=3_000) as client:
        client.add_message("s", "user", f"s~1~1 {'a very long story ' * 2_000}")
        (task_id,) = add_and_commit(client, "s", 1)
        assert client.wait_for_task(task_id).status == "completed"
    assert model.calls > 2
    for asked in model.requests:
        assert estimate(asked.prompt) < 3_000


class HoldingModel(KillingModel):
    """Does not respond for second archives until `second` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.second = threading.Event()

    def _record(self, asked: ReceivedRequest) -> Behaviour:
        behaviour = super()._record(asked)
        if "~2~" in asked.prompt:
            self.second.wait(TIMEOUT_SECONDS)
        return behaviour


def test_an_overview_includes_an_earlier_archive_that_was_retried_while_it_was_being_written(target: str) -> None:
    model = HoldingModel()
    with stopping(model), connect(target, model, worker_threads=2) as client:
        model.gate.clear()
        client.add_message("s", "user", "s~1~1 You must never touch the production database.")
        first = client.commit_session("s").task_id or ""
        model.wait_for_calls(1)
        client.cancel_task(first)
        client.batch_add_messages("s", labelled_messages("s", 2, 2))
        second = client.commit_session("s").task_id or ""
        model.wait_for_calls(2)
        client.retry_task(first)
        model.gate.set()
        assert client.wait_for_task(first).status == "completed"
        model.second.set()
        assert client.wait_for_task(second).status == "completed"
        assert "never touch the production database" in client.get_session_context("s").latest_archive_overview


def test_regenerated_summaries_are_paid_for_once_and_counted_in_their_archives(target: str, model: FakeModel) -> None:
    with connect(target, model, task_attempts=1, worker_threads=1) as client:
        for task_id in add_and_commit(client, "s", 2, count=2):
            assert client.wait_for_task(task_id).status == "completed"
        before = [archive.token_usage for archive in client.list_archives("s")]
        overviews = [client.get_session_archive("s", f"archive_00{number}").overview for number in (1, 2)]
        model.clear_requests()
        model.gate.clear()
        (started,) = client.resummarise("s")
        model.wait_for_calls(1)
        model.behaviour = Behaviour(kind="unavailable", times=1)  # for the second call; the first is already waiting
        model.gate.set()
        assert started.task_id is not None
        assert client.wait_for_task(started.task_id).status == "failed"
        assert [client.get_session_archive("s", f"archive_00{number}").overview for number in (1, 2)] == overviews
        client.retry_task(started.task_id)
        task = client.wait_for_task(started.task_id)
        assert task.status == "completed"
        assert task.result is not None
        assert (task.result["archives"], task.result["summarised_by"]) == (2, ["openai/fake"])
        assert model.calls == 3  # one failed
        after = [archive.token_usage for archive in client.list_archives("s")]
        spent = [new.prompt_tokens - old.prompt_tokens for new, old in zip(after, before, strict=True)]
        assert all(spent)
        assert task.token_usage.llm.prompt_tokens == sum(spent)
        assert task.progress.done == task.progress.total
