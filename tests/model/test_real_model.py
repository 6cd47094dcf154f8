"""Holdfast with a real language model. The model is small, so the quality of its answers is not tested."""

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
from holdfast.providers.limits import RateLimitedModel
from holdfast.summary.prompting.prompts import (
    LIST_FIELDS,
    build_prompt,
    parse_reply,
    split_into_chunks,
    tokens_for_messages,
)
from holdfast.summary.sections import ABSTRACT_FIELDS
from holdfast.text.tokens import estimate

TURNS: list[tuple[Role, str]] = [
    ("user", "Please deploy the shop to staging. Never deploy it to production without asking me."),
    ("assistant", "I deployed build 4711 of the shop to staging-2.example.com."),
    ("user", "Thank you. Tomorrow we also need the invoices."),
]
MAX_ANSWER_TOKENS = 220


@pytest.fixture(scope="module")
def model(model_url: str) -> Iterator[RateLimitedModel]:
    settings = Settings(
        model_provider="openai", model_name="smollm2", model_base_url=model_url, model_timeout_seconds=150
    )
    opened = open_model(settings, estimate)
    assert opened
    yield opened
    opened.close()


def conversation() -> list[Message]:
    now = datetime(2026, 3, 24, tzinfo=UTC)
    return [
        Message(id=f"msg_{seq}", role=role, parts=[TextPart(text)], created_at=now, seq=seq, tokens=20)
        for seq, (role, text) in enumerate(TURNS, 1)
    ]


def test_a_real_model_summarises_a_conversation(model: RateLimitedModel) -> None:
    messages = conversation()
    (chunk,) = split_into_chunks(messages, tokens_for_messages(2000))
    reply = model.complete(build_prompt(chunk, max_tokens=MAX_ANSWER_TOKENS))
    summary = parse_reply(reply.text, chunk)
    assert summary, reply.text
    assert any(getattr(summary, name) for name in ABSTRACT_FIELDS)
    ids = {message.seq for message in messages}
    for name in LIST_FIELDS:
        assert all(line.text and ids.issuperset(line.sources) for line in getattr(summary, name))
    usage = reply.usage
    assert usage.prompt_tokens > 300
    assert 0 < usage.completion_tokens <= MAX_ANSWER_TOKENS
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert reply.complete == (usage.completion_tokens < MAX_ANSWER_TOKENS)
    assert 0.2 < model.token_ratio < 1.5


def test_a_real_model_answers_according_to_a_schema(model: RateLimitedModel) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "green"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    prompt = build_prompt(conversation()[:1], max_tokens=40)
    reply = model.complete(msgspec.structs.replace(prompt, system="Answer.", schema=schema, schema_name="thing"))
    assert reply.complete
    answer = msgspec.json.decode(reply.text)
    assert answer.keys() == {"colour", "count"}
    assert answer["colour"] in {"red", "green"}


def test_a_prompt_that_is_too_long_raises_an_error(model: RateLimitedModel) -> None:
    prompt = msgspec.structs.replace(build_prompt(conversation(), max_tokens=20), user="boat " * 6000, schema=None)
    with pytest.raises(FailedPreconditionError, match="lower model_input_tokens"):
        model.complete(prompt)


def test_a_commit_is_summarised_by_a_real_model(model_url: str, tmp_path: Path) -> None:
    settings = Settings(
        model_provider="openai",
        model_name="smollm2",
        model_base_url=model_url,
        model_timeout_seconds=150,
        model_input_tokens=2000,
        model_output_tokens=MAX_ANSWER_TOKENS,
    )
    with holdfast.connect(tmp_path, settings=settings) as client:
        session = client.session("real")
        for role, text in TURNS:
            session.add_message(role, text)
        committed = session.commit()
        assert len(session.context().messages) == len(TURNS)
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
