"""A kind of task that is added as CONTRIBUTING.md describes: it runs, fails, is retried and is cancelled."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.engine.tasks.claimed_task import ClaimedTask
from holdfast.engine.tasks.order import Order, add_task
from holdfast.engine.tasks.task_kind import TASK_KINDS, TaskKind, WriteResults
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.summaries import Cost, TokenUsage
from holdfast.model.tasks import Task
from holdfast.ops.system import ObserveComponent
from holdfast.ops.tasks import CancelTask, GetTask, ListTasks, RetryTask
from holdfast.store.access import accounts
from holdfast.store.database import Database, Tx
from holdfast.store.tables.tasks import Failure, StoredTask
from holdfast.testing.clocks import advance_clock

ALICE = Principal("acme", "alice", "root")
HOUR = 3_600_000_000
AddProbe = Callable[..., str]


class ProbePayload(msgspec.Struct, frozen=True):
    text: str


class Probe:
    """A kind of task with two steps, and a record of what happened to its tasks."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_broken = False

    def perform(self, claimed: ClaimedTask) -> WriteResults:
        payload = claimed.task.decode_payload(ProbePayload)
        claimed.plan_steps(["read", "write"], 0)
        text = claimed.run_step("read", str, lambda: (self._call("read", payload.text), Cost(TokenUsage(1, 2, 3))))
        if self.is_broken:
            raise InvalidArgumentError("text", f"{text!r} cannot be written")
        claimed.run_step("write", str, lambda: (self._call("write", text), Cost(embedding_tokens=4)))
        return lambda _tx, _context: {"written": self._call("finish", text)}

    def failed(self, _tx: Tx, _context: CallContext, task: StoredTask, failure: Failure) -> None:
        self.calls.append(f"failed {task.resource_id}: {failure.code}")

    def cancelled(self, _tx: Tx, _context: CallContext, task: StoredTask, principal: Principal) -> None:
        self.calls.append(f"cancelled {task.resource_id} by {principal.user_id}")

    def retried(self, _tx: Tx, _context: CallContext, task: StoredTask, principal: Principal) -> None:
        self.calls.append(f"retried {task.resource_id} by {principal.user_id}")

    def _call(self, name: str, text: str) -> str:
        self.calls.append(f"{name} {text}")
        return text


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def engine(database: Database, probe: Probe) -> Iterator[Engine]:
    database.write("acme", lambda tx: accounts.insert(tx, "acme", 1))
    TASK_KINDS["probe"] = TaskKind(
        perform=probe.perform,
        failed=probe.failed,
        cancelled=probe.cancelled,
        retried=probe.retried,
        blocks_after_failure=lambda settings: settings.after_failed_archive == "wait",
        retention_hours=lambda _settings: 1,
    )
    yield Engine(database, Settings(worker_threads=0))
    TASK_KINDS.pop("probe", None)


@pytest.fixture
def add_probe(engine: Engine) -> AddProbe:
    def add(text: str, order: Order | None = None, kind: str = "probe") -> str:
        context = engine.new_context()
        return engine.db.write(
            "acme",
            lambda tx: add_task(
                tx,
                context,
                kind,
                user_id="alice",
                resource_id=text,
                subject=f"viking://resources/{text}",
                payload=ProbePayload(text),
                order=order,
                steps_total=2,
            ),
        )

    return add


def run_tasks(engine: Engine, after_failed_archive: str = "refuse") -> None:
    settings = msgspec.convert({"worker_threads": 1, "after_failed_archive": after_failed_archive}, Settings)
    worker = Engine(engine.db, settings, clock=engine.clock)
    worker.start_workers(polls=False)
    assert worker.workers is not None
    worker.workers.close(30)


def get(engine: Engine, task_id: str) -> Task:
    return engine.call(ALICE, GetTask(task_id=task_id))


def test_a_task_of_a_new_kind_runs(engine: Engine, probe: Probe, add_probe: AddProbe) -> None:
    task_id = add_probe("a")
    assert [task.task_id for task in engine.call(ALICE, ListTasks(task_type="probe", status="pending"))] == [task_id]
    run_tasks(engine)
    task = get(engine, task_id)
    assert (task.status, task.task_type, task.result) == ("completed", "probe", {"written": "a"})
    assert (task.subject, task.resource_id, task.archive_uri) == ("viking://resources/a", "a", None)
    assert (task.progress.done, task.progress.total) == (2, 2)
    assert (task.token_usage.llm, task.token_usage.embedding.total_tokens) == (TokenUsage(1, 2, 3), 4)
    assert task.token_usage.total.total_tokens == 7
    assert probe.calls == ["read a", "write a", "finish a"]


