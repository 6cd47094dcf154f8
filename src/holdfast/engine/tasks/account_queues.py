"""Work of accounts that workers find by themselves, and start a task for."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine.gate.operation_handler import CallContext
from holdfast.store.database import Tx


class AccountQueue(NamedTuple):
    """Rows that say which accounts need a task of some kind."""

    list_due_accounts: Callable[[Tx, int], list[str]]
    """Lists some accounts that need a task now and have none."""
    micros_until_due: Callable[[Tx], int | None]
    """The time until an account needs a task. None if none will."""
    start: Callable[[Tx, CallContext], None]
    """Adds the task of the account of the transaction."""
