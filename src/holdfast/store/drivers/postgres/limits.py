"""How long the parts of a PostgreSQL transaction may take.

The limits are set inside each transaction, together with its account, so they need no round trip. Parameters of the
connection would be lost behind a connection pooler that gives each transaction another connection to the server.
"""

from typing import Self

import msgspec

SET_LIMITS = (
    "SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true),"
    " set_config('idle_in_transaction_session_timeout', ?, true)"
)
SET_STATEMENT_LIMIT = "SELECT set_config('statement_timeout', ?, true)"
SET_ACCOUNT_AND_LIMITS = f"{SET_LIMITS}, set_config('holdfast.account', ?, true)"

ANSWER_MARGIN_SECONDS = 2.0
"""How much longer than a statement a client waits for its result. Only a server that does not run needs longer."""
NO_LIMIT_SECONDS = 86_400.0


class TimeLimits(msgspec.Struct, frozen=True):
    """Limits in seconds. The shorter ones fit into the longer ones, and all of them into the time of a request."""

    lock: float
    """How long a statement waits for a lock."""
    statement: float
    """How long a statement runs."""
    idle: float
    """How long the server waits for the next statement of a transaction. It then ends the session and its locks."""
    call: float
    """How long a call is tried again after errors that are temporary."""

    @classmethod
    def within(cls, request_seconds: float) -> Self:
        return cls(
            lock=max(request_seconds / 3, 0.2),
            statement=max(request_seconds * 0.6, 1.0),
            idle=max(request_seconds / 6, 1.0),
            call=request_seconds * 0.8,
        )

    @property
    def answer(self) -> float:
        """How long a client waits while the server sends nothing."""
        return self.statement + ANSWER_MARGIN_SECONDS

    def as_settings(
        self,
        lock_seconds: float = NO_LIMIT_SECONDS,
        statement_seconds: float = NO_LIMIT_SECONDS,
        *,
        is_read: bool = False,
    ) -> tuple[int, int, int]:
        """The parameters of `SET_LIMITS`, in milliseconds. The first two arguments can only shorten the limits."""
        # A read may compute for long between two statements. It blocks nobody.
        idle = max(self.idle, self.statement) if is_read else self.idle
        return (
            max(1, int(min(self.lock, lock_seconds) * 1_000)),
            int(min(self.statement, statement_seconds) * 1_000),
            int(idle * 1_000),
        )

    def replaced_by(self, settings: dict[str, int]) -> "TimeLimits":
        """These limits, except for those that the user has set, in milliseconds. PostgreSQL's 0 means no limit."""
        if not settings:
            return self
        seconds = {name: value / 1_000 or NO_LIMIT_SECONDS for name, value in settings.items()}
        return msgspec.structs.replace(
            self,
            lock=seconds.get("lock_timeout", self.lock),
            statement=seconds.get("statement_timeout", self.statement),
            idle=seconds.get("idle_in_transaction_session_timeout", self.idle),
        )


MIGRATION_LIMITS = TimeLimits(lock=30.0, statement=3_600.0, idle=60.0, call=60.0)
"""A migration may build an index over many rows. It waits for locks only briefly: others queue after it."""
LONG_STATEMENT_SECONDS = 600.0
"""How long a statement of a transaction may run that has declared long statements."""
