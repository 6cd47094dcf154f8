"""What a database must offer. Two implement it; the query functions know only this."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]
Reply = Callable[[Any, BaseException | None], None]
"""Takes the outcome or the error of a piece of work."""

EVERY_ACCOUNT = "*"
"""The account of a transaction that serves the operator rather than a tenant. No tenant can have this name."""


class Dialect(msgspec.Struct, frozen=True):
    """The few words in which the two databases differ."""

    name: str
    lock_row: str
    """Ends a SELECT whose row stays as it is until the transaction ends."""
    insert_text: str
    """Puts a message into the text index; parameters: account, log, seq, text. Empty if it gets there by itself."""
    delete_text: str
    """Takes messages out of the text index; parameters: account, log, the seq after which."""
    delete_all_text: str
    """Takes all messages of an account out of the text index."""
    match_text: Callable[[str, list[str]], tuple[str, list[str]]]
    """For an account and words: a condition on `messages m` for those that hold them all, and its parameters."""


class Tx(Protocol):
    """A running transaction on behalf of one account.

    SQL uses `?` for parameters. A statement that touches tenants' rows names `account_id` in its WHERE.
    """

    account: str
    dialect: Dialect

    def execute(self, sql: str, params: Params = ()) -> None: ...
    def one(self, sql: str, params: Params = ()) -> Row | None: ...
    def all(self, sql: str, params: Params = ()) -> list[Row]: ...


class Submission(NamedTuple):
    account: str
    work: Callable[[Tx], Any]
    reply: Reply


class Database(Protocol):
    """A durable place for transactions.

    `work` may run in another thread, and more than once before its outcome counts: its only effect is through `tx`.
    When `write` returns, what `work` wrote survives a power cut. When it raises, nothing of it is visible,
    except after an UnavailableError that says the outcome is unknown.
    """

    def read(self, account: str, work: Callable[[Tx], T]) -> T: ...
    def write(self, account: str, work: Callable[[Tx], T]) -> T: ...
    def submit(self, submissions: Sequence[Submission]) -> None:
        """As a `write` of each, for callers that do not wait: each gets its reply in another thread."""

    def waiting(self) -> int:
        """How many writes wait for others to be done."""

    def migrate(self, now: int) -> None:
        """Bring the schema up to date. Safe to call from many processes at once."""

    def close(self) -> None:
        """Finish what is running and release everything. Calling it again does nothing."""


class _Inside(threading.local):
    """Marks that this thread is inside a transaction. A class, since a generator would cost as much as a statement."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


inside_transaction = _Inside()


def in_transaction() -> bool:
    """Whether this thread is inside a transaction: there, nothing may wait for a network."""
    return inside_transaction.depth > 0
