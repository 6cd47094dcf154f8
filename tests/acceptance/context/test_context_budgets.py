"""No context has more tokens than its budget, counted as models count, but for the messages that are always shown."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from conversations import CONVERSATIONS, recorded
from holdfast.model.archives import SessionContext
from holdfast.text import tokens

BUDGETS = (500, 700, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 20_000, 50_000)
exact = tokens.counter("o200k_base")


def messages_cost(context: SessionContext) -> int:
    shown = [*context.messages, *([] if context.system_message is None else [context.system_message])]
    return sum(exact(text) for message in shown for text in tokens.texts_of(message.parts))


def check(session: holdfast.Session) -> Iterator[SessionContext]:
    always = messages_cost(session.context(0))
    rich = session.context(1_000_000).receipt
    enough = [rich.spent + rich.reserved, *(line.tokens + line.reserved + always for line in rich.included)]
    for budget in sorted([*BUDGETS, *enough]):
        context = session.context(budget)
        total = messages_cost(context) + exact(context.latest_archive_overview)
        assert total <= max(budget, always), f"{total} tokens with a budget of {budget}"
        yield context


def pieces(messages: list[dict[str, Any]], count: int) -> Iterator[list[dict[str, Any]]]:
    size = -(-len(messages) // count)
    for start in range(0, len(messages), size):
        yield messages[start : start + size]


def committed(client: holdfast.Client, messages: list[dict[str, Any]], count: int) -> holdfast.Session:
    """A session with all but the last piece of the messages in archives."""
    session = client.session()
    for number, piece in enumerate(pieces(messages, count), 1):
        session.add_messages(piece)
        if number < count:
            assert client.wait_for_task(str(session.commit().task_id)).status == "completed"
    return session


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda it: it.name.replace(" ", "-"))
def test_contexts_of_conversations_stay_within_every_budget(conversation: Any, tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        for count in (2, 4):
            session = committed(client, conversation.messages, count)
            assert any(context.latest_archive_overview for context in check(session))


def test_contexts_with_large_outputs_stay_within_every_budget(tmp_path: Path) -> None:
    data = [{"user_id": f"mia_li_{n}", "total": n * 17.5, "status": "delivered"} for n in range(60)]
    texts = {
        "json": json.dumps(data),
        "log": "\n".join(f"10:{n % 60:02}:07 INFO [worker-{n}] path=/users/{n * 7919} status=200" for n in range(99)),
        "hex": "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(400)),
        "zh": "数据库连接失败，错误码 502；请检查部署脚本，端口是 8443。" * 90,
        "code": Path(holdfast.__file__).with_name("parts.py").read_text(),
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
            whole = [
                [part.is_preview for it in context.messages for part in it.parts if isinstance(part, holdfast.ToolPart)]
                for context in check(session)
            ]
            assert whole[0] == [True, True]
            assert whole[-1] == [False, False]


@pytest.mark.skipif(recorded.data_file() is None, reason=f"{recorded.FILE} is not in HOLDFAST_DATA")
def test_contexts_of_real_agent_traffic_stay_within_every_budget(tmp_path: Path) -> None:
    file = recorded.data_file()
    assert file
    with holdfast.connect(tmp_path) as client:
        for trajectory in recorded.trajectories(file)[::4]:
            list(check(committed(client, trajectory.messages, 3)))
