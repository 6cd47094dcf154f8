"""The time at which a session's policy requires an automatic commit."""

from typing import NamedTuple

from holdfast.model.sessions import AutoCommitPolicy

MICROSECONDS_PER_SECOND = 1_000_000


class SessionActivity(NamedTuple):
    """The values that a policy is applied to. Times are in microseconds."""

    message_count: int
    pending_tokens: int
    last_added_at: int
    last_commit_at: int


DUE_NOW = 0
"""Returned instead of a time. It is earlier than every time."""


def due_at(policy: AutoCommitPolicy, activity: SessionActivity, now: int) -> int | None:
    """Return DUE_NOW, the time of the commit if nothing else happens, or None if no commit is due.

    A threshold of 0 is ignored.

    >>> due_at(AutoCommitPolicy(message_count_threshold=2), SessionActivity(2, 10, 5, 0), now=7)
    0
    >>> due_at(AutoCommitPolicy(idle_timeout_seconds=1), SessionActivity(1, 10, 5, 0), now=7)
    1000005
    """
    if activity.message_count <= (policy.keep_recent_count or 0):
        return None
    tokens, count, idle = policy.pending_token_threshold, policy.message_count_threshold, policy.idle_timeout_seconds
    times = []
    if (tokens and activity.pending_tokens >= tokens) or (count and activity.message_count >= count):
        times.append(DUE_NOW)
    if idle:
        times.append(activity.last_added_at + round(idle * MICROSECONDS_PER_SECOND))
    if not times:
        return None
    interval = round((policy.min_commit_interval_seconds or 0) * MICROSECONDS_PER_SECOND)
    earliest = activity.last_commit_at + interval if activity.last_commit_at else DUE_NOW
    due = max(min(times), earliest)
    return DUE_NOW if due <= now else due
