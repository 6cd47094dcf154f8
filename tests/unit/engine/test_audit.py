"""Sealing, retention and saved heads of the audit log, and what it records without being waited for."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.client.sync.audit import Audit
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.gate import audit_log
from holdfast.engine.gate.audit_log import HourlyFilter
from holdfast.errors import NotFoundError, PermissionDeniedError, UnavailableError
from holdfast.model.audit import AuditVerification
from holdfast.model.identity import Origin, Principal
from holdfast.ops.administration import CreateUser, DeleteAccount, ListAccounts
from holdfast.ops.audit import ListAudit
from holdfast.ops.sessions import CreateSession, DeleteSession, GetSession, UpdateSession
from holdfast.ops.sharing import ShareSession
from holdfast.ops.tree.files import ReadFile
from holdfast.store.access import audit
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx, read_time
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.contract.submissions import insert_record

ALICE = Principal("acme", "alice", "root")
HOUR = 3_600_000_000
DAY = 24 * HOUR


def verify(engine: Engine, **options: Any) -> AuditVerification:
    transport: Any = SimpleNamespace(call=partial(engine.call, ALICE))  # a client would close the engine when dropped
    return Audit(transport).verify_audit(**options)


def unsealed(database: Database) -> int:
    return database.read("acme", audit.count_unsealed)


def test_lines_of_an_earlier_version_are_the_beginning_of_the_chain(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sealed in slices, before new lines."""
    monkeypatch.setattr(audit, "SLICE_LINES", 10)
    engine = Engine(database)
    for number in range(95):
        database.write("acme", partial(insert_record, id=f"aud_{number:04}", resource=f"s{number}"))
    engine.call(ALICE, CreateSession(session_id="new"))
    result = verify(engine)
    assert (result.problem, result.lines, result.unsealed) == (None, 97, 0)
    records = engine.call(ALICE, ListAudit(limit=1000)).records
    assert [record.resource for record in records] == ["new", "acme", *(f"s{n}" for n in reversed(range(95)))]
    assert [record.number for record in records] == list(range(97, 0, -1))


def test_writers_of_an_account_do_not_wait_for_a_transaction_that_seals(open_database: Callable[[], Database]) -> None:
    """On SQLite every writer waits for the one writer there is."""
    engine = Engine(open_database())
    engine.call(ALICE, CreateSession(session_id="s"))
    engine.audit_log.seal_now("acme")
    if not engine.db.read("acme", lambda tx: tx.dialect.lock_row):
        return
    locked, release = threading.Event(), threading.Event()

    def hold(tx: Any) -> None:
        audit.lock_head(tx, wait=True)
        locked.set()
        release.wait(30)

    holder = threading.Thread(target=engine.db.write, args=("acme", hold))
    holder.start()
    assert locked.wait(10)
    for number in range(5):
        engine.call(ALICE, UpdateSession(session_id="s", title=str(number)))
    engine.audit_log.settle()
    assert unsealed(engine.db) == 5
    release.set()
    holder.join()
    assert (verify(engine).problem, unsealed(engine.db)) == (None, 0)


def test_lines_are_sealed_without_a_reader(database: Database) -> None:
    engine = Engine(database)
    for number in range(5):
        engine.call(ALICE, CreateSession(session_id=f"s{number}"))
    engine.audit_log.settle()
    assert unsealed(database) == 0


def test_an_account_that_is_deleted_while_its_lines_are_sealed_leaves_nothing(database: Database) -> None:
    """An account of the same name would otherwise begin with a broken chain."""
    engine = Engine(database)
    engine.call(Principal("acme", "alice", "root"), CreateSession(session_id="s"))
    database.write("acme", lambda tx: tx.execute("DELETE FROM audit_heads WHERE account_id = 'acme'"))
    database.write("acme", lambda tx: tx.execute("DELETE FROM audit WHERE account_id = 'acme'"))
    database.write("acme", partial(insert_record, id="aud_1", resource="s"))
    is_sealed, may_commit = threading.Event(), threading.Event()

    def seal(tx: Tx) -> None:
        engine.audit_log._seal(tx)
        is_sealed.set()
        may_commit.wait(30)

    with ThreadPoolExecutor() as threads:
        sealing = threads.submit(database.write, "acme", seal)
        assert is_sealed.wait(30)
        deleting = threads.submit(engine.call, Principal("globex", "boss", "root"), DeleteAccount(account_id="acme"))
        wait([deleting], timeout=0.5)
        may_commit.set()
        sealing.result()
        deleting.result()
    assert database.read("acme", lambda tx: (audit.find_head(tx), audit.page(tx, 10))) == (None, [])


