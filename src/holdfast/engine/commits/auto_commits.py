"""Commits that nobody asked for: by policy of the session, at an append or when a time has come."""

from holdfast.context.auto_commit_policy import NOW, SessionActivity, due_at
from holdfast.engine.commits import commits
from holdfast.engine.gate import access
from holdfast.engine.gate.rule import CallContext
from holdfast.model.identity import Principal
from holdfast.model.sessions import AutoCommitPolicy
from holdfast.store.database import Tx
from holdfast.store.tables import archives, auto_commit_checks, sessions
from holdfast.store.tables.sessions import StoredSession

REFUSED_SECONDS = 60


def consider(tx: Tx, session: StoredSession, context: CallContext) -> None:
    """Commit a session, which is locked, if its policy says so; or note when to look at it again."""
    policy = _policy(session)
    if policy is None:
        return
    due = _due(tx, session, policy, context)
    if due == NOW:
        _commit(tx, session, policy, context)
    elif due is not None and auto_commit_checks.look_by(tx, session.log_id, due):
        context.signal.raised = True


def look(tx: Tx, log_id: int, context: CallContext) -> None:
    """The time has come to look at a session."""
    session = sessions.find_by_log(tx, log_id, lock=True)
    if not auto_commit_checks.is_due(tx, log_id, context.now):  # another looked before us
        return
    policy = None if session is None else _policy(session)
    due = None if session is None or policy is None else _due(tx, session, policy, context)
    if due is not None and due > NOW:
        auto_commit_checks.look_at(tx, log_id, due)
        return
    auto_commit_checks.delete(tx, log_id)
    if due == NOW and session is not None and policy is not None:
        _commit(tx, session, policy, context)


def _policy(session: StoredSession) -> AutoCommitPolicy | None:
    if session.config == sessions.NO_CONFIG:
        return None
    return sessions.decode_config(session.config).auto_commit_policy


def _due(tx: Tx, session: StoredSession, policy: AutoCommitPolicy, context: CallContext) -> int | None:
    _, last_commit = archives.last(tx, session.log_id)
    pending = session.tokens_total - session.tokens_archived
    return due_at(policy, SessionActivity(session.live_count, pending, session.last_added_at, last_commit), context.now)


def _commit(tx: Tx, session: StoredSession, policy: AutoCommitPolicy, context: CallContext) -> None:
    if commits.refusal(tx, session, context) is not None:
        # The failed archive is what has to be looked at first, by somebody; then it is this one's turn.
        auto_commit_checks.look_by(tx, session.log_id, context.now + REFUSED_SECONDS * 1_000_000)
        return
    done = commits.seal(tx, session, session.user_id, policy.keep_recent_count or 0, context)
    if done.archived:
        owner = Principal(tx.account, session.user_id, "user")
        access.record(tx, owner, "AutoCommit", session.session_id, context)
