"""When a session is to be committed without being asked, for every policy and every state there can be."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.auto_commit_policy import NOW, SECOND, SessionActivity, due_at
from holdfast.model.sessions import AutoCommitPolicy

TIMES = st.integers(1, 1_000 * SECOND)
COUNTS = st.integers(0, 20)

policies = st.builds(
    AutoCommitPolicy,
    pending_token_threshold=st.none() | COUNTS,
    message_count_threshold=st.none() | COUNTS,
    idle_timeout_seconds=st.none() | st.floats(0, 100),
    keep_recent_count=st.none() | COUNTS,
    min_commit_interval_seconds=st.none() | st.floats(0, 100),
)
states = st.builds(SessionActivity, COUNTS, COUNTS, TIMES, st.just(0) | TIMES)


def reached(policy: AutoCommitPolicy, upkeep: SessionActivity) -> bool:
    """Whether there is enough to commit, whatever the time."""
    return bool(
        (policy.message_count_threshold and upkeep.message_count >= policy.message_count_threshold)
        or (policy.pending_token_threshold and upkeep.pending_tokens >= policy.pending_token_threshold)
    )


@given(policies, states, TIMES)
def test_a_moment_is_now_or_yet_to_come(policy: AutoCommitPolicy, upkeep: SessionActivity, now: int) -> None:
    due = due_at(policy, upkeep, now)
    assert due is None or due == NOW or due > now


@given(policies, states, TIMES)
def test_when_the_moment_has_come_it_is_now_and_not_before(
    policy: AutoCommitPolicy, upkeep: SessionActivity, now: int
) -> None:
    due = due_at(policy, upkeep, now)
    if due:
        assert due_at(policy, upkeep, due - 1) == due
        assert due_at(policy, upkeep, due) == NOW


@given(policies, states, TIMES)
def test_nothing_is_due_while_all_messages_are_to_be_kept(
    policy: AutoCommitPolicy, upkeep: SessionActivity, now: int
) -> None:
    if upkeep.message_count <= (policy.keep_recent_count or 0):
        assert due_at(policy, upkeep, now) is None


@given(policies, states, TIMES)
def test_commits_are_never_closer_than_the_interval(
    policy: AutoCommitPolicy, upkeep: SessionActivity, now: int
) -> None:
    due = due_at(policy, upkeep, now)
    if due is not None and upkeep.last_commit_at:
        earliest = upkeep.last_commit_at + round((policy.min_commit_interval_seconds or 0) * SECOND)
        assert max(due, now) >= earliest


@given(policies, states, TIMES)
def test_who_has_reached_a_threshold_waits_for_nothing_but_the_interval(
    policy: AutoCommitPolicy, upkeep: SessionActivity, now: int
) -> None:
    if reached(policy, upkeep) and upkeep.message_count > (policy.keep_recent_count or 0):
        late = now + upkeep.last_commit_at + 100 * SECOND
        assert due_at(policy, upkeep, late) == NOW
        assert due_at(policy, upkeep._replace(last_commit_at=0), now) == NOW


@given(policies, states, TIMES)
def test_without_a_threshold_that_is_reached_only_idle_time_counts(
    policy: AutoCommitPolicy, upkeep: SessionActivity, now: int
) -> None:
    if reached(policy, upkeep):
        return
    due = due_at(policy, upkeep, now)
    if policy.idle_timeout_seconds is None:
        assert due is None
    elif due == NOW:
        assert now >= upkeep.last_added_at + round(policy.idle_timeout_seconds * SECOND)


@given(states, TIMES)
def test_an_empty_policy_never_commits(upkeep: SessionActivity, now: int) -> None:
    assert due_at(AutoCommitPolicy(), upkeep, now) is None