def test_the_cleanup_seals_what_was_left(database: Database) -> None:
    engine = Engine(database)
    for account in ("acme", "rival"):
        database.write(account, lambda tx: insert_record(tx, "aud_1"))
    engine.delete_expired()
    for account in ("acme", "rival"):
        assert database.read(account, audit.count_unsealed) == 0


@pytest.fixture
def dated_database(database: Database, tmp_path: Path) -> Iterator[Database]:
    """A database whose time is not near the epoch."""
    if database.read(EVERY_ACCOUNT, read_time) > DAY:
        yield database
        return
    dated = SqliteDatabase(str(tmp_path / "dated.db"))
    dated.migrate(1_700_000_000_000_000)
    yield dated
    dated.close()


def test_retention_removes_old_lines_after_a_checkpoint(dated_database: Database) -> None:
    database = dated_database
    now = [database.read(EVERY_ACCOUNT, read_time)]
    settings = Settings(audit_retention_days=30, audit_key="secret")
    engine = Engine(database, settings, clock=lambda: now[0])
    now[0] -= 40 * DAY
    for number in range(1_200):
        database.write("acme", partial(insert_record, id=audit.first_id(now[0]) + f"{number:04}"))
    engine.ids._last = 0
    engine.call(ALICE, CreateSession(session_id="old"))
    engine.audit_log.seal_all()
    now[0] += 40 * DAY
    engine.call(ALICE, CreateSession(session_id="new"))
    engine.audit_log.seal_now("acme")
    engine.delete_expired()
    result = verify(engine, key="secret")
    assert (result.problem, result.signature) == (None, "checked")
    assert (result.first_number, result.last_number) == (1_203, 1_204)
    assert [record.action for record in engine.call(ALICE, ListAudit()).records] == ["Checkpoint", "CreateSession"]
    assert database.read("acme", lambda tx: tx.all("SELECT COUNT(*) FROM audit WHERE account_id = 'acme'")) == [(2,)]
    assert verify(engine).signature == "not checked"
    problem = verify(engine, key="wrong").problem
    assert problem is not None
    assert problem.kind == "signature"
    engine.delete_expired()  # nothing is old now
    assert verify(engine).last_number == 1_204


