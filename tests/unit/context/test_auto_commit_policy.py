"""When a session is committed automatically, for arbitrary policies and sessions."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.auto_commit_policy import DUE_NOW, MICROSECONDS_PER_SECOND, SessionActivity, due_at
from holdfast.model.sessions import AutoCommitPolicy

TIMES = st.integers(1, 1_000 * MICROSECONDS_PER_SECOND)
COUNTS = st.integers(0, 20)

policies = st.builds(
    AutoCommitPolicy,
    pending_token_threshold=st.none() | COUNTS,
    message_count_threshold=st.none() | COUNTS,
    idle_timeout_seconds=st.none() | st.floats(0, 100),
    keep_recent_count=st.none() | COUNTS,
    min_commit_interval_seconds=st.none() | st.floats(0, 100),
)
activities = st.builds(SessionActivity, COUNTS, COUNTS, TIMES, st.just(0) | TIMES)


def reaches_threshold(policy: AutoCommitPolicy, activity: SessionActivity) -> bool:
    """Return whether a threshold of messages or tokens is reached."""
    return bool(
        (policy.message_count_threshold and activity.message_count >= policy.message_count_threshold)
        or (policy.pending_token_threshold and activity.pending_tokens >= policy.pending_token_threshold)
    )


@given(policies, activities, TIMES)
def test_a_commit_is_due_now_or_in_the_future(policy: AutoCommitPolicy, activity: SessionActivity, now: int) -> None:
    due = due_at(policy, activity, now)
    assert due is None or due == DUE_NOW or due > now


@given(policies, activities, TIMES)
def test_a_future_commit_is_due_at_its_time_and_not_before(
    policy: AutoCommitPolicy, activity: SessionActivity, now: int
) -> None:
    due = due_at(policy, activity, now)
    if due:
        assert due_at(policy, activity, due - 1) == due
        assert due_at(policy, activity, due) == DUE_NOW


@given(policies, activities, TIMES)
def test_no_commit_is_due_while_all_messages_are_kept_as_recent(
    policy: AutoCommitPolicy, activity: SessionActivity, now: int
) -> None:
    if activity.message_count <= (policy.keep_recent_count or 0):
        assert due_at(policy, activity, now) is None


@given(policies, activities, TIMES)
def test_commits_are_at_least_the_minimum_interval_apart(
    policy: AutoCommitPolicy, activity: SessionActivity, now: int
) -> None:
    due = due_at(policy, activity, now)
    if due is not None and activity.last_commit_at:
        earliest = activity.last_commit_at + round((policy.min_commit_interval_seconds or 0) * MICROSECONDS_PER_SECOND)
        assert max(due, now) >= earliest


@given(policies, activities, TIMES)
def test_a_session_above_a_threshold_waits_only_for_the_minimum_interval(
    policy: AutoCommitPolicy, activity: SessionActivity, now: int
) -> None:
    if reaches_threshold(policy, activity) and activity.message_count > (policy.keep_recent_count or 0):
        late = now + activity.last_commit_at + 100 * MICROSECONDS_PER_SECOND
        assert due_at(policy, activity, late) == DUE_NOW
        assert due_at(policy, activity._replace(last_commit_at=0), now) == DUE_NOW


@given(policies, activities, TIMES)
def test_a_session_below_all_thresholds_is_committed_only_after_the_idle_timeout(
    policy: AutoCommitPolicy, activity: SessionActivity, now: int
) -> None:
    if reaches_threshold(policy, activity):
        return
    due = due_at(policy, activity, now)
    if policy.idle_timeout_seconds is None:
        assert due is None
    elif due == DUE_NOW:
        assert now >= activity.last_added_at + round(policy.idle_timeout_seconds * MICROSECONDS_PER_SECOND)


@given(activities, TIMES)
def test_an_empty_policy_never_commits(activity: SessionActivity, now: int) -> None:
    assert due_at(AutoCommitPolicy(), activity, now) is None
