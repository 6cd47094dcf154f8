"""Client methods for the caller's identity, statistics and the state of the system."""

from time import monotonic

from holdfast.client.sync.transport import Transport
from holdfast.errors import DeadlineExceededError
from holdfast.model.identity import Identity
from holdfast.model.system import (
    Component,
    ComponentName,
    Consistency,
    Health,
    MemoryStats,
    QueueCounts,
    SessionStats,
    SystemHealth,
    SystemStatus,
)
from holdfast.ops.sessions import GetSessionStats
from holdfast.ops.system import (
    CheckConsistency,
    CheckHealth,
    GetMemoryStats,
    GetSystemStatus,
    MemoryCategory,
    ObserveComponent,
    ObserveSystem,
    StatusFormat,
    WaitUntilIdle,
    WhoAmI,
)

MIN_TIMEOUT_SECONDS = 0.01


class System:
    """Methods for the caller's identity, statistics and the state of the system."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def whoami(self) -> Identity:
        """Return the account, user and role of the caller."""
        return self._transport.call(WhoAmI())

    def session_stats(self, session_id: str, *, owner: str | None = None) -> SessionStats:
        """Return the counts of a session's messages, tokens, tool results and uses."""
        return self._transport.call(GetSessionStats(session_id=session_id, owner=owner))

    def memory_stats(self, category: MemoryCategory | None = None) -> MemoryStats:
        """Return the counts of the caller's sessions, messages and memories. With `category`, only its memories."""
        return self._transport.call(GetMemoryStats(category=category))

    def check_consistency(self, uri: str = "viking://") -> Consistency:
        """Return whether the caller's messages at and below an address are indexed.

        A search also reads what is not indexed yet.
        """
        return self._transport.call(CheckConsistency(uri=uri))

    def system_status(self) -> SystemStatus:
        """Return whether the system is initialised, and the caller's user id."""
        return self._transport.call(GetSystemStatus())

    def system_health(self, *, format: StatusFormat = "table") -> SystemHealth:
        """Return the state of every component, as `observe` does."""
        return self._transport.call(ObserveSystem(format=format))

    def observe(self, component: ComponentName, *, format: StatusFormat = "table") -> Component:
        """Return the state of one component: of the caller's data, of the account for an administrator.

        Its `status` is a text with tables, or with `format="json"` an object.
        """
        return self._transport.call(ObserveComponent(component=component, format=format))

    def check_health(self) -> Health:
        """Return whether the system is healthy."""
        return self._transport.call(CheckHealth())

    def wait_until_idle(self, seconds: float | None = None) -> dict[str, QueueCounts]:
        """Wait until all background work that was accepted before this call is done; return the counts of each queue.

        Raises `DeadlineExceededError` after `seconds`; if that is None, after the timeout of one request. The work
        continues in the background.
        """
        deadline = None if seconds is None else monotonic() + seconds
        while True:
            remaining = None if deadline is None else max(deadline - monotonic(), MIN_TIMEOUT_SECONDS)
            try:
                return self._transport.call(WaitUntilIdle(timeout=remaining))
            except DeadlineExceededError:
                if deadline is None or monotonic() >= deadline:
                    raise
