"""Deletions of accounts and sessions while rows of a large session are being deleted and others write and export."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Client, Settings
from holdfast.composition import open_database
from holdfast.errors import HoldfastError, PermissionDeniedError
from holdfast.exchange import export_sessions
from holdfast.store.database import EVERY_ACCOUNT, Tx
from holdfast.testing.faults.watching import wait_for

BATCHES = 13
"""Batches of 100 messages. A session with more than 1,000 messages is deleted by a task."""
NO_WORKERS = Settings(worker_threads=0)
LIST_TABLES_WITH_ACCOUNT = {
    "sqlite": "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND c.name = 'account_id'",
    "postgres": "SELECT table_name FROM information_schema.columns"
    " WHERE column_name = 'account_id' AND table_schema = current_schema()",
}


def add_large_session(client: Client, session_id: str) -> None:
    for _ in range(BATCHES):
        client.batch_add_messages(session_id, [{"role": "user", "content": "limpet"}] * 100)


def count_rows(target: str, account: str) -> dict[str, int]:
    """Count the rows of an account in each table that has any."""

    def count(tx: Tx) -> dict[str, int]:
        tables = [str(row[0]) for row in tx.all(LIST_TABLES_WITH_ACCOUNT[tx.dialect.name])]
        counts = {table: tx.one(f"SELECT COUNT(*) FROM {table} WHERE account_id = ?", (account,)) for table in tables}
        assert len(counts) > 10
        return {table: row[0] for table, row in counts.items() if row is not None and row[0]}

    database = open_database(target, NO_WORKERS)
    try:
        return database.read(EVERY_ACCOUNT, count)
    finally:
        database.close()


class Appender(threading.Thread):
    """Appends to one session of an account until it is stopped or an append is rejected."""

    def __init__(self, target: str, account: str) -> None:
        super().__init__()
        self._target = target
        self._account = account
        self.stop = threading.Event()
        self.acknowledged = 0
        self.error: HoldfastError | None = None

    def run(self) -> None:
        try:
            with holdfast.connect(self._target, account=self._account, role="admin", settings=NO_WORKERS) as client:
                while not self.stop.is_set():
                    client.add_message("appended", "user", f"message {self.acknowledged + 1}")
                    self.acknowledged += 1
        except HoldfastError as error:
            self.error = error


def test_an_account_is_deleted_while_its_large_session_is_being_deleted_under_load(target: str) -> None:
    with ExitStack() as stack:
        operator = stack.enter_context(holdfast.connect(target, account="kept", settings=Settings(worker_threads=2)))
        clients = {
            account: stack.enter_context(holdfast.connect(target, account=account, settings=NO_WORKERS))
            for account in ("deleted", "kept")
        }
        for client in clients.values():
            add_large_session(client, "large")
            client.create_session("appended")
        appenders = {account: Appender(target, account) for account in clients}
        for appender in appenders.values():
            appender.start()
            stack.callback(appender.join)
            stack.callback(appender.stop.set)
        wait_for(lambda: all(appender.acknowledged > 5 for appender in appenders.values()))
        clients["deleted"].delete_session("large")
        operator.delete_session("large")  # it wakes the workers of this client, which run both deletions
        operator.admin.delete_account("deleted")
        appenders["deleted"].join(60)
        assert isinstance(appenders["deleted"].error, PermissionDeniedError)
        wait_for(lambda: [task.status for task in clients["kept"].list_tasks()] == ["completed"])
        appenders["kept"].stop.set()
        appenders["kept"].join(60)
        assert appenders["kept"].error is None
        assert clients["kept"].get_session("appended").total_message_count == appenders["kept"].acknowledged
        assert [account.account_id for account in operator.admin.list_accounts()] == ["kept"]
    assert count_rows(target, "deleted") == {}
    assert count_rows(target, "kept")["messages"] == appenders["kept"].acknowledged


def test_a_worker_continues_after_the_account_of_its_deletion_was_deleted(target: str) -> None:
    with holdfast.connect(target, account="deleted", settings=NO_WORKERS) as client:
        add_large_session(client, "large")
        client.delete_session("large")
        assert client.list_tasks()[0].status == "pending"
    with holdfast.connect(target, account="kept", settings=Settings(worker_threads=1)) as operator:
        operator.admin.delete_account("deleted")
        add_large_session(operator, "large")
        operator.delete_session("large")
        wait_for(lambda: [task.status for task in operator.list_tasks()] == ["completed"])
    assert count_rows(target, "deleted") == {}


class DeletingTransport:
    """A transport that deletes a session before the call with the given number."""

    def __init__(self, client: Client, number: int, delete: Callable[[], None]) -> None:
        self._inner = client._transport
        self._number = number
        self._delete = delete
        self.calls = 0

    def call(self, op: Any) -> Any:
        self.calls += 1
        if self.calls == self._number:
            self._delete()
        return self._inner.call(op)

    def back_up(self, target: Path, *, overwrite: bool) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.mark.rounds
def test_an_export_has_all_of_a_session_or_nothing_if_the_session_is_deleted_before_any_call(
    target: str, tmp_path: Path, *, is_soak: bool
) -> None:
    """The rest of its rows is deleted while the export runs. Its fork keeps the messages that they share."""
    states: set[str] = set()
    with holdfast.connect(target, settings=NO_WORKERS) as client:
        number, calls = 1, 1
        while number <= calls:
            add_large_session(client, "large")
            client.fork_session("large", at=1_100, new_session_id="fork")

            def delete() -> None:
                client.delete_session("large")
                with holdfast.connect(target, settings=Settings(worker_threads=1)) as worker:
                    wait_for(lambda: not worker.list_tasks(status="pending"))

            transport = DeletingTransport(client, number, delete)
            folder = tmp_path / f"out{number}"
            report = {row.session_id: row for row in export_sessions(Client(transport), folder).sessions}
            calls = transport.calls
            assert (report["fork"].state, report["fork"].messages) == ("exported", 1_100)
            exported = folder / "user/default/sessions/large/messages.jsonl"
            state = report["large"].state if "large" in report else "not listed"
            states.add(state)
            assert exported.exists() == (state == "exported")
            if state == "exported":
                assert len(exported.read_bytes().splitlines()) == 100 * BATCHES
            for row in client.list_sessions():
                client.delete_session(row.session_id)
            number += 1 if is_soak else 4
    assert {"gone", "exported"} <= states
