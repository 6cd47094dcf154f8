"""The first phase of a commit, in one transaction: create the archive, seal its messages, create its task."""

from holdfast.context.archive_boundary import CallEvent, find_call_spans, last_sealable_seq
from holdfast.engine.commits import order
from holdfast.engine.gate import session_access
from holdfast.engine.gate.rule import CallContext, Rule, always
from holdfast.errors import FailedPreconditionError
from holdfast.model.archives import Committed, MessageRange, SkipReason, archive_id, archive_uri
from holdfast.model.identity import Principal
from holdfast.ops.commits import CommitSession
from holdfast.store.database import Tx
from holdfast.store.tables import archives, changes, lineage, messages, tasks, tool_calls
from holdfast.store.tables import sessions as store
from holdfast.store.tables.archives import StoredArchive
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.tasks import StoredTask


def _commit(tx: Tx, principal: Principal, op: CommitSession, _prepared: None, context: CallContext) -> Committed:
    session = session_access.require_session(tx, principal, op.session_id, lock=True)
    return seal(tx, session, principal.user_id, op.keep_recent_count or 0, context)


def seal(tx: Tx, session: StoredSession, user_id: str, keep: int, context: CallContext) -> Committed:
    """Seal the live messages of a session except the last `keep`. The session must be locked."""
    if session.live_count <= 0:
        return _skipped(session, "no_messages")
    last_seq = _last_seq_to_seal(tx, session, session.last_seq - keep)
    if last_seq < session.live_from:
        return _skipped(session, "all_within_keep_window")
    failed = blocking_archive(tx, session, context)
    if failed is not None:
        raise _blocked(session, failed)
    tokens = _tokens_through(tx, session, last_seq)
    number = archives.last_number_and_time(tx, session.log_id)[0] + 1
    task = _new_task(tx.account, session, number, context)
    sealed = MessageRange(number, "pending", session.live_from, last_seq, tokens - session.tokens_archived)
    archives.insert(tx, session.log_id, number, sealed, task.task_id, context.now)
    tasks.insert(tx, task)
    order.unblock_next(tx, session.log_id, context)
    store.seal(tx, session, last_seq, tokens, context.now)
    details = {"archive_id": archive_id(number), "task_id": task.task_id, "last_seq": last_seq}
    changes.record(tx, session, "committed", user_id, context.now, details)
    return Committed(
        session_id=session.session_id,
        status="accepted",
        task_id=task.task_id,
        archive_uri=archive_uri(session.user_id, session.session_id, number),
        archived=True,
    )


def blocking_archive(tx: Tx, session: StoredSession, context: CallContext) -> StoredArchive | None:
    """Return the failed archive that blocks further commits of the session, if there is one."""
    if context.settings.after_failed_archive != "refuse":
        return None
    return archives.first_in_state(tx, session.log_id, "failed")


def _last_seq_to_seal(tx: Tx, session: StoredSession, last: int) -> int:
    """Return the last message to seal, up to `last`, such that no tool call is separated from its result.

    A call that is still running is not sealed either.
    """
    live = lineage.log_ranges(tx, session, session.live_from)
    last_user_seq = messages.last_seq_of_role(tx, live, "user")
    recent = find_call_spans(_calls(tx, session, max(last_user_seq + 1, session.live_from)))
    if all(span.is_answered for span in recent) and not _calls(tx, session, last + 1):
        return last
    return last_sealable_seq(last, _calls(tx, session, session.live_from), last_user_seq)


def _calls(tx: Tx, session: StoredSession, first: int) -> list[CallEvent]:
    return [CallEvent(*row) for row in tool_calls.read_calls(tx, lineage.log_ranges(tx, session, first))]


def _tokens_through(tx: Tx, session: StoredSession, seq: int) -> int:
    if seq == session.last_seq:
        return session.tokens_total
    return messages.state_at(tx, lineage.log_ranges(tx, session, seq, seq)[0])[0]


def _new_task(account: str, session: StoredSession, number: int, context: CallContext) -> StoredTask:
    """Return a task that cannot run before it is unblocked."""
    return StoredTask(
        account_id=account,
        task_id=context.ids.new("task"),
        user_id=session.user_id,
        kind="session_commit",
        status="pending",
        resource_id=session.session_id,
        log_id=session.log_id,
        number=number,
        stage="waiting",
        steps_done=0,
        steps_total=1,
        run_at=None,
        fence=0,
        attempts=0,
        failures=0,
        created_at=context.now,
        updated_at=context.now,
        worked=0,
        result=None,
        error_code=None,
        error=None,
    )


def _skipped(session: StoredSession, reason: SkipReason) -> Committed:
    return Committed(
        session_id=session.session_id, status="skipped", task_id=None, archive_uri=None, archived=False, reason=reason
    )


def _blocked(session: StoredSession, failed: StoredArchive) -> FailedPreconditionError:
    failed_id = archive_id(failed.number)
    return FailedPreconditionError(
        f"{failed_id} of session {session.session_id} failed; retry or cancel its task {failed.task_id} first."
        " Its messages are still in the context, and new ones can be added",
        resource=session.session_id,
        archive_id=failed_id,
        task_id=failed.task_id,
    )


RULES: dict[type, Rule] = {CommitSession: Rule(_commit, always)}
