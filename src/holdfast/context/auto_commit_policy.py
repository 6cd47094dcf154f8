"""When a session is to be committed without being asked."""

from typing import NamedTuple

from holdfast.model.sessions import AutoCommitPolicy

SECOND = 1_000_000


class SessionActivity(NamedTuple):
    """What the decision rests on. Times are microseconds."""

    message_count: int
    pending_tokens: int
    last_added_at: int
    last_commit_at: int


NOW = 0


def due_at(policy: AutoCommitPolicy, upkeep: SessionActivity, now: int) -> int | None:
    """When to commit: a moment that has come (NOW), one to come, or None as long as nothing else happens.

    A threshold of 0 is none.

    >>> due_at(AutoCommitPolicy(message_count_threshold=2), Upkeep(2, 10, 5, 0), now=7)
    0
    >>> due_at(AutoCommitPolicy(idle_timeout_seconds=1), Upkeep(1, 10, 5, 0), now=7)
    1000005
    """
    if upkeep.message_count <= (policy.keep_recent_count or 0):
        return None
    tokens, count, idle = policy.pending_token_threshold, policy.message_count_threshold, policy.idle_timeout_seconds
    moments = []
    if (tokens and upkeep.pending_tokens >= tokens) or (count and upkeep.message_count >= count):
        moments.append(NOW)
    if idle:
        moments.append(upkeep.last_added_at + round(idle * SECOND))
    if not moments:
        return None
    spaced = upkeep.last_commit_at + round((policy.min_commit_interval_seconds or 0) * SECOND)
    due = max(min(moments), spaced if upkeep.last_commit_at else NOW)
    return NOW if due <= now else due