def test_the_heads_of_chains_are_saved_when_they_have_changed(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "heads.jsonl"
    engine = Engine(database, Settings(audit_head_file=str(file)))
    engine.call(ALICE, CreateSession(session_id="a"))
    engine.save_audit_heads()
    engine.save_audit_heads()
    assert [line["number"] for line in map(msgspec.json.decode, file.read_bytes().splitlines())] == [2]
    engine.call(ALICE, CreateSession(session_id="b"))
    engine.save_audit_heads()
    result = verify(engine, heads=file)
    assert (result.problem, result.heads_checked) == (None, 2)

    def rewrite(tx: Any) -> None:
        """Seal all lines again, without one of them."""
        tx.execute("DELETE FROM audit WHERE account_id = 'acme'")
        tx.execute("DELETE FROM audit_heads WHERE account_id = 'acme'")
        for name in ("acme", "a", "c"):
            insert_record(tx, f"aud_{name}", name)

    database.write("acme", rewrite)
    assert verify(engine).is_intact, "only saved heads tell"
    problem = verify(engine, heads=file).problem
    assert problem is not None
    assert problem.kind == "rewritten"


def test_heads_are_saved_at_close(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "heads.jsonl"
    for _ in range(2):
        engine = Engine(database, Settings(audit_head_file=str(file)))
        engine.call(ALICE, GetSession(session_id="a", auto_create=True))
        engine.audit_log.settle()
        engine.save_audit_heads()
    assert len(file.read_bytes().splitlines()) == 1, "the second one has changed nothing"
    engine.call(ALICE, CreateSession(session_id="b"))
    engine.close()
    assert len(file.read_bytes().splitlines()) == 2


def test_heads_are_saved_to_a_named_pipe_without_waiting_for_its_reader(database: Database, tmp_path: Path) -> None:
    pipe = tmp_path / "heads"
    os.mkfifo(pipe)
    engine = Engine(database, Settings(audit_head_file=str(pipe)))
    engine.call(ALICE, CreateSession(session_id="a"))
    with pytest.raises(UnavailableError, match="audit_head_file"):
        engine.save_audit_heads()
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    engine.save_audit_heads()
    assert b'"account_id":"acme"' in os.read(reader, 10_000)
    engine.save_audit_heads()
    assert os.read(reader, 10_000) == b"", "nothing has changed"
    os.close(reader)


def test_a_saved_head_that_a_full_disk_has_cut_does_not_spoil_the_file(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "heads.jsonl"
    file.write_text('{"account_id":"acme","num')
    engine = Engine(database, Settings(audit_head_file=str(file)))
    engine.call(ALICE, CreateSession(session_id="a"))
    engine.save_audit_heads()
    result = verify(engine, heads=file)
    assert (result.problem, result.heads_checked) == (None, 1)


def test_denied_attempts_are_limited(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_DENIED_PER_USER", 5)
    engine = Engine(database)
    engine.call(ALICE, CreateSession(session_id="a"))
    for user in ("eve", "mallory"):
        for number in range(20):
            with pytest.raises(PermissionDeniedError):
                engine.call(Principal("acme", user, "user"), CreateUser(account_id="acme", user_id=f"u{number}"))
    denied = engine.call(ALICE, ListAudit(outcome="denied")).records
    assert sorted({record.user_id for record in denied}) == ["eve", "mallory"]
    assert len(denied) == 10
    assert verify(engine).is_intact


def test_wrong_keys_do_not_use_up_the_limits_of_denied_attempts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can send keys of made-up accounts, also of this one."""
    monkeypatch.setattr(audit_log, "MAX_DENIED", 20)
    engine = Engine(database)
    engine.call(ALICE, CreateSession(session_id="a"))
    for number in range(50):
        engine.audit_log.record_denied_key(f"made-up-{number}", "0123456789abcdef", "")
    for number in range(50):
        engine.audit_log.record_denied_key("acme", f"{number:016x}", "")
    with pytest.raises(PermissionDeniedError):
        engine.call(Principal("acme", "eve", "user"), CreateUser(account_id="acme", user_id="mallory"))
    denied = engine.call(ALICE, ListAudit(outcome="denied", limit=1000)).records
    assert [record.action for record in denied if record.user_id == "eve"] == ["CreateUser"]
    assert sum(record.action == "UseKey" for record in denied) == 20


def test_denied_attempts_in_one_account_do_not_use_up_the_limit_of_another(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "MAX_DENIED", 20)
    engine = Engine(database)
    for account in ("acme", "globex"):
        engine.call(Principal(account, "alice", "root"), CreateSession(session_id="a"))
    for account, attempts in (("globex", 50), ("acme", 1)):
        for number in range(attempts):
            with pytest.raises(PermissionDeniedError):
                engine.call(Principal(account, f"u{number}", "user"), ListAccounts())
    assert len(engine.call(ALICE, ListAudit(outcome="denied")).records) == 1


def test_what_is_done_to_a_session_of_another_names_its_owner(database: Database) -> None:
    engine = Engine(database)
    bob = Principal("acme", "bob", "user")
    engine.call(ALICE, CreateSession(session_id="plan"))
    for uri in ("viking://user/alice/sessions/plan/messages.jsonl", "viking://user/alice/sessions/none"):
        with pytest.raises(NotFoundError):
            engine.call(bob, ReadFile(uri=uri))
    engine.call(ALICE, ShareSession(session_id="plan", user_id="bob", rights=["read", "write"]))
    engine.call(bob, UpdateSession(session_id="plan", owner="alice", title="Plan B"))
    with pytest.raises(PermissionDeniedError):
        engine.call(bob, DeleteSession(session_id="plan", owner="alice"))
    with pytest.raises(NotFoundError):  # a file that is missing in a session that is open to the caller is not denied
        engine.call(bob, ReadFile(uri="viking://user/alice/sessions/plan/history"))
    records = engine.call(ALICE, ListAudit(user_id="bob")).records
    assert sorted((record.action, record.resource, record.outcome) for record in records) == [
        ("DeleteSession", "plan owner=alice", "denied"),
        ("ReadFile", "none owner=alice", "denied"),
        ("ReadFile", "plan owner=alice", "denied"),
        ("UpdateSession", "plan owner=alice", "done"),
    ]


def test_an_attempt_in_an_account_that_does_not_exist_is_not_recorded(database: Database) -> None:
    engine = Engine(database)
    with pytest.raises(PermissionDeniedError):
        engine.call(Principal("nowhere", "eve", "user"), ListAccounts())
    engine.audit_log.settle()
    assert database.read("nowhere", lambda tx: audit.page(tx, 10)) == []


def test_the_origin_of_a_call_is_recorded(database: Database) -> None:
    engine = Engine(database)
    call = engine.check(ALICE, CreateSession, {"session_id": "s"}, origin=Origin("192.0.2.7", "0123456789abcdef"))
    engine.prepare(call).run()
    (record,) = engine.call(ALICE, ListAudit(resource="s")).records
    assert (record.address, record.key_id, record.agent_id) == ("192.0.2.7", "0123456789abcdef", "default")


def test_an_open_is_recorded_once_an_hour(database: Database) -> None:
    now = [1_700_000_000_000_000]
    engine = Engine(database, clock=lambda: now[0])
    engine.call(ALICE, CreateSession(session_id="s"))
    for _ in range(3):
        for _ in range(5):
            engine.call(ALICE, GetSession(session_id="s"))
        now[0] += HOUR
    assert len(engine.call(ALICE, ListAudit(action="OpenSession")).records) == 3


def test_uses_at_the_same_time_are_one_line(database: Database) -> None:
    """All of them have read that the key, or the link, was not used in this hour."""
    engine = Engine(database)
    engine.call(ALICE, CreateSession(session_id="s"))
    for _ in range(5):
        engine.audit_log.record_key_use(ALICE, "0123456789abcdef", "", HOUR, is_first_in_hour=True)
        engine.audit_log.record_link_use(ALICE, "fedcba9876543210", "", HOUR, None)
    records = engine.call(ALICE, ListAudit(limit=100)).records
    assert sorted(record.action for record in records if record.action.startswith("Use")) == ["UseKey", "UseLink"]


def test_a_read_succeeds_if_it_cannot_be_recorded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(database)
    engine.call(ALICE, CreateSession(session_id="s"))

    def fail(*_args: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(database, "submit", fail)
    assert engine.call(ALICE, GetSession(session_id="s")).session_id == "s"


def test_a_filter_remembers_a_limited_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "MAX_KEYS", 100)
    hourly = HourlyFilter()
    assert sum(hourly.admits(number, 0) for number in range(1_000)) == 1_000
    assert len(hourly._seen) <= 100
    assert not hourly.admits(999, HOUR - 1)
    assert hourly.admits(999, HOUR)


def test_the_operators_denied_attempts_are_in_the_operators_audit(database: Database) -> None:
    engine = Engine(database)
    engine.audit_log.record_denied(Principal("_operator", "operator", "root"), "GetSession", {}, Origin())
    engine.audit_log.settle()
    records = database.read(EVERY_ACCOUNT, lambda tx: audit.page(tx, 10))
    assert [(record.action, record.outcome) for record in records] == [("GetSession", "denied")]


@pytest.mark.parametrize(
    "filter",
    [
        audit.Filter(),
        audit.Filter(resource="s"),
        audit.Filter(user_id="alice"),
        audit.Filter(action="OpenSession"),
        audit.Filter(outcome="denied"),
        audit.Filter(since=1, until=2 * DAY),
    ],
)
def test_a_page_is_read_in_the_order_of_an_index(tmp_path: Path, filter: audit.Filter) -> None:
    """Sorting would read all lines for each page. Lines that name a resource and more are few."""
    database = SqliteDatabase(str(tmp_path / "plan.db"))
    database.migrate(0)
    statements: list[Any] = []

    def explain(tx: Any) -> list[str]:
        recorder: Any = SimpleNamespace(account="acme", dialect=tx.dialect, all_of=statements.extend)
        with contextlib.suppress(TypeError):
            audit.page(recorder, 10, filter)
        sql, params = statements[0]
        return [str(row[3]) for row in tx.all(f"EXPLAIN QUERY PLAN {sql}", params)]

    plan = database.read("acme", explain)
    assert not [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN")], plan
    database.close()