def test_a_task_of_a_new_kind_fails_and_is_retried_from_its_last_step(
    engine: Engine, probe: Probe, add_probe: AddProbe
) -> None:
    probe.is_broken = True
    task_id = add_probe("a")
    run_tasks(engine)
    task = get(engine, task_id)
    assert (task.status, task.error_code) == ("failed", "INVALID_ARGUMENT")
    assert task.token_usage.llm == TokenUsage(1, 2, 3)
    probe.is_broken = False
    assert engine.call(ALICE, RetryTask(task_id=task_id)).status == "pending"
    run_tasks(engine)
    assert get(engine, task_id).result == {"written": "a"}
    assert probe.calls == ["read a", "failed a: INVALID_ARGUMENT", "retried a by alice", "write a", "finish a"]


def test_a_task_of_a_new_kind_is_cancelled(engine: Engine, probe: Probe, add_probe: AddProbe) -> None:
    task_id = add_probe("a")
    assert engine.call(ALICE, CancelTask(task_id=task_id)).status == "cancelled"
    run_tasks(engine)
    assert (get(engine, task_id).status, probe.calls) == ("cancelled", ["cancelled a by alice"])


def test_tasks_with_an_ordering_key_run_by_position(engine: Engine, probe: Probe, add_probe: AddProbe) -> None:
    add_probe("first", Order("key", 1))
    third = add_probe("third", Order("key", 3))
    second = add_probe("second", Order("key", 2))
    assert (get(engine, second).stage, get(engine, third).stage) == ("waiting", "waiting")
    run_tasks(engine)
    assert probe.calls[::3] == ["read first", "read second", "read third"]


@pytest.mark.parametrize(("policy", "is_read"), [("wait", False), ("proceed", True)])
def test_a_kind_says_whether_later_tasks_wait_for_a_failed_one(
    engine: Engine, probe: Probe, add_probe: AddProbe, policy: str, *, is_read: bool
) -> None:
    probe.is_broken = True
    add_probe("first", Order("key", 1))
    add_probe("second", Order("key", 2))
    run_tasks(engine, policy)
    assert ("read second" in probe.calls) == is_read


def test_a_task_of_an_unknown_kind_is_left_alone(engine: Engine, add_probe: AddProbe) -> None:
    task_id = add_probe("later", kind="of_a_later_version")
    known = add_probe("a")
    run_tasks(engine)
    assert get(engine, known).status == "completed"
    (task,) = engine.call(OPERATOR, ListTasks(task_type="of_a_later_version"))
    assert (task.task_id, task.status, task.attempts) == (task_id, "pending", 0)
    assert not engine.has_work()
    for operation in (CancelTask(task_id=task_id), RetryTask(task_id=task_id)):
        with pytest.raises(FailedPreconditionError, match="kind of_a_later_version, which this version does not know"):
            engine.call(OPERATOR, operation)
    with pytest.raises(NotFoundError):
        get(engine, task_id)


def test_a_kind_can_be_visible_to_the_operator_only(engine: Engine, probe: Probe, add_probe: AddProbe) -> None:
    TASK_KINDS["probe"] = TaskKind(perform=probe.perform, visible_to="operator")
    task_id = add_probe("a")
    assert engine.call(ALICE, ListTasks()) == []
    for operation in (GetTask(task_id=task_id), CancelTask(task_id=task_id), RetryTask(task_id=task_id)):
        with pytest.raises(NotFoundError):
            engine.call(ALICE, operation)
    assert [task.task_id for task in engine.call(OPERATOR, ListTasks())] == [task_id]
    assert engine.call(OPERATOR, CancelTask(task_id=task_id)).status == "cancelled"


@pytest.mark.parametrize(("hours", "kept"), [(1, False), (3, True), (None, True)])
def test_a_kind_says_how_long_its_completed_tasks_are_kept(
    engine: Engine, probe: Probe, add_probe: AddProbe, hours: int | None, *, kept: bool
) -> None:
    TASK_KINDS["probe"] = TaskKind(perform=probe.perform, retention_hours=lambda _settings: hours)
    add_probe("a")
    run_tasks(engine)
    advance_clock(engine.db, 2 * HOUR)
    Engine(engine.db, Settings(task_retention_hours=1)).delete_expired()
    assert bool(engine.call(ALICE, ListTasks())) == kept


def test_the_queue_is_counted_by_kind(engine: Engine, add_probe: AddProbe) -> None:
    add_probe("a")
    status: Any = engine.call(ALICE, ObserveComponent(component="queue", format="json")).status
    pending = {queue["queue"]: queue["pending"] for queue in status["queues"]}
    assert (pending["probe"], pending["SessionCommit"], status["summary"]["pending"]) == (1, 0, 1)
