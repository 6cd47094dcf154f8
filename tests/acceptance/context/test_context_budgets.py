"""Contexts never exceed their token budget, counted exactly, unless the messages alone do: all of them are included."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from conversations import CONVERSATIONS, recorded
from holdfast.model import parts
from holdfast.model.archives import SessionContext
from holdfast.text import tokens

BUDGETS = (500, 700, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 20_000, 50_000)
count_exactly = tokens.counter("o200k_base")


def count_message_tokens(context: SessionContext) -> int:
    messages = [*context.messages, *([] if context.system_message is None else [context.system_message])]
    return sum(count_exactly(text) for message in messages for text in tokens.countable_texts(message.parts))


def check_budgets(session: holdfast.Session) -> Iterator[SessionContext]:
    """Return the context for each budget, after checking its size."""
    minimum = count_message_tokens(session.context(0))
    largest = session.context(1_000_000).receipt
    boundaries = [
        largest.spent + largest.reserved,
        *(line.tokens + line.reserved + minimum for line in largest.included),
    ]
    for budget in sorted([*BUDGETS, *boundaries]):
        context = session.context(budget)
        total = count_message_tokens(context) + count_exactly(context.latest_archive_overview)
        assert total <= max(budget, minimum), f"{total} tokens with a budget of {budget}"
        yield context


def split(messages: list[dict[str, Any]], count: int) -> Iterator[list[dict[str, Any]]]:
    size = -(-len(messages) // count)
    for start in range(0, len(messages), size):
        yield messages[start : start + size]


def commit_all_but_last(client: holdfast.Client, messages: list[dict[str, Any]], count: int) -> holdfast.Session:
    """Add messages in `count` pieces and commit all but the last. Return the session."""
    session = client.session()
    for number, piece in enumerate(split(messages, count), 1):
        session.add_messages(piece)
        if number < count:
            assert client.wait_for_task(str(session.commit().task_id)).status == "completed"
    return session


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name.replace(" ", "-"))
def test_contexts_of_conversations_stay_within_every_budget(conversation: Any, tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        for count in (2, 4):
            session = commit_all_but_last(client, conversation.messages, count)
            assert any(context.latest_archive_overview for context in check_budgets(session))


def test_contexts_with_large_outputs_stay_within_every_budget(tmp_path: Path) -> None:
    data = [{"user_id": f"mia_li_{n}", "total": n * 17.5, "status": "delivered"} for n in range(60)]
    texts = {
        "json": json.dumps(data),
        "log": "\n".join(f"10:{n % 60:02}:07 INFO [worker-{n}] path=/users/{n * 7919} status=200" for n in range(99)),
        "hex": "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(400)),
        "zh": "数据库连接失败，错误码 502；请检查部署脚本，端口是 8443。" * 90,
        "code": Path(parts.__file__).read_text(),
        "table": "\n".join(f"{'region':<12}{n:>9}   {n * 7 % 13:>4}  open" for n in range(90)),
    }
    settings = holdfast.Settings(tool_output_threshold=1_500, tool_output_preview=300)
    with holdfast.connect(tmp_path, settings=settings) as client:
        for name, text in texts.items():
            session = client.session(name)
            for number in range(3):
                session.add_message("user", f"Please read report {number} and never delete anything.")
                session.add_message("tool", [holdfast.ToolPart(tool_name="read", output=f"{number} {text}")])
            assert client.wait_for_task(str(session.commit(keep_recent_count=4).task_id)).status == "completed"
            are_previews = [
                [
                    part.is_preview
                    for message in context.messages
                    for part in message.parts
                    if isinstance(part, holdfast.ToolPart)
                ]
                for context in check_budgets(session)
            ]
            assert are_previews[0] == [True, True]
            assert are_previews[-1] == [False, False]


@pytest.mark.skipif(recorded.find_data_file() is None, reason=f"{recorded.FILE} is not in HOLDFAST_DATA")
def test_contexts_of_real_agent_traffic_stay_within_every_budget(tmp_path: Path) -> None:
    file = recorded.find_data_file()
    assert file
    with holdfast.connect(tmp_path) as client:
        for trajectory in recorded.load_trajectories(file)[::4]:
            list(check_budgets(commit_all_but_last(client, trajectory.messages, 3)))
