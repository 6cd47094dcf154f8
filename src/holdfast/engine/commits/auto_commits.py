"""Automatic commits: by policy of the session, after an append or at a scheduled check."""

from holdfast.context.auto_commit_policy import DUE_NOW, SessionActivity, due_at
from holdfast.engine.commits import commits
from holdfast.engine.gate import access
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.model.identity import Principal
from holdfast.model.sessions import AutoCommitPolicy
from holdfast.store.database import Tx
from holdfast.store.tables import archives, auto_commit_checks, sessions
from holdfast.store.tables.sessions import StoredSession

BLOCKED_RETRY_SECONDS = 60
"""Delay before the next check of a session that a failed archive blocks."""


def commit_if_due(tx: Tx, session: StoredSession, context: CallContext) -> None:
    """Commit a session if its policy requires it now; otherwise schedule the next check. The session must be locked."""
    policy = _policy(session)
    if policy is None:
        return
    due = _due_at(tx, session, policy, context)
    if due == DUE_NOW:
        _commit(tx, session, policy, context)
    elif due is not None and auto_commit_checks.schedule_at_or_before(tx, session.log_id, due):
        context.wake_workers()


def check_session(tx: Tx, log_id: int, context: CallContext) -> None:
    """Run the scheduled check of a session: commit it, schedule the next check, or stop checking it."""
    session = sessions.find_by_log(tx, log_id, lock=True)
    if not auto_commit_checks.is_due(tx, log_id, context.now):  # another process has done this check
        return
    policy = None if session is None else _policy(session)
    due = None if session is None or policy is None else _due_at(tx, session, policy, context)
    if due is not None and due > DUE_NOW:
        auto_commit_checks.reschedule(tx, log_id, due)
        return
    auto_commit_checks.delete(tx, log_id)
    if due == DUE_NOW and session is not None and policy is not None:
        _commit(tx, session, policy, context)


def _policy(session: StoredSession) -> AutoCommitPolicy | None:
    if session.config == sessions.NO_CONFIG:
        return None
    return sessions.decode_config(session.config).auto_commit_policy


def _due_at(tx: Tx, session: StoredSession, policy: AutoCommitPolicy, context: CallContext) -> int | None:
    _, last_commit_at = archives.last_number_and_time(tx, session.log_id)
    pending_tokens = session.tokens_total - session.tokens_archived
    activity = SessionActivity(session.live_count, pending_tokens, session.last_added_at, last_commit_at)
    return due_at(policy, activity, context.now)


def _commit(tx: Tx, session: StoredSession, policy: AutoCommitPolicy, context: CallContext) -> None:
    if commits.blocking_archive(tx, session, context) is not None:
        # The failed archive must be retried or cancelled first.
        auto_commit_checks.schedule_at_or_before(tx, session.log_id, context.now + BLOCKED_RETRY_SECONDS * 1_000_000)
        return
    committed = commits.seal(tx, session, session.user_id, policy.keep_recent_count or 0, context)
    if committed.archived:
        owner = Principal(tx.account, session.user_id, "user")
        access.record_audit(tx, owner, "AutoCommit", session.session_id, context)
