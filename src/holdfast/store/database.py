"""The interface of a database. Two drivers implement it; the queries in `tables` use nothing else."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]
Statement = tuple[str, Params]
ReplyCallback = Callable[[Any, BaseException | None], None]
"""Called with the result of a submitted transaction, or with its error."""

EVERY_ACCOUNT = "*"
"""The account of a transaction that serves the operator rather than a tenant. No tenant can have this name."""


class Dialect(msgspec.Struct, frozen=True):
    """The differences in SQL between the two databases."""

    name: str
    lock_row: str
    """Appended to a SELECT to lock its row until the transaction ends. Empty if the database needs no row locks."""
    has_lateral_joins: bool
    """Whether a subquery in FROM may refer to the tables before it."""
    index_text: "Callable[[Tx, int, int, int, int], None] | None"
    """Called after an append with its log, the last seq before it, its last seq, and the bytes of its largest message.

    It may add messages of the log to the text index. None if a trigger does this.
    """
    delete_text: str
    """Removes messages from the text index; parameters: account, log, the seq after which to delete."""
    delete_all_text: str
    """Removes all messages of an account from the text index."""
    match_text: "Callable[[Tx, int, list[str]], tuple[str, Params]]"
    """For a log and words: an SQL condition on `messages m` that all the words occur, and its parameters."""


class Tx(Protocol):
    """A running transaction on behalf of one account.

    SQL uses `?` for parameters. A statement on tenants' rows must name `account_id` in its WHERE.
    `execute` may return before the statement has run: its error is then raised by a later call or by the commit.
    """

    account: str
    dialect: Dialect

    def limit_to(self, scope: str) -> None:
        """Declare, as the first step, that the results of reads depend on no write of a transaction of another scope.

        Submitted transactions of the same account and different scopes may then run at the same time.
        """

    def execute(self, sql: str, params: Params = ()) -> None: ...
    def one(self, sql: str, params: Params = ()) -> Row | None: ...
    def all(self, sql: str, params: Params = ()) -> list[Row]: ...
    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run several statements in order, and return the rows of each. They need only one round trip."""

    def all_within(self, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:
        """Return the first rows of a query whose sizes add up to at most `max_bytes`, and whether there are more.

        It returns at least one row, whatever its size. The size of a row is its last column, which has the name
        `bytes`. The query is ordered by `order_by`, a column with a different value in each row.
        """

    def run_script(self, sql: str) -> None:
        """Run statements that are separated by semicolons."""


class Submission(NamedTuple):
    account: str
    transaction: Callable[[Tx], Any]
    reply: ReplyCallback


class Database(Protocol):
    """Runs durable transactions.

    `transaction` may run in another thread, and more than once before its result counts: it must have no effect except
    through `tx`. When `write` returns, the changes survive a power failure. When it raises, no change is visible,
    unless it raised an UnavailableError that says that the outcome is unknown.
    """

    def read(self, account: str, transaction: Callable[[Tx], T]) -> T: ...
    def write(self, account: str, transaction: Callable[[Tx], T]) -> T: ...
    def submit(self, submissions: Sequence[Submission]) -> None:
        """Write each submission without waiting. Each callback is called in another thread."""

    def count_waiting_writes(self) -> int:
        """Count the writes that wait for other writes to finish."""

    def migrate(self, now: int) -> None:
        """Bring the schema up to date. Safe to call from many processes at once."""

    def close(self) -> None:
        """Finish running transactions and release all resources. Calling it again does nothing."""


class _TransactionScope(threading.local):
    """Records that this thread is inside a transaction.

    A class, because a generator-based context manager would cost as much as a statement.
    """

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


transaction_scope = _TransactionScope()


def in_transaction() -> bool:
    """Whether this thread is inside a transaction. There, code must not wait for the network."""
    return transaction_scope.depth > 0
