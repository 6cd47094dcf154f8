"""Measures whether contexts exceed their token budget. A tokeniser counts the tokens exactly."""

import holdfast
from conversations import CONVERSATIONS
from holdfast.model.archives import SessionContext
from holdfast.text.tokens import countable_texts
from quality.figures import QualityFigure, count_tokens
from scale import Setup

BUDGETS = (500, 700, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 20_000, 50_000)


def measure(setup: Setup) -> list[QualityFigure]:
    over = contexts = 0
    max_budget_share = 0.0  # the largest share of the budget left by the messages that an overview uses
    with holdfast.connect(setup.folder / "budgets.db") as client:
        for conversation in CONVERSATIONS[:: setup.scale.sample_step]:
            session = client.session()
            archived = len(conversation.messages) * 3 // 4
            for piece in (conversation.messages[: archived // 2], conversation.messages[archived // 2 : archived]):
                session.add_messages(piece)
                client.wait_for_task(str(session.commit().task_id))
            session.add_messages(conversation.messages[archived:])
            minimum = _count_messages(session.context(0))  # messages are always included
            for budget in BUDGETS:
                context = session.context(budget)
                total = _count_messages(context) + count_tokens(context.latest_archive_overview)
                contexts += 1
                over += total > max(budget, minimum)
                if budget > minimum:
                    max_budget_share = max(max_budget_share, (total - minimum) / (budget - minimum))
    return [
        QualityFigure(
            name=f"contexts above their budget (o200k), of {contexts} with budgets of 500 to 50,000",
            measured=str(over),
            target="0",
            met=over == 0,
            notes=[f"the fullest context uses {max_budget_share:.0%} of the budget that its messages leave"],
        )
    ]


def _count_messages(context: SessionContext) -> int:
    messages = [*context.messages, *([] if context.system_message is None else [context.system_message])]
    return sum(count_tokens(text) for message in messages for text in countable_texts(message.parts))
