"""What a Database must do."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.errors import ConflictError, FailedPreconditionError
from holdfast.model.identity import Principal
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Database, Params, Reply, Row, Submission, Tx, in_transaction
from holdfast.store.tables import accounts, audit, messages
from holdfast.store.tables.lineage import LogRange

TEXT = '[{"type":"text","text":"Be brief."}]'
ACME = "acme"
ALICE = Principal(ACME, "alice")


def note(tx: Tx, id: str) -> None:
    audit.record(tx, id, ALICE, "note", id, 1)


def notes(database: Database) -> list[str]:
    return sorted(record.id for record in database.read(ACME, lambda tx: audit.page(tx, 100_000, None)))


def noting(id: str) -> Callable[[Tx], str]:
    def work(tx: Tx) -> str:
        note(tx, id)
        return id

    return work


class Replies:
    """Collects what comes back for work that was submitted."""

    def __init__(self, expected: int) -> None:
        self._found: dict[str, tuple[Any, BaseException | None]] = {}
        self._left = threading.Semaphore(0)
        self._expected = expected

    def of(self, name: str) -> Reply:
        def reply(outcome: Any, error: BaseException | None) -> None:
            self._found[name] = outcome, error
            self._left.release()

        return reply

    def all(self) -> dict[str, tuple[Any, BaseException | None]]:
        for _ in range(self._expected):
            assert self._left.acquire(timeout=60), "a reply is missing"
        return self._found


class Explained:
    """A transaction that tells how it would find rows instead of finding them."""

    def __init__(self, tx: Tx) -> None:
        self.account, self.dialect = tx.account, tx.dialect
        self.plan = ""
        self._tx = tx

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        explain = "EXPLAIN QUERY PLAN" if self.dialect.name == "sqlite" else "EXPLAIN"
        self.plan = str(self._tx.all(f"{explain} {sql}", params))
        return []


class StoreContract:
    """Needs the fixture `open_database`: a function that opens and migrates one and the same database, empty at first.

    It may be called any number of times; each is another user of that database.
    """

    @pytest.fixture
    def database(self, open_database: Callable[[], Database]) -> Database:
        return open_database()

    def test_what_was_written_is_read_back(self, database: Database) -> None:
        database.write(ACME, lambda tx: note(tx, "a"))
        assert notes(database) == ["a"]

    def test_a_write_returns_what_its_work_returns(self, database: Database) -> None:
        assert database.write(ACME, lambda tx: tx.one("SELECT 41 + 1")) == (42,)

    def test_a_read_returns_what_its_work_returns(self, database: Database) -> None:
        assert database.read(ACME, lambda tx: tx.all("SELECT 1 UNION SELECT 2 ORDER BY 1")) == [(1,), (2,)]

    def test_one_is_none_when_there_is_no_row(self, database: Database) -> None:
        assert database.read(ACME, lambda tx: tx.one("SELECT 1 WHERE 1 = 0")) is None

    def test_work_that_fails_leaves_nothing_behind(self, database: Database) -> None:
        def work(tx: Tx) -> None:
            note(tx, "a")
            raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            database.write(ACME, work)
        assert notes(database) == []

    def test_a_change_of_the_schema_that_fails_leaves_nothing_behind(self, database: Database) -> None:
        def work(tx: Tx) -> None:
            tx.execute("CREATE TABLE left_behind (x integer)")
            raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            database.write(EVERY_ACCOUNT, work)
        database.write(EVERY_ACCOUNT, lambda tx: tx.execute("CREATE TABLE left_behind (x integer)"))

    def test_the_database_works_on_after_a_failure(self, database: Database) -> None:
        with pytest.raises(ZeroDivisionError):
            database.write(ACME, lambda tx: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            database.read(ACME, lambda tx: 1 / 0)
        database.write(ACME, lambda tx: note(tx, "a"))
        assert notes(database) == ["a"]

    def test_work_that_is_submitted_is_done_and_replied_to_without_anyone_waiting(self, database: Database) -> None:
        names = [f"{n:04}" for n in range(300)]
        replies = Replies(len(names))
        for start in range(0, len(names), 7):
            database.submit([Submission(ACME, noting(name), replies.of(name)) for name in names[start : start + 7]])
        assert replies.all() == {name: (name, None) for name in names}
        assert notes(database) == names
        assert database.waiting() == 0

    def test_submitted_work_that_fails_leaves_its_neighbours_alone(self, database: Database) -> None:
        """Whether it fails before it has written anything or behind it."""

        def fails_late(tx: Tx) -> None:
            note(tx, "late")
            raise ConflictError("too late")

        def fails_early(_tx: Tx) -> None:
            raise ConflictError("too early")

        works = {"a": noting("a"), "early": fails_early, "b": noting("b"), "late": fails_late, "c": noting("c")}
        replies = Replies(len(works))
        database.submit([Submission(ACME, work, replies.of(name)) for name, work in works.items()])
        found = replies.all()
        assert {name: outcome for name, (outcome, _) in found.items() if outcome} == {"a": "a", "b": "b", "c": "c"}
        assert {name: str(error) for name, (_, error) in found.items() if error} == {
            "early": "too early",
            "late": "too late",
        }
        assert notes(database) == ["a", "b", "c"]

    def test_nothing_submitted_and_a_reply_that_fails_hold_up_nobody(self, database: Database) -> None:
        replies = Replies(2)

        def fails(outcome: Any, error: BaseException | None) -> None:
            replies.of("a")(outcome, error)
            raise ZeroDivisionError

        database.submit([])
        database.submit([Submission(ACME, noting("a"), fails)])
        database.submit([Submission(ACME, noting("b"), replies.of("b"))])
        assert replies.all() == {"a": ("a", None), "b": ("b", None)}
        assert notes(database) == ["a", "b"]

    def test_a_database_finishes_what_was_submitted_before_it_closes(
        self, open_database: Callable[[], Database]
    ) -> None:
        database = open_database()
        names = [f"{n:04}" for n in range(200)]
        replies = Replies(len(names))
        database.submit([Submission(ACME, noting(name), replies.of(name)) for name in names])
        database.close()
        assert replies.all() == {name: (name, None) for name in names}
        assert notes(open_database()) == names
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.submit([Submission(ACME, noting("x"), replies.of("x"))])

    def test_a_second_handle_sees_what_the_first_wrote(self, open_database: Callable[[], Database]) -> None:
        first, second = open_database(), open_database()
        first.write(ACME, lambda tx: note(tx, "a"))
        second.write(ACME, lambda tx: note(tx, "b"))
        assert notes(first) == notes(second) == ["a", "b"]

    def test_many_writers_lose_nothing(self, open_database: Callable[[], Database]) -> None:
        handles = [open_database(), open_database()]
        names = [f"{n:04}" for n in range(300)]
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda name: handles[int(name) % 2].write(ACME, lambda tx: note(tx, name)), names))
        assert notes(handles[0]) == names

    def test_a_failure_among_many_writers_harms_only_its_own_work(self, database: Database) -> None:
        """Even when it fails after it has written."""

        def work(name: str) -> str:
            def inside(tx: Tx) -> None:
                note(tx, name)
                if int(name) % 3 == 0:
                    raise ConflictError(name)

            try:
                database.write(ACME, inside)
            except ConflictError as error:
                return f"refused {error.message}"
            return "written"

        names = [f"{n:04}" for n in range(120)]
        with ThreadPoolExecutor(16) as threads:
            outcomes = dict(zip(names, threads.map(work, names), strict=True))
        for name, outcome in outcomes.items():
            assert outcome == (f"refused {name}" if int(name) % 3 == 0 else "written")
        assert notes(database) == [name for name in names if int(name) % 3]

    def test_a_read_sees_one_moment(self, open_database: Callable[[], Database]) -> None:
        """Something written while a read is under way is not in it."""
        reader, writer = open_database(), open_database()
        if getattr(reader, "file", "") == ":memory:":
            pytest.skip("one connection has one user at a time")
        read, written = threading.Event(), threading.Event()

        def work(tx: Tx) -> tuple[int, int]:
            before = len(audit.page(tx, 10, None))
            read.set()
            assert written.wait(10)
            return before, len(audit.page(tx, 10, None))

        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(reader.read, ACME, work)
            assert read.wait(10)
            writer.write(ACME, lambda tx: note(tx, "a"))
            written.set()
            assert reading.result(10) == (0, 0)

    def test_a_read_cannot_write(self, database: Database) -> None:
        with pytest.raises(Exception, match=r"(?i)read-?only|readonly"):
            database.read(ACME, lambda tx: note(tx, "a"))
        assert notes(database) == []

    def test_work_knows_that_it_is_inside_a_transaction(self, database: Database) -> None:
        assert database.write(ACME, lambda tx: in_transaction())
        assert database.read(ACME, lambda tx: in_transaction())
        assert not in_transaction()

    def test_another_account_sees_nothing(self, database: Database) -> None:
        database.write(ACME, lambda tx: note(tx, "a"))
        assert database.read("other", lambda tx: audit.page(tx, 10, None)) == []

    def test_the_operator_sees_every_account(self, database: Database) -> None:
        for name in (ACME, "other"):
            database.write(name, lambda tx: accounts.insert(tx, tx.account, 1))
        found = database.read(EVERY_ACCOUNT, accounts.every)
        assert [account.account_id for account in found] == [ACME, "other"]

    def test_the_latest_system_message_is_found_without_reading_the_others(self, database: Database) -> None:
        def fill(tx: Tx) -> None:
            for seq in range(1, 2_001):
                role, parts = ("system", TEXT) if seq == 7 else ("user", "[]")
                row = (ACME, 1, seq, f"m{seq}", 0, role, parts, 0, 0, "u", 0, 0)
                tx.execute(
                    "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through,"
                    " author, created_at, added_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            tx.execute("ANALYZE messages")

        def explain(tx: Tx) -> str:
            explained: Any = Explained(tx)
            messages.latest_system(explained, [LogRange(1, 1, 2_000)])
            return str(explained.plan)

        assert "messages_of_system" in database.read(ACME, explain)
        database.write(ACME, fill)
        assert "messages_of_system" in database.read(ACME, explain)
        found = database.read(ACME, lambda tx: messages.latest_system(tx, [LogRange(1, 1, 2_000)]))
        assert found is not None
        assert found.seq == 7

    def test_migrating_again_changes_nothing(self, database: Database) -> None:
        database.write(ACME, lambda tx: note(tx, "a"))
        database.migrate(2)
        assert notes(database) == ["a"]

    def test_many_may_migrate_an_empty_database_at_once(self, open_database: Callable[[], Database]) -> None:
        with ThreadPoolExecutor(4) as threads:
            handles = list(threads.map(lambda _: open_database(), range(4)))
        counted = handles[0].read(EVERY_ACCOUNT, lambda tx: tx.one("SELECT COUNT(*) FROM schema_migrations"))
        assert counted == (len(migrations.shipped(_dialect(handles[0]))),)

    def test_a_database_of_a_later_version_is_refused(self, database: Database) -> None:
        later = migrations.Migration(9999, "9999_later", "SELECT 1")
        database.write(EVERY_ACCOUNT, lambda tx: migrations.record(tx, later, 1))
        with pytest.raises(FailedPreconditionError, match=r"9999_later.*upgrade holdfast"):
            database.migrate(2)

    def test_a_migration_that_changed_is_refused(self, database: Database) -> None:
        database.write(EVERY_ACCOUNT, lambda tx: tx.execute("UPDATE schema_migrations SET checksum = 'x'"))
        with pytest.raises(FailedPreconditionError, match="another content"):
            database.migrate(2)

    def test_closing_twice_does_no_harm(self, database: Database) -> None:
        database.write(ACME, lambda tx: note(tx, "a"))
        database.close()
        database.close()

    def test_a_closed_database_says_so(self, database: Database) -> None:
        database.close()
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.write(ACME, lambda tx: note(tx, "a"))
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.read(ACME, lambda tx: tx.one("SELECT 1"))

    def test_what_is_running_when_it_is_closed_is_finished(self, open_database: Callable[[], Database]) -> None:
        database = open_database()
        started, go_on = threading.Event(), threading.Event()

        def work(tx: Tx) -> None:
            started.set()
            assert go_on.wait(10)
            note(tx, "a")

        with ThreadPoolExecutor(2) as threads:
            writing = threads.submit(database.write, ACME, work)
            assert started.wait(10)
            closing = threads.submit(database.close)
            go_on.set()
            writing.result(10)
            closing.result(10)
        assert notes(open_database()) == ["a"]


def _dialect(database: Database) -> str:
    return database.read(EVERY_ACCOUNT, lambda tx: tx.dialect.name)
