"""The contract of a Database."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from holdfast.errors import ConflictError, FailedPreconditionError
from holdfast.store import migrations
from holdfast.store.access import accounts, audit
from holdfast.store.database import EVERY_ACCOUNT, Database, Params, Row, Tx, in_transaction, read_time
from holdfast.store.tables import messages
from holdfast.store.tables.lineage import LogRange
from holdfast.testing.contract.submissions import ACME, SubmissionContract, insert_record, record_ids

TEXT = '[{"type":"text","text":"Be brief."}]'


class ExplainingTx:
    """A transaction that records the plan of a query instead of running it."""

    def __init__(self, tx: Tx) -> None:
        self.account, self.dialect = tx.account, tx.dialect
        self.plan = ""
        self._tx = tx

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        explain = "EXPLAIN QUERY PLAN" if self.dialect.name == "sqlite" else "EXPLAIN"
        self.plan = str(self._tx.all(f"{explain} {sql}", params))
        return []


class StoreContract(SubmissionContract):
    """The tests that every database driver passes.

    They need the fixture `open_database`: a function that opens and migrates the same, initially empty database. Each
    call returns another handle of that database.
    """

    @pytest.fixture
    def database(self, open_database: Callable[[], Database]) -> Database:
        return open_database()

    def test_a_read_returns_written_rows(self, database: Database) -> None:
        database.write(ACME, lambda tx: insert_record(tx, "a"))
        assert record_ids(database) == ["a"]

    def test_a_write_returns_the_result_of_its_work(self, database: Database) -> None:
        assert database.write(ACME, lambda tx: tx.one("SELECT 41 + 1")) == (42,)

    def test_a_read_returns_the_result_of_its_work(self, database: Database) -> None:
        assert database.read(ACME, lambda tx: tx.all("SELECT 1 UNION SELECT 2 ORDER BY 1")) == [(1,), (2,)]

    def test_one_is_none_when_there_is_no_row(self, database: Database) -> None:
        assert database.read(ACME, lambda tx: tx.one("SELECT 1 WHERE 1 = 0")) is None

    def test_statements_run_together_in_order_and_each_has_its_rows(self, database: Database) -> None:
        def work(tx: Tx) -> list[list[Row]]:
            insert_record(tx, "a")
            find = "SELECT id FROM audit_unsealed WHERE account_id = ? AND id = ?"
            return tx.all_of([(find, (ACME, "a")), (find, (ACME, "b")), ("SELECT 1 UNION SELECT 2 ORDER BY 1", ())])

        assert database.write(ACME, work) == [[("a",)], [], [(1,), (2,)]]

    def test_a_script_is_part_of_its_transaction(self, database: Database) -> None:
        def work(tx: Tx) -> None:
            insert_record(tx, "a")
            tx.run_script("CREATE TABLE first (x integer); CREATE TABLE second (x integer)")
            tx.execute("INSERT INTO second (x) VALUES (?)", (1,))
            if tx.all("SELECT x FROM second") == [(1,)]:
                raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            database.write(EVERY_ACCOUNT, work)
        assert record_ids(database) == []
        database.write(EVERY_ACCOUNT, lambda tx: tx.execute("CREATE TABLE second (x integer)"))

    def test_many_statements_without_a_read_all_run(self, database: Database) -> None:
        names = [f"{n:04}" for n in range(2_000)]

        def work(tx: Tx) -> None:
            for name in names:
                insert_record(tx, name)

        database.write(ACME, work)
        assert record_ids(database) == names

    def test_large_values_are_stored_and_read(self, database: Database) -> None:
        texts = [character * 3_000_000 for character in "aé"]
        sent = ", ".join(["CAST(? AS text)"] * 2)
        assert database.read(ACME, lambda tx: tx.all(f"SELECT {sent}", texts)) == [tuple(texts)]

    @pytest.mark.parametrize("statements_after", [0, 1])
    def test_a_write_with_a_failed_statement_writes_nothing(self, database: Database, statements_after: int) -> None:
        """The error of the statement may be raised by it, by a later statement or by the commit."""

        def work(tx: Tx) -> None:
            for name in ["a", "b", "a", "c"][: 3 + statements_after]:
                insert_record(tx, name)

        with pytest.raises(Exception, match=r"(?i)unique"):
            database.write(ACME, work)
        assert record_ids(database) == []
        database.write(ACME, lambda tx: insert_record(tx, "d"))
        assert record_ids(database) == ["d"]

    def test_failed_work_is_rolled_back(self, database: Database) -> None:
        def work(tx: Tx) -> None:
            insert_record(tx, "a")
            raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            database.write(ACME, work)
        assert record_ids(database) == []

    def test_a_failed_schema_change_is_rolled_back(self, database: Database) -> None:
        def work(tx: Tx) -> None:
            tx.execute("CREATE TABLE unwanted (x integer)")
            raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            database.write(EVERY_ACCOUNT, work)
        database.write(EVERY_ACCOUNT, lambda tx: tx.execute("CREATE TABLE unwanted (x integer)"))

    def test_the_database_is_usable_after_a_failure(self, database: Database) -> None:
        with pytest.raises(ZeroDivisionError):
            database.write(ACME, lambda tx: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            database.read(ACME, lambda tx: 1 / 0)
        database.write(ACME, lambda tx: insert_record(tx, "a"))
        assert record_ids(database) == ["a"]

    def test_a_second_handle_reads_what_the_first_wrote(self, open_database: Callable[[], Database]) -> None:
        first, second = open_database(), open_database()
        first.write(ACME, lambda tx: insert_record(tx, "a"))
        second.write(ACME, lambda tx: insert_record(tx, "b"))
        assert record_ids(first) == record_ids(second) == ["a", "b"]

    def test_concurrent_writes_are_all_kept(self, open_database: Callable[[], Database]) -> None:
        handles = [open_database(), open_database()]
        names = [f"{n:04}" for n in range(300)]
        with ThreadPoolExecutor(16) as threads:
            list(
                threads.map(lambda name: handles[int(name) % 2].write(ACME, lambda tx: insert_record(tx, name)), names)
            )
        assert record_ids(handles[0]) == names

    def test_a_failure_among_concurrent_writes_affects_only_its_own_work(self, database: Database) -> None:
        """The failing work has written rows before it fails."""

        def work(name: str) -> str:
            def insert_and_maybe_fail(tx: Tx) -> None:
                insert_record(tx, name)
                if int(name) % 3 == 0:
                    raise ConflictError(name)

            try:
                database.write(ACME, insert_and_maybe_fail)
            except ConflictError as error:
                return f"failed {error.message}"
            return "written"

        names = [f"{n:04}" for n in range(120)]
        with ThreadPoolExecutor(16) as threads:
            outcomes = dict(zip(names, threads.map(work, names), strict=True))
        for name, outcome in outcomes.items():
            assert outcome == (f"failed {name}" if int(name) % 3 == 0 else "written")
        assert record_ids(database) == [name for name in names if int(name) % 3]

    def test_a_read_sees_a_consistent_snapshot(self, open_database: Callable[[], Database]) -> None:
        """Rows that are written during the read are not visible in it."""
        reader, writer = open_database(), open_database()
        if getattr(reader, "file", "") == ":memory:":
            pytest.skip("a database in memory has only one connection")
        read, written = threading.Event(), threading.Event()

        def work(tx: Tx) -> tuple[int, int]:
            before = len(audit.page(tx, 10))
            read.set()
            assert written.wait(10)
            return before, len(audit.page(tx, 10))

        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(reader.read, ACME, work)
            assert read.wait(10)
            writer.write(ACME, lambda tx: insert_record(tx, "a"))
            written.set()
            assert reading.result(10) == (0, 0)

    def test_a_read_cannot_write(self, database: Database) -> None:
        with pytest.raises(Exception, match=r"(?i)read-?only|readonly"):
            database.read(ACME, lambda tx: insert_record(tx, "a"))
        assert record_ids(database) == []

    def test_in_transaction_is_true_inside_work_only(self, database: Database) -> None:
        assert database.write(ACME, lambda tx: in_transaction())
        assert database.read(ACME, lambda tx: in_transaction())
        assert not in_transaction()

    def test_an_account_cannot_read_rows_of_another(self, database: Database) -> None:
        database.write(ACME, lambda tx: insert_record(tx, "a"))
        assert database.read("other", lambda tx: audit.page(tx, 10)) == []

    def test_the_operator_reads_all_accounts(self, database: Database) -> None:
        for name in (ACME, "other"):
            database.write(name, lambda tx: accounts.insert(tx, tx.account, 1))
        found = database.read(EVERY_ACCOUNT, accounts.list_accounts)
        assert [account.account_id for account in found] == [ACME, "other"]

    def test_the_latest_system_message_is_found_with_its_index(self, database: Database) -> None:
        def fill(tx: Tx) -> None:
            for seq in range(1, 2_001):
                role, parts = ("system", TEXT) if seq == 7 else ("user", "[]")
                row = (ACME, 1, seq, f"m{seq}", 0, role, parts, 0, 0, "u", 0, 0)
                tx.execute(
                    "INSERT INTO messages (account_id, log_id, seq, id, id_given, role, parts, tokens, tokens_through,"
                    " author, created_at, added_at, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                    row,
                )
            tx.execute("ANALYZE messages")

        def explain(tx: Tx) -> str:
            explaining: Any = ExplainingTx(tx)
            messages.latest_system_message(explaining, [LogRange(1, 1, 2_000)])
            return str(explaining.plan)

        assert "messages_of_system" in database.read(ACME, explain)
        database.write(ACME, fill)
        assert "messages_of_system" in database.read(ACME, explain)
        found = database.read(ACME, lambda tx: messages.latest_system_message(tx, [LogRange(1, 1, 2_000)]))
        assert found is not None
        assert found.seq == 7

    def test_migrating_again_changes_nothing(self, database: Database) -> None:
        database.write(ACME, lambda tx: insert_record(tx, "a"))
        database.migrate(2)
        assert record_ids(database) == ["a"]

    def test_concurrent_migrations_of_an_empty_database_succeed(self, open_database: Callable[[], Database]) -> None:
        with ThreadPoolExecutor(4) as threads:
            handles = list(threads.map(lambda _: open_database(), range(4)))
        counted = handles[0].read(EVERY_ACCOUNT, lambda tx: tx.one("SELECT COUNT(*) FROM schema_migrations"))
        assert counted == (len(migrations.list_available(_dialect(handles[0]))),)

    def test_a_database_of_a_later_version_is_rejected(self, database: Database) -> None:
        later = migrations.Migration(9999, "9999_later", "SELECT 1")
        database.write(EVERY_ACCOUNT, lambda tx: migrations.record(tx, later, 1))
        with pytest.raises(FailedPreconditionError, match=r"9999_later.*upgrade holdfast"):
            database.migrate(2)

    def test_a_changed_migration_is_rejected(self, database: Database) -> None:
        database.write(EVERY_ACCOUNT, lambda tx: tx.execute("UPDATE schema_migrations SET checksum = 'x'"))
        with pytest.raises(FailedPreconditionError, match="content different"):
            database.migrate(2)

    def test_all_processes_have_the_same_time(self, open_database: Callable[[], Database]) -> None:
        """The other one is opened with another system time."""
        one, other = open_database(), open_database()
        other.migrate(1_900_000_000_000_000)
        times = [database.read(EVERY_ACCOUNT, read_time) for database in (one, other, one, other)]
        assert times == sorted(times)
        assert times[-1] - times[0] < 10_000_000
        one.store_time(0)
        assert times[-1] <= one.read(EVERY_ACCOUNT, read_time) < times[0] + 10_000_000

    def test_closing_twice_is_allowed(self, database: Database) -> None:
        database.write(ACME, lambda tx: insert_record(tx, "a"))
        database.close()
        database.close()

    def test_a_closed_database_raises_an_error(self, database: Database) -> None:
        database.close()
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.write(ACME, lambda tx: insert_record(tx, "a"))
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.read(ACME, lambda tx: tx.one("SELECT 1"))

    def test_closing_waits_for_a_running_write(self, open_database: Callable[[], Database]) -> None:
        database = open_database()
        started, resume = threading.Event(), threading.Event()

        def work(tx: Tx) -> None:
            started.set()
            assert resume.wait(10)
            insert_record(tx, "a")

        with ThreadPoolExecutor(2) as threads:
            writing = threads.submit(database.write, ACME, work)
            assert started.wait(10)
            closing = threads.submit(database.close)
            resume.set()
            writing.result(10)
            closing.result(10)
        assert record_ids(open_database()) == ["a"]

    @pytest.mark.parametrize(
        ("max_bytes", "count", "has_more"), [(5, 1, True), (10, 1, True), (29, 2, True), (60, 3, False)]
    )
    def test_a_query_returns_the_rows_that_fit_in_a_number_of_bytes(
        self, database: Database, max_bytes: int, count: int, *, has_more: bool
    ) -> None:
        rows = "SELECT 2 AS n, 19 AS bytes UNION ALL SELECT 1, 10 UNION ALL SELECT 3, 31 ORDER BY n"
        found = database.read(ACME, lambda tx: tx.all_within(rows, (), max_bytes, "n"))
        assert found == ([(1, 10), (2, 19), (3, 31)][:count], has_more)

    def test_a_query_that_ended_early_does_not_hide_later_writes(self, database: Database) -> None:
        transactions: list[Tx] = []  # an error may keep a transaction for a while

        def read_first(tx: Tx) -> None:
            transactions.append(tx)
            tx.all_within(
                "SELECT id, 10 AS bytes FROM audit_unsealed WHERE account_id = ? ORDER BY id", (ACME,), 10, "id"
            )

        for id_ in ("a", "b"):
            database.write(ACME, partial(insert_record, id=id_))
        database.read(ACME, read_first)
        database.write(ACME, lambda tx: insert_record(tx, "c"))
        assert record_ids(database) == ["a", "b", "c"]

    def test_a_query_without_rows_returns_none_within_any_number_of_bytes(self, database: Database) -> None:
        rows = "SELECT n, n AS bytes FROM (SELECT 1 AS n) AS one WHERE n > ? ORDER BY n"
        assert database.read(ACME, lambda tx: tx.all_within(rows, (1,), 10, "n")) == ([], False)
        assert database.read(ACME, lambda tx: tx.all_within(rows, (0,), 10, "n")) == ([(1, 1)], False)


def _dialect(database: Database) -> str:
    return database.read(EVERY_ACCOUNT, lambda tx: tx.dialect.name)
