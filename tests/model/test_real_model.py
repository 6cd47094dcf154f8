"""The contract with language models, kept by a real one. What it says is not the point: it is small."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.model.messages import Message, Role
from holdfast.model.parts import TextPart
from holdfast.providers.configured import open_model
from holdfast.providers.limits import LimitedModel
from holdfast.summary.prompting.prompts import LISTS, PHRASES, ask, chunks, read, room
from holdfast.text.tokens import estimate

SAID: list[tuple[Role, str]] = [
    ("user", "Please deploy the shop to staging. Never deploy it to production without asking me."),
    ("assistant", "I deployed build 4711 of the shop to staging-2.example.com."),
    ("user", "Thank you. Tomorrow we also need the invoices."),
]
ANSWER = 220


@pytest.fixture(scope="module")
def model(model_url: str) -> Iterator[LimitedModel]:
    settings = Settings(
        model_provider="openai", model_name="smollm2", model_base_url=model_url, model_timeout_seconds=150
    )
    opened = open_model(settings, estimate)
    assert opened
    yield opened
    opened.close()


def talk() -> list[Message]:
    now = datetime(2026, 3, 24, tzinfo=UTC)
    return [
        Message(id=f"msg_{seq}", role=role, parts=[TextPart(text)], created_at=now, seq=seq, tokens=20)
        for seq, (role, text) in enumerate(SAID, 1)
    ]


def test_a_real_model_summarises_a_conversation(model: LimitedModel) -> None:
    messages = talk()
    (whole,) = chunks(messages, room(2000))
    reply = model.complete(ask(whole, max_tokens=ANSWER))
    summary = read(reply.text, whole)
    assert summary, reply.text
    assert any(getattr(summary, name) for name in PHRASES)
    ids = {message.seq for message in messages}
    for name in LISTS:
        assert all(line.text and ids.issuperset(line.sources) for line in getattr(summary, name))
    usage = reply.usage
    assert usage.prompt_tokens > 300
    assert 0 < usage.completion_tokens <= ANSWER
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert reply.complete == (usage.completion_tokens < ANSWER)
    assert 0.2 < model.correction < 1.5


def test_a_real_model_is_held_to_a_schema(model: LimitedModel) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "green"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    prompt = ask(talk()[:1], max_tokens=40)
    reply = model.complete(msgspec.structs.replace(prompt, system="Answer.", schema=schema, schema_name="thing"))
    assert reply.complete
    answer = msgspec.json.decode(reply.text)
    assert answer.keys() == {"colour", "count"}
    assert answer["colour"] in {"red", "green"}


def test_a_prompt_that_is_too_long_for_it_says_so(model: LimitedModel) -> None:
    prompt = msgspec.structs.replace(ask(talk(), max_tokens=20), user="boat " * 6000, schema=None)
    with pytest.raises(FailedPreconditionError, match="lower model_input_tokens"):
        model.complete(prompt)


def test_a_whole_commit_is_done_with_a_real_model(model_url: str, tmp_path: Path) -> None:
    settings = Settings(
        model_provider="openai",
        model_name="smollm2",
        model_base_url=model_url,
        model_timeout_seconds=150,
        model_input_tokens=2000,
        model_output_tokens=ANSWER,
    )
    with holdfast.connect(tmp_path, settings=settings) as client:
        session = client.session("real")
        for role, text in SAID:
            session.add_message(role, text)
        committed = session.commit()
        assert len(session.context().messages) == len(SAID)
        task = client.wait_for_task(str(committed.task_id), 170)
        assert task.status == "completed", task.error
        assert task.result
        (archive,) = session.archives
        assert archive.state == "done"
        assert session.archive(archive.archive_id).overview.startswith("# Session Summary")
        context = session.context()
        assert context.messages == []
        assert "Never deploy it to production without asking me" in context.latest_archive_overview
        usage = client.get_session("real").llm_token_usage
        assert usage.prompt_tokens > 0
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert task.result["token_usage"]["llm"]["total_tokens"] == usage.total_tokens
