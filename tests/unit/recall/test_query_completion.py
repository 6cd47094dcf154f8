"""A search asks the model to complete its query. A model that is down, slow or wrong costs a note, never the search."""

import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from holdfast import Settings
from holdfast.composition import open_database
from holdfast.engine import Engine
from holdfast.engine.recall.requests import model_answers
from holdfast.model.identity import Principal
from holdfast.model.search import QueryPlan
from holdfast.ops.search import Search
from holdfast.ops.sessions import AddMessage
from holdfast.store.tables import archives
from holdfast.testing.model import FakeModel, running_model

ALICE = Principal("acme", "alice", "root")
QUERY = "And on Friday?"
COMPLETED = "When does the pharmacy in Aegina close on Friday?"


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with running_model() as running:
        yield running


def open_engine(model_url: str, **settings: Any) -> Engine:
    configured = Settings(
        worker_threads=0,
        **{"model_provider": "openai", "model_name": "m", "model_base_url": model_url, **settings},
    )
    engine = Engine(open_database(":memory:", configured), configured)
    turns = [("user", "When does the pharmacy in Aegina close on Thursday?"), ("assistant", "At 20:30.")]
    for role, text in turns:
        engine.call(ALICE, AddMessage(session_id="chat", role=role, content=text))  # type: ignore[arg-type]
    return engine


@pytest.fixture
def engine(model: FakeModel) -> Iterator[Engine]:
    opened = open_engine(model.url)
    yield opened
    opened.close()


def behave(model: FakeModel, **changes: Any) -> None:
    model.behaviour = msgspec.structs.replace(model.behaviour, **changes)


def plan_of(engine: Engine, query: str = QUERY) -> QueryPlan:
    result = engine.call(ALICE, Search(query=query, session_id="chat"))
    assert result.messages
    return result.query_plan


def is_completed_by_rule(plan: QueryPlan) -> bool:
    return {"pharmacy", "Aegina"} <= set(plan.added) and plan.searched.startswith(QUERY)


def test_the_model_completes_a_query_that_does_not_stand_alone(engine: Engine, model: FakeModel) -> None:
    behave(model, text=COMPLETED)
    plan = plan_of(engine)
    assert (plan.query, plan.searched, plan.notes) == (QUERY, COMPLETED, [])
    assert plan.added == ["When", "does", "the", "pharmacy", "in", "Aegina", "close"]
    (request,) = model.requests
    assert "user: When does the pharmacy in Aegina close on Thursday?" in request.prompt
    assert request.prompt.endswith(f"Query: {QUERY}")


def test_the_model_reads_the_overview_of_the_latest_archive_and_the_rules_its_abstract(
    engine: Engine, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Mock(overview="## Facts\n- The owner is called Xenia.", rolling_abstract="an island, Poros")
    monkeypatch.setattr(archives, "latest_done", lambda *_: archive)
    behave(model, text="")
    plan = plan_of(engine)
    (request,) = model.requests
    assert "## Facts - The owner is called Xenia." in request.prompt
    assert is_completed_by_rule(plan)
    assert "Poros" in plan.added
    assert "Facts" not in plan.added


def test_the_model_is_not_asked_if_the_query_stands_alone_or_without_time(engine: Engine, model: FakeModel) -> None:
    assert plan_of(engine, COMPLETED).added == []
    assert model.calls == 0
    without_time = open_engine(model.url, query_model_seconds=0)
    assert is_completed_by_rule(plan_of(without_time))
    assert model.calls == 0
    without_time.close()


@pytest.mark.parametrize(
    "answer", ["", "I am sorry, I cannot do that.", "Here you are:\nthe pharmacy", "pharmacy " * 200, "```"]
)
def test_an_answer_that_is_no_query_costs_a_note(engine: Engine, model: FakeModel, answer: str) -> None:
    behave(model, text=answer)
    plan = plan_of(engine)
    assert is_completed_by_rule(plan)
    (note,) = plan.notes
    assert note.startswith("the query was completed by rules: ")


@pytest.mark.parametrize(
    "kind",
    [
        "rate_limited",
        "unavailable",
        "unauthorized",
        "truncated",
        "partial_response",
        "disconnect",
        "no_answer",
        "echo_error",
        "echo_html",
    ],
)
def test_a_model_that_fails_costs_a_note(engine: Engine, model: FakeModel, kind: str) -> None:
    behave(model, kind=kind)
    plan = plan_of(engine)
    assert is_completed_by_rule(plan)
    assert plan.notes[0].startswith("the query was completed by rules: ")
    assert "Aegina" not in plan.notes[0]


def test_a_model_that_cannot_be_reached_costs_a_note() -> None:
    engine = open_engine("http://127.0.0.1:9/v1")
    plan = plan_of(engine)
    assert is_completed_by_rule(plan)
    assert "cannot be reached" in plan.notes[0]
    engine.close()


def test_a_wrong_setting_of_the_model_costs_a_note() -> None:
    engine = open_engine("http://127.0.0.1:9/v1", model_name=None)
    plan = plan_of(engine)
    assert is_completed_by_rule(plan)
    assert "needs a model" in plan.notes[0]
    engine.close()


def test_a_slow_model_is_not_waited_for_and_gathers_no_threads(model: FakeModel) -> None:
    engine = open_engine(model.url, query_model_seconds=0.1)
    behave(model, seconds=3)
    started = time.monotonic()
    notes = [plan_of(engine).notes[0] for _ in range(model_answers.MAX_RUNNING + 2)]
    assert time.monotonic() - started < 3
    assert "the model did not answer within 0.1 s" in notes[0]
    assert "the model is busy with other searches" in notes[-1]
    engine.close()
