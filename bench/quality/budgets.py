"""Contexts at every budget, counted as a model counts, without the messages that are always shown."""

import holdfast
from conversations import CONVERSATIONS
from holdfast.model.archives import SessionContext
from holdfast.text.tokens import texts_of
from quality.shown import Shown, count
from scale import Setup

BUDGETS = (500, 700, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 20_000, 50_000)


def measure(setup: Setup) -> list[Shown]:
    over = contexts = 0
    fullest = 0.0
    with holdfast.connect(setup.folder / "budgets.db") as client:
        for conversation in CONVERSATIONS[:: setup.scale.every]:
            session = client.session()
            border = len(conversation.messages) * 3 // 4
            for piece in (conversation.messages[: border // 2], conversation.messages[border // 2 : border]):
                session.add_messages(piece)
                client.wait_for_task(str(session.commit().task_id))
            session.add_messages(conversation.messages[border:])
            always = _messages(session.context(0))
            for budget in BUDGETS:
                context = session.context(budget)
                total = _messages(context) + count(context.latest_archive_overview)
                contexts += 1
                over += total > max(budget, always)
                fullest = max(fullest, (total - always) / max(1, budget - always) if budget > always else 0.0)
    return [
        Shown(
            what=f"contexts above their budget (o200k), of {contexts} with budgets of 500 to 50,000",
            measured=str(over),
            target="0",
            met=over == 0,
            notes=[f"the fullest context uses {fullest:.0%} of what its messages leave of the budget"],
        )
    ]


def _messages(context: SessionContext) -> int:
    shown = [*context.messages, *([] if context.system_message is None else [context.system_message])]
    return sum(count(text) for message in shown for text in texts_of(message.parts))
