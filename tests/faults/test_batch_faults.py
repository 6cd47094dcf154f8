"""Batches of submitted writes on PostgreSQL whose connection is cut, or whose server is killed."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from holdfast.composition import open_database, resolve_target
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import ConflictError, UnavailableError
from holdfast.model.identity import Principal
from holdfast.model.messages import Appended
from holdfast.ops.commits import CommitSession
from holdfast.ops.sessions import AddMessage, AddMessages, GetMessages
from holdfast.testing.faults.proxy import Side, nth_message, proxy_to
from holdfast.testing.postgres import PostgresServer, postgres_server

WAIT_SECONDS = 60
ACCOUNTS = ("acme", "rival", "third")
SETTINGS = Settings(worker_threads=0)


class Write(msgspec.Struct, frozen=True):
    """A write of a batch. `text` is in each message that it adds, and in no other."""

    account: str
    text: str
    operation: type[Any]
    fields: dict[str, Any]


def append(account: str, session: str, text: str, **fields: Any) -> Write:
    return Write(account, text, AddMessage, {"session_id": session, "role": "user", "content": text, **fields})


def batch(round: int) -> list[Write]:
    """Writes of three accounts: to the same and to different sessions, old and new, some of which fail."""
    name = f"r{round}"
    several = {"session_id": "chat", "messages": [{"role": "user", "content": f"{name}-several"}] * 3}
    return [
        *(append(account, "chat", f"{name}-{account}") for account in ACCOUNTS),
        *(append("acme", f"chat-{number}", f"{name}-{number}") for number in range(4)),
        append("rival", f"new-{name}", f"{name}-new"),
        append("rival", f"new-{name}", f"{name}-newer"),
        append("acme", "chat", f"{name}-keyed", idempotency_key=f"{name}-key"),
        append("acme", "chat", f"{name}-keyed", idempotency_key=f"{name}-key"),
        append("third", "chat", f"{name}-conflict", expected_seq=1_000_000),
        Write("third", f"{name}-several", AddMessages, several),
        Write("acme", "", CommitSession, {"session_id": "chat-0"}),
        append("acme", "chat-0", f"{name}-after-commit"),
    ]


def submit(engine: Engine, writes: list[Write]) -> list[Future[Any]]:
    """Submit writes as one batch."""
    calls, futures = [], []
    for write in writes:
        principal = Principal(write.account, "alice", "root")
        prepared = engine.prepare(engine.check(principal, write.operation, write.fields))
        future: Future[Any] = Future()
        calls.append((prepared, future_reply(future)))
        futures.append(future)
    engine.submit(calls)
    return futures


def future_reply(future: Future[Any]) -> Any:
    return lambda outcome, error: future.set_exception(error) if error else future.set_result(outcome)


class Ledger:
    """How often the text of each write must be stored, and what the callers were told."""

    def __init__(self) -> None:
        self.min_count: dict[tuple[str, str], int] = {}
        self.max_count: dict[tuple[str, str], int] = {}
        self.told: dict[tuple[str, str, int], str] = {}
        """The text at each acknowledged place of a session."""

    def record(self, write: Write, future: Future[Any]) -> bool:
        """Record the outcome of a write, and return whether it has to be retried."""
        error = future.exception(WAIT_SECONDS)
        if not write.text:
            return False
        name, size = (write.account, write.text), len(write.fields.get("messages", [1]))
        if isinstance(error, ConflictError):
            size = 0
        elif error is not None:
            assert isinstance(error, UnavailableError), error
        else:
            result: Appended = future.result()
            assert (
                self.told.setdefault((write.account, write.fields["session_id"], result.seq), write.text) == write.text
            )
        is_unknown = error is not None and "unknown" in str(error)
        is_written = error is None or is_unknown
        keyed = "idempotency_key" in write.fields
        least, most = self.min_count.get(name, 0), self.max_count.get(name, 0)
        self.min_count[name] = max(least, size if error is None else 0)
        self.max_count[name] = max(most, size) if keyed or not is_written else most + size
        return keyed and error is not None


def verify(engine: Engine, ledger: Ledger) -> None:
    """Every message is stored as often as the callers were told, and sequence numbers have no gaps."""
    stored: dict[tuple[str, str], int] = {}
    for account in ACCOUNTS:
        principal = Principal(account, "alice", "root")
        sessions = {session for owner, session, _ in ledger.told if owner == account}
        for session in sessions:
            messages = engine.call(principal, GetMessages(session_id=session, limit=1_000)).messages
            assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
            for message in messages:
                stored[account, message.text] = stored.get((account, message.text), 0) + 1
                assert ledger.told.get((account, session, message.seq), message.text) == message.text
    for name, least in ledger.min_count.items():
        assert least <= stored.get(name, 0) <= ledger.max_count[name], name


@contextmanager
def open_engine(url: str) -> Iterator[Engine]:
    target = resolve_target(url, SETTINGS)
    engine = Engine(open_database(target.database, SETTINGS), SETTINGS)
    try:
        yield engine
    finally:
        engine.close()


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_connection_cut_at_any_message_of_a_batch_loses_and_duplicates_nothing(
    postgres: PostgresServer, side: Side
) -> None:
    ledger = Ledger()
    target = postgres.new_migrated_database()
    with proxy_to(target) as (url, proxy), open_engine(url) as engine:
        for number in range(1, 400, 3):
            proxy.cut(nth_message(number), side)
            writes = batch(number)
            futures = submit(engine, writes)
            to_retry = [write for write, future in zip(writes, futures, strict=True) if ledger.record(write, future)]
            was_cut = proxy.cancel_cut()
            for write in to_retry:
                assert not ledger.record(write, submit(engine, [write])[0])
            if not was_cut:
                break
        assert number > 100
        verify(engine, ledger)
    assert len(ledger.told) > 500


def test_a_server_killed_during_batches_loses_and_duplicates_nothing() -> None:
    ledger, submitted = Ledger(), []
    with postgres_server() as server, open_engine(server.new_database()) as engine:
        for number in range(1, 13):
            writes = batch(number)
            submitted.append((writes, submit(engine, writes)))
            if number == 8:
                server.kill()
                server.restart()
        for writes, futures in submitted:
            to_retry = [write for write, future in zip(writes, futures, strict=True) if ledger.record(write, future)]
            for write in to_retry:
                assert not ledger.record(write, submit(engine, [write])[0])
        verify(engine, ledger)
    assert len(ledger.told) > 50
