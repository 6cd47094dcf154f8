"""Automatic commits: by policy of the session, after an append or at a scheduled check."""

from holdfast.context.auto_commit_policy import DUE_NOW, SessionActivity, due_at
from holdfast.engine.commits import commits
from holdfast.engine.gate import access, audit_lines
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.model.access import user_name
from holdfast.model.identity import Principal
from holdfast.model.sessions import AutoCommitPolicy
from holdfast.store.database import Tx
from holdfast.store.tables import auto_commit_checks, sessions
from holdfast.store.tables.auto_commit_checks import SessionTimes
from holdfast.store.tables.sessions import StoredSession

BLOCKED_RETRY_SECONDS = 60
"""Delay before the next check of a session that a failed archive blocks."""

MAX_ADDED_AT_ERROR_SECONDS = 1.0
"""How much too early the stored time of the last message may be, so that most appends need not write it.

A session may be committed this much before its idle time is over.
"""


def commit_after_append(tx: Tx, session: StoredSession, context: CallContext) -> None:
    """Commit a session if its policy requires it now; otherwise schedule the next check.

    The session must be locked, and a message has just been added to it.
    """
    policy = _policy(session)
    if policy is None:
        return
    times = auto_commit_checks.read_times(tx, session.log_id)
    due = _due_at(session, policy, times, times.now)
    if due == DUE_NOW:
        _commit(tx, session, policy, context, times.now)
    elif due is not None:
        is_earlier = times.check_at is None or due < times.check_at
        if is_earlier or not _is_recent(times, policy):
            auto_commit_checks.schedule(tx, session.log_id, due, times.now)
        if is_earlier:
            context.wake_workers()


def check_session(tx: Tx, log_id: int, context: CallContext) -> None:
    """Run the scheduled check of a session: commit it, schedule the next check, or stop checking it."""
    session = sessions.find_by_log(tx, log_id, lock=True)
    times = auto_commit_checks.read_times(tx, log_id)
    if times.check_at is None or times.check_at > times.now:  # another process has done this check
        return
    policy = None if session is None else _policy(session)
    if session is None or policy is None:
        auto_commit_checks.delete(tx, log_id)
        return
    # `session.last_added_at` is by the clock of the machine that added the message. It is used only until the next
    # append stores the time by the database's clock.
    added_at = min(session.last_added_at, times.now) if times.last_added_at is None else times.last_added_at
    due = _due_at(session, policy, times, added_at)
    if due is not None and due > DUE_NOW:
        auto_commit_checks.reschedule(tx, log_id, due, added_at)
        return
    auto_commit_checks.delete(tx, log_id)
    if due == DUE_NOW:
        _commit(tx, session, policy, context, times.now)


def _policy(session: StoredSession) -> AutoCommitPolicy | None:
    if session.config == sessions.NO_CONFIG:
        return None
    return sessions.decode_config(session.config).auto_commit_policy


def _is_recent(times: SessionTimes, policy: AutoCommitPolicy) -> bool:
    """Whether the stored time of the last message is so close that it need not be written again."""
    precision = min(MAX_ADDED_AT_ERROR_SECONDS, (policy.idle_timeout_seconds or 0) / 10) * 1_000_000
    return times.last_added_at is not None and times.now - times.last_added_at < precision


def _due_at(session: StoredSession, policy: AutoCommitPolicy, times: SessionTimes, last_added_at: int) -> int | None:
    pending_tokens = session.tokens_total - session.tokens_archived
    activity = SessionActivity(session.live_count, pending_tokens, last_added_at, times.last_commit_at)
    return due_at(policy, activity, times.now)


def _commit(tx: Tx, session: StoredSession, policy: AutoCommitPolicy, context: CallContext, now: int) -> None:
    if commits.blocking_archive(tx, session, context) is not None:
        # The failed archive must be retried or cancelled first.
        auto_commit_checks.schedule(tx, session.log_id, now + BLOCKED_RETRY_SECONDS * 1_000_000, now)
        return
    owner = Principal(tx.account, user_name(session.owner_id), "user", internal_id=session.owner_id)
    committed = commits.seal(tx, session, owner.user_id, policy.keep_recent_count or 0, context)
    if committed.archived:
        audit_lines.begin_operation()
        audit_lines.note_session(session)
        access.record_audit(tx, owner, "AutoCommit", session.session_id, context)
