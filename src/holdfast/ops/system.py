"""Operations on the system itself: identity, health and statistics."""

from typing import Annotated

import msgspec

from holdfast.model.identity import Identity
from holdfast.model.system import Component, ComponentName, Health, MemoryStats, QueueCounts, SystemHealth, SystemStatus
from holdfast.ops.table import Operation, operation


@operation("GET /whoami", role="any", scope="system")
class WhoAmI(Operation[Identity], frozen=True, kw_only=True):
    """Return the account, user and role of the caller."""


@operation("GET /system/status", role="any", scope="system")
class GetSystemStatus(Operation[SystemStatus], frozen=True, kw_only=True):
    """Return whether the system is initialized, and the caller's user id."""


@operation("POST /system/wait", role="any", scope="system")
class WaitUntilIdle(Operation[dict[str, QueueCounts]], frozen=True, kw_only=True):
    """Wait until all work accepted before this call is done, and return the counts of each queue.

    After `timeout` seconds it fails with DEADLINE_EXCEEDED. The remaining work continues.
    """

    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] | None = None


@operation("GET /debug/health", role="any", scope="system")
class CheckHealth(Operation[Health], frozen=True, kw_only=True):
    """Return whether the system is healthy."""


@operation("GET /observer/system", role="admin", scope="all_accounts")
class ObserveSystem(Operation[SystemHealth], frozen=True, kw_only=True):
    """Return the health of all components."""


@operation("GET /observer/{component}", role="admin", scope="all_accounts")
class ObserveComponent(Operation[Component], frozen=True, kw_only=True):
    """Return the health of one component."""

    component: ComponentName


@operation("GET /stats/memories")
class GetMemoryStats(Operation[MemoryStats], frozen=True, kw_only=True):
    """Return the number of sessions, messages, tokens and memories of the caller.

    Memories are not extracted yet, so their number is 0.
    """
