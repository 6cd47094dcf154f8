"""Test conversations of realistic agent work, each with the values that a summary must keep."""

from conversations import (
    analysis_zh,
    debugging,
    deployment_zh,
    incident,
    migration,
    research,
    review,
    service_zh,
    support,
    travel,
)
from conversations.script import Conversation

__all__ = ["CONVERSATIONS", "Conversation"]

CONVERSATIONS = [
    debugging.CONVERSATION,
    migration.CONVERSATION,
    travel.CONVERSATION,
    support.CONVERSATION,
    research.CONVERSATION,
    review.CONVERSATION,
    incident.CONVERSATION,
    deployment_zh.CONVERSATION,
    analysis_zh.CONVERSATION,
    service_zh.CONVERSATION,
]
