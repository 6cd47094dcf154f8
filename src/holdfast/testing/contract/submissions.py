"""The contract of submitted writes, which a server uses to write for many callers."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import ConflictError, FailedPreconditionError
from holdfast.store.access import accounts, audit
from holdfast.store.database import Database, ReplyCallback, Submission, Tx

ACME = "acme"


def insert_record(tx: Tx, id: str, resource: str = "") -> None:
    """Insert a row: an audit line that is not sealed."""
    tx.execute(
        "INSERT INTO audit_unsealed (account_id, id, at, user_id, role, action, resource)"
        " VALUES (?, ?, 1, 'alice', 'user', 'test', ?)",
        (tx.account, id, resource),
    )


def record_ids(database: Database) -> list[str]:
    return sorted(record.id for record in database.read(ACME, lambda tx: audit.page(tx, 100_000)))


def make_insert(id: str) -> Callable[[Tx], str]:
    def work(tx: Tx) -> str:
        insert_record(tx, id)
        return id

    return work


class Replies:
    """Collects the replies to submitted work."""

    def __init__(self, expected: int) -> None:
        self._replies: dict[str, tuple[Any, BaseException | None]] = {}
        self._received = threading.Semaphore(0)
        self._expected = expected

    def callback(self, name: str) -> ReplyCallback:
        def reply(outcome: Any, error: BaseException | None) -> None:
            self._replies[name] = outcome, error
            self._received.release()

        return reply

    def wait_for_all(self) -> dict[str, tuple[Any, BaseException | None]]:
        for _ in range(self._expected):
            assert self._received.acquire(timeout=60), "a reply is missing"
        return self._replies


class SubmissionContract:
    """The tests of `Database.submit`. They are part of `StoreContract`."""

    def test_submitted_work_is_committed_and_each_callback_is_called(self, database: Database) -> None:
        names = [f"{n:04}" for n in range(300)]
        replies = Replies(len(names))
        for start in range(0, len(names), 7):
            database.submit(
                [Submission(ACME, make_insert(name), replies.callback(name)) for name in names[start : start + 7]]
            )
        assert replies.wait_for_all() == {name: (name, None) for name in names}
        assert record_ids(database) == names
        assert database.count_waiting_writes() == 0

    def test_failed_submitted_work_does_not_affect_other_work(self, database: Database) -> None:
        """Work may fail before its first write or after it."""

        def fails_late(tx: Tx) -> None:
            insert_record(tx, "late")
            raise ConflictError("too late")

        def fails_early(_tx: Tx) -> None:
            raise ConflictError("too early")

        works = {
            "a": make_insert("a"),
            "early": fails_early,
            "b": make_insert("b"),
            "late": fails_late,
            "c": make_insert("c"),
        }
        replies = Replies(len(works))
        database.submit([Submission(ACME, work, replies.callback(name)) for name, work in works.items()])
        found = replies.wait_for_all()
        assert {name: outcome for name, (outcome, _) in found.items() if outcome} == {"a": "a", "b": "b", "c": "c"}
        assert {name: str(error) for name, (_, error) in found.items() if error} == {
            "early": "too early",
            "late": "too late",
        }
        assert record_ids(database) == ["a", "b", "c"]

    def test_submitted_work_with_a_failed_statement_does_not_affect_other_work(self, database: Database) -> None:
        def inserts_twice(tx: Tx) -> None:
            insert_record(tx, "twice")
            insert_record(tx, "twice")

        works = {"a": make_insert("a"), "twice": inserts_twice, "b": make_insert("b")}
        replies = Replies(len(works))
        database.submit([Submission(ACME, work, replies.callback(name)) for name, work in works.items()])
        found = replies.wait_for_all()
        assert (found["a"], found["b"]) == (("a", None), ("b", None))
        assert found["twice"][0] is None
        assert "unique" in str(found["twice"][1]).lower()
        assert record_ids(database) == ["a", "b"]

    def test_submitted_work_of_several_accounts_writes_to_its_own(self, database: Database) -> None:
        def insert_own(tx: Tx) -> int:
            insert_record(tx, f"by-{tx.account}")
            return len(audit.page(tx, 10))

        names = [ACME, "other", ACME + "2", "other"]
        replies = Replies(len(names))
        database.submit(
            [Submission(name, insert_own, replies.callback(f"{n}")) for n, name in enumerate(names) if n < 3]
            + [Submission("other", lambda tx: len(audit.page(tx, 10)), replies.callback("3"))]
        )
        assert {name: outcome for name, (outcome, _) in replies.wait_for_all().items()} == dict.fromkeys("0123", 1)
        for name in set(names):
            found = database.read(name, lambda tx: audit.page(tx, 10))
            assert [record.id for record in found] == [f"by-{name}"]

    def test_submitted_work_of_several_accounts_gets_the_results_of_its_own_reads(self, database: Database) -> None:
        names = {f"account{number % 4}-{number:02}": f"account{number % 4}" for number in range(24)}
        for account in set(names.values()):
            database.write(account, lambda tx: accounts.insert(tx, tx.account, 1))

        def read_and_insert(name: str) -> Callable[[Tx], tuple[Any, ...]]:
            def work(tx: Tx) -> tuple[Any, ...]:
                tx.limit_to(name)
                found, own_name = tx.all_of(
                    [("SELECT account_id FROM accounts WHERE account_id = ?", (tx.account,)), ("SELECT ?", (name,))]
                )
                (row,) = tx.all("SELECT ?, account_id FROM accounts WHERE account_id = ?", (name, tx.account))
                insert_record(tx, name, row[0])
                return (*found[0], *own_name[0], *row)

            return work

        replies = Replies(len(names))
        database.submit(
            [Submission(account, read_and_insert(name), replies.callback(name)) for name, account in names.items()]
        )
        assert replies.wait_for_all() == {
            name: ((account, name, name, account), None) for name, account in names.items()
        }
        for account in set(names.values()):
            stored = database.read(account, lambda tx: audit.page(tx, 100))
            assert sorted(record.id for record in stored) == [name for name, owner in names.items() if owner == account]

    def test_submitted_work_of_any_scope_sees_earlier_writes_of_its_scope(self, database: Database) -> None:
        """Each work counts the records of its scope and adds one, as an append does with the messages of a session."""

        def count_and_insert(scope: str, number: int, *, fails: bool) -> Callable[[Tx], int]:
            def work(tx: Tx) -> int:
                tx.limit_to(scope)
                query = "SELECT COUNT(*) FROM audit_unsealed WHERE account_id = ? AND resource = ?"
                found = tx.all(query, (ACME, scope)) + tx.all(query, (ACME, "none"))
                insert_record(tx, f"{scope}-{number}", scope)
                if fails:
                    raise ConflictError(f"{scope}-{number}")
                return int(found[0][0] + found[1][0])

            return work

        works = {
            f"{scope}-{number}": count_and_insert(scope, number, fails=number == 1)
            for number in range(4)
            for scope in (f"{n:02}" for n in range(100))
        }
        replies = Replies(len(works))
        database.submit([Submission(ACME, work, replies.callback(name)) for name, work in works.items()])
        found = replies.wait_for_all()
        assert {str(error) for _, error in found.values() if error} == {f"{n:02}-1" for n in range(100)}
        for scope in (f"{n:02}" for n in range(100)):
            assert sorted(found[f"{scope}-{number}"][0] for number in (0, 2, 3)) == [0, 1, 2]
        assert record_ids(database) == sorted(name for name in works if not name.endswith("-1"))

    def test_an_empty_submission_and_a_failing_callback_do_not_block_other_work(self, database: Database) -> None:
        replies = Replies(2)

        def fails(outcome: Any, error: BaseException | None) -> None:
            replies.callback("a")(outcome, error)
            raise ZeroDivisionError

        database.submit([])
        database.submit([Submission(ACME, make_insert("a"), fails)])
        database.submit([Submission(ACME, make_insert("b"), replies.callback("b"))])
        assert replies.wait_for_all() == {"a": ("a", None), "b": ("b", None)}
        assert record_ids(database) == ["a", "b"]

    def test_closing_finishes_submitted_work(self, open_database: Callable[[], Database]) -> None:
        database = open_database()
        names = [f"{n:04}" for n in range(200)]
        replies = Replies(len(names))
        database.submit([Submission(ACME, make_insert(name), replies.callback(name)) for name in names])
        database.close()
        assert replies.wait_for_all() == {name: (name, None) for name in names}
        assert record_ids(open_database()) == names
        with pytest.raises(FailedPreconditionError, match="closed"):
            database.submit([Submission(ACME, make_insert("x"), replies.callback("x"))])
