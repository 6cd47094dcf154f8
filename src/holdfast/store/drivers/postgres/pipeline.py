"""Statements of a PostgreSQL connection, sent without waiting for the results of those before.

A statement that returns no rows waits in the pipeline until a result is needed, so a transaction needs as many round
trips as it has reads, and one for its commit. This uses libpq through `psycopg.pq`: the pipeline mode of psycopg
itself takes four times as much CPU time for the statements of an append.
"""

import functools
import hashlib
import select
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

from holdfast.store.database import Params, Row, Statement

PREPARE_AT_USE = 3
"""A statement is prepared when a connection runs it for the third time. Many are built for one call only."""
MAX_PREPARED = 200
"""How many statements a connection prepares. Each costs memory in the server."""
MAX_COUNTED = 2_000
"""For how many statements a connection counts the uses."""
MAX_PENDING = 256
"""How many results may wait to be received."""


class AnswerTimeoutError(psycopg.OperationalError):
    """The server has sent nothing for too long. It may be frozen, or the network between may be gone."""


_SUCCEEDED = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class Pipeline:
    """The statements of one connection, from `open` to `close`. In between, nothing else may use the connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self.prepares = True
        """Whether statements are prepared. They cannot be if a pooler gives each transaction another connection."""
        self._names: dict[str, bytes] = {}
        """The names of prepared statements, by their SQL."""
        self.has_timed_out = False
        """Whether the server has not answered. The connection cannot be used any more."""
        self._unconfirmed: list[str] = []
        """Statements that are being prepared."""
        self._name_generation = 1
        """Part of the names, so that a statement can be prepared again."""
        self._uses: dict[str, int] = {}
        self._pending: deque[bool] = deque()
        """For each result that was not received yet: True if it is of a statement, False if it is of preparing one."""
        self._pending_syncs = 0
        self._results: list[PGresult] = []
        """The results received since rows were last fetched."""
        self.sent_count = self.succeeded_count = 0
        """The number of statements sent since `open`, and of those that have succeeded."""
        self._readable, self._sendable = select.poll(), select.poll()
        self._readable.register(self._pgconn.socket, select.POLLIN)
        self._sendable.register(self._pgconn.socket, select.POLLIN | select.POLLOUT)

    @property
    def is_waiting(self) -> bool:
        """Whether results were not received yet."""
        return bool(self._pending) or self._pending_syncs > 0

    def open(self, answer_seconds: float) -> None:
        """Begin. Each result must be received within `answer_seconds` after the result before it."""
        self._pgconn.enter_pipeline_mode()
        self.sent_count = self.succeeded_count = 0
        self.wait_longer(answer_seconds)

    def wait_longer(self, answer_seconds: float) -> None:
        """Change how long to wait for results, until the next `open`."""
        self._answer_ms = int(answer_seconds * 1_000)

    def close(self) -> None:
        self._pgconn.exit_pipeline_mode()

    def stop_preparing(self) -> None:
        """Prepare no more statements, and use none that were prepared."""
        self.prepares = False
        self._names.clear()

    def send(self, sql: str, params: Params = ()) -> None:
        """Send a statement. If it fails, the next call that waits raises its error."""
        if len(self._pending) >= MAX_PENDING and not self._pending_syncs:
            self._pgconn.send_flush_request()
            self._receive()
        values = _encode(params)
        name = self._names.get(sql) or self._prepare(sql)
        if name is None:
            self._pgconn.send_query_params(_numbered_placeholders(sql), values)
        else:
            self._pgconn.send_query_prepared(name, values)
        self._pending.append(True)
        self.sent_count += 1

    def fetch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Send statements, wait for all results, and return the rows of these statements."""
        for sql, params in statements:
            self.send(sql, params)
        return self.fetch_numbers(range(self.sent_count - len(statements), self.sent_count))

    def fetch_numbers(self, numbers: Iterable[int]) -> list[list[Row]]:
        """Wait for all results, and return the rows of some statements, which were sent since the last call.

        Statements are numbered from 0 since `open`, so that `sent_count` is the number of the next one.
        """
        # Not a flush: after a sync, the server knows that the transaction is idle, and limits how long.
        self._sync()
        self._receive()
        while self._pending_syncs:
            self._next_result()
            self._pending_syncs -= 1
        results, self._results = self._results, []
        first = self.succeeded_count - len(results)
        return [self._rows(results[number - first]) for number in numbers]

    def run_in_own_transaction(self, statements: Sequence[Statement], answer_seconds: float) -> list[list[Row]]:
        """Open the pipeline, run statements in a transaction of their own, and close it."""
        self.open(answer_seconds)
        rows = self.fetch(statements)
        self.close()
        return rows

    def run_script(self, sql: str) -> None:
        """Run statements that are separated by semicolons, which a pipeline cannot."""
        self.fetch_numbers(())
        self._pgconn.exit_pipeline_mode()
        result = self._pgconn.exec_(sql.encode())
        self._pgconn.enter_pipeline_mode()
        if result.status not in _SUCCEEDED:
            raise error_from_result(result)

    def end(self, sql: str) -> None:
        """Send the last statement of a transaction, and wait for all results."""
        self.send(sql)
        self._sync()
        self._receive()
        self._drain()

    def roll_back(self) -> None:
        """End the transaction, whatever became of its statements."""
        self._sync()  # after an error, the server ignores all statements before this
        self.send("ROLLBACK")
        self._sync()
        self._drain()

    def _prepare(self, sql: str) -> bytes | None:
        """Prepare a statement that is used often, and return its name."""
        if not self.prepares:
            return None
        uses = self._uses[sql] = self._uses.get(sql, 0) + 1
        if uses < PREPARE_AT_USE or len(self._names) == MAX_PREPARED:
            if len(self._uses) > MAX_COUNTED:
                self._uses.clear()
            return None
        # Behind a pooler, others may use the same name: it must mean the same SQL to them.
        name = self._names[sql] = b"holdfast_%d_%b" % (self._name_generation, _digest(sql))
        self._unconfirmed.append(sql)
        self._pgconn.send_prepare(name, _numbered_placeholders(sql))
        self._pending.append(False)
        return name

    def _sync(self) -> None:
        self._pgconn.pipeline_sync()
        self._pending_syncs += 1

    def _receive(self) -> None:
        """Wait for all results. Raise the error of the first statement that failed."""
        self._flush()
        while self._pending:
            result = self._next_result()
            if result.status not in _SUCCEEDED:
                raise error_from_result(result)
            if self._pending.popleft():
                self._results.append(result)
                self.succeeded_count += 1
        self._unconfirmed.clear()

    def _drain(self) -> None:
        """Wait for all results and ignore them."""
        self._flush()
        while self._pending_syncs:
            if self._next_result().status == pq.ExecStatus.PIPELINE_SYNC:
                self._pending_syncs -= 1
        self._pending.clear()
        self._results.clear()
        if self._unconfirmed:  # it is unknown whether these were prepared, so they get new names
            self._name_generation += 1
            for sql in self._unconfirmed:
                self._names.pop(sql, None)
            self._unconfirmed.clear()

    def _flush(self) -> None:
        while self._pgconn.flush():
            # The server may not read before its results are read.
            self._wait(self._sendable)
            self._pgconn.consume_input()

    def _next_result(self) -> PGresult:
        for _ in range(2):
            while self._pgconn.is_busy():
                self._wait(self._readable)
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is not None:
                return result
            # None separates the results of two statements.
        raise psycopg.OperationalError(self._pgconn.get_error_message() or "the connection is lost")

    def _wait(self, poll: select.poll) -> None:
        if not poll.poll(self._answer_ms):
            self.has_timed_out = True
            raise AnswerTimeoutError(f"the server has sent nothing for {self._answer_ms / 1_000:.0f} s")

    def _rows(self, result: PGresult) -> list[Row]:
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)


def _encode(params: Params) -> list[bytes | None]:
    """Encode values as text. PostgreSQL infers their types from the statement."""
    encoded: list[bytes | None] = []
    for value in params:
        if value is None:
            encoded.append(None)
        elif type(value) is int:
            encoded.append(b"%d" % value)
        elif type(value) is bytes:
            encoded.append(b"\\x" + value.hex().encode())
        else:
            text = str(value)
            if "\0" in text:  # libpq would take it for the end of the text
                raise psycopg.DataError("PostgreSQL text cannot contain NUL characters")
            encoded.append(text.encode())
    return encoded


@functools.lru_cache(MAX_COUNTED)
def _numbered_placeholders(sql: str) -> bytes:
    """Replace each `?` by `$1`, `$2` and so on."""
    first, *rest = sql.split("?")
    return (first + "".join(f"${number}{text}" for number, text in enumerate(rest, 1))).encode()


@functools.lru_cache(MAX_COUNTED)
def _digest(sql: str) -> bytes:
    """A text for this SQL and no other. It ends with the verb, for those who read the traffic."""
    return f"{hashlib.sha256(sql.encode()).hexdigest()[:32]}_{sql.split(maxsplit=1)[0]}".encode()
