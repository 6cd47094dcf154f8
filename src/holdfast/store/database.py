"""The interface of a database. Two drivers implement it; the queries in `tables` use nothing else."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from holdfast.errors import DeadlineExceededError

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]
Statement = tuple[str, Params]
ReplyCallback = Callable[[Any, BaseException | None], None]
"""Called with the result of a submitted transaction, or with its error."""

EVERY_ACCOUNT = "*"
"""The account of a transaction that serves the operator rather than a tenant. No tenant can have this name."""


NOW = "(SELECT holdfast_now())"
"""The database's time in microseconds, in SQL. It is the same for all processes, whatever their machines' clocks say.

Times that decide are the database's: when a task is due, when a lease ends, how old a row is. Times that users see come
from the engine's clock. It is a subquery, so that it is evaluated once and can limit an index scan.
"""


class TextEntry(NamedTuple):
    """A document in the text index."""

    n: int
    scope: str
    """Terms of its account, owner, log and kind, with spaces between."""
    words: str


class Dialect(msgspec.Struct, frozen=True):
    """The differences in SQL between the two databases."""

    name: str
    lock_row: str
    """Appended to a SELECT to lock its row until the transaction ends. Empty if the database needs no row locks."""
    has_lateral_joins: bool
    """Whether a subquery in FROM may refer to the tables before it."""
    allocate_documents: "Callable[[Tx, int], list[int]]"
    """Returns numbers for new documents."""
    insert_text: "Callable[[Tx, Sequence[TextEntry]], None]"
    """Adds documents to the text index."""
    delete_text: "Callable[[Tx, Sequence[int]], None]"
    """Removes documents from the text index by their numbers."""
    delete_account_text: str
    """Removes all documents of an account from the text index."""
    text_hits: str
    """A query of the numbers `n` of documents with some words. An order and a limit can be added to it."""
    text_query: "Callable[[Sequence[Sequence[str]], Sequence[str]], Params]"
    """The parameters of `text_hits` for documents that have a term of each list, and all of some words."""
    match_text: "Callable[[Tx, int, list[str]], tuple[str, Params]]"
    """For a log and words: an SQL condition on `messages m` that all the words occur, and its parameters."""
    ranges: str
    """A query of log ranges, given as a JSON list: its columns are `log_id`, `first_seq` and `last_seq`."""
    can_index_vectors: bool
    """Whether the database may have an extension with an index of vectors."""
    unreadable_row: tuple[type[Exception], ...]
    """Errors of a statement that reads a damaged row. The transaction can go on after them."""


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

    def allow_long_statements(self) -> None:
        """Declare, as the first step, that statements may take minutes. Others are ended before a request times out."""

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
    key: str = ""
    """What it locks, such as a session. Submissions of an account with the same key may wait for each other."""


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
        """Bring the schema up to date and start the database's clock. Safe to call from many processes at once.

        `now` is the system's time. Afterwards SQL can call `holdfast_now()`, which is the same in all processes and
        independent of the clocks of their machines. If a later version changes the schema, every write raises an error.
        """

    def store_time(self, now: int) -> None:
        """Store the database's time if the database does not have a clock of its own. Call it once a minute.

        `now` is the system's time.
        """

    def copy_to(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Write a consistent copy of an SQLite database to a new file, while others write.

        `progress` is called with the number of copied pages and of all pages.
        """

    def close(self) -> None:
        """Finish running transactions and release all resources. Calling it again does nothing."""


def read_time(tx: Tx) -> int:
    """The database's time in microseconds."""
    return int(tx.all(f"SELECT {NOW}")[0][0])


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


class Cancellation:
    """A request to stop some work, because its caller no longer waits for it."""

    __slots__ = ("is_requested",)

    def __init__(self) -> None:
        self.is_requested = False

    def raise_if_requested(self) -> None:
        if self.is_requested:
            raise DeadlineExceededError("the caller no longer waits for this operation; it was stopped")


class _CurrentCancellation(threading.local):
    """The cancellation of the work that this thread does. A read looks at it between and during its statements."""

    value: Cancellation | None = None


current_cancellation = _CurrentCancellation()


def is_cancelled() -> bool:
    """Whether the work of this thread should stop."""
    cancellation = current_cancellation.value
    return cancellation is not None and cancellation.is_requested


def raise_if_cancelled() -> None:
    """Raise an error if the work of this thread should stop."""
    if current_cancellation.value is not None:
        current_cancellation.value.raise_if_requested()


def in_transaction() -> bool:
    """Whether this thread is inside a transaction. There, code must not wait for the network."""
    return transaction_scope.depth > 0
