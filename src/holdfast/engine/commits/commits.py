"""The first phase of a commit: number the archive, seal its messages, leave a task. One transaction."""

from holdfast.context.archive_boundary import Call, last_sealable_seq, spans
from holdfast.engine.commits import order
from holdfast.engine.gate import session_access
from holdfast.engine.gate.rule import CallContext, Rule, always
from holdfast.errors import FailedPreconditionError
from holdfast.model.archives import Committed, Run, SkipReason, archive_id, archive_uri
from holdfast.model.identity import Principal
from holdfast.ops.commits import CommitSession
from holdfast.store.database import Tx
from holdfast.store.tables import archives, call_ids, changes, lineage, messages, tasks
from holdfast.store.tables import sessions as store
from holdfast.store.tables.archives import UnfinishedArchive
from holdfast.store.tables.sessions import StoredSession
from holdfast.store.tables.tasks import StoredTask


def _commit(tx: Tx, principal: Principal, op: CommitSession, _ready: None, context: CallContext) -> Committed:
    session = session_access.require(tx, principal, op.session_id, lock=True)
    return seal(tx, session, principal.user_id, op.keep_recent_count or 0, context)


def seal(tx: Tx, session: StoredSession, by: str, keep: int, context: CallContext) -> Committed:
    """Seal the live messages of a session, which is locked, but for the last `keep`."""
    if session.live_count <= 0:
        return _skipped(session, "no_messages")
    through = _border(tx, session, session.last_seq - keep)
    if through < session.live_from:
        return _skipped(session, "all_within_keep_window")
    failed = refusal(tx, session, context)
    if failed is not None:
        raise _refused(session, failed)
    tokens = _tokens_through(tx, session, through)
    number = archives.last(tx, session.log_id)[0] + 1
    task = _task(tx.account, session, number, context)
    run = Run(number, "pending", session.live_from, through, tokens - session.tokens_archived)
    archives.insert(tx, session.log_id, number, run, task.task_id, context.now)
    tasks.insert(tx, task)
    order.release_next(tx, session.log_id, context)
    store.seal(tx, session, through, tokens, context.now)
    told = {"archive_id": archive_id(number), "task_id": task.task_id, "last_seq": through}
    changes.record(tx, session, "committed", by, context.now, told)
    return Committed(
        session_id=session.session_id,
        status="accepted",
        task_id=task.task_id,
        archive_uri=archive_uri(session.user_id, session.session_id, number),
        archived=True,
    )


def refusal(tx: Tx, session: StoredSession, context: CallContext) -> UnfinishedArchive | None:
    """The failed archive because of which this session takes no commit now."""
    if context.settings.after_failed_archive != "refuse":
        return None
    return archives.first_in(tx, session.log_id, "failed")


def _border(tx: Tx, session: StoredSession, last: int) -> int:
    """The last message to seal: up to `last`, but not one whose tool calls are answered behind it, or still run."""
    live = lineage.log_ranges(tx, session, session.live_from)
    turn = messages.last_of_role(tx, live, "user")
    recent = spans(_calls(tx, session, max(turn + 1, session.live_from)))
    if all(span.is_answered for span in recent) and not _calls(tx, session, last + 1):
        return last
    return last_sealable_seq(last, _calls(tx, session, session.live_from), turn)


def _calls(tx: Tx, session: StoredSession, first: int) -> list[Call]:
    return [Call(*row) for row in call_ids.read(tx, lineage.log_ranges(tx, session, first))]


def _tokens_through(tx: Tx, session: StoredSession, seq: int) -> int:
    if seq == session.last_seq:
        return session.tokens_total
    return messages.state_at(tx, lineage.log_ranges(tx, session, seq, seq)[0])[0]


def _task(account: str, session: StoredSession, number: int, context: CallContext) -> StoredTask:
    """A task that waits until it is released."""
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


def _refused(session: StoredSession, failed: UnfinishedArchive) -> FailedPreconditionError:
    name = archive_id(failed.number)
    return FailedPreconditionError(
        f"{name} of session {session.session_id} failed; retry or cancel its task {failed.task_id} first."
        " Its messages are still in the context, and new ones can be added",
        resource=session.session_id,
        archive_id=name,
        task_id=failed.task_id,
    )


RULES: dict[type, Rule] = {CommitSession: Rule(_commit, always)}
