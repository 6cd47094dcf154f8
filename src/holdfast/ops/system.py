"""What can be asked about the system itself."""

from typing import Annotated

import msgspec

from holdfast.model.identity import Identity
from holdfast.model.system import Component, ComponentName, Health, MemoryStats, QueueCounts, SystemHealth, SystemStatus
from holdfast.ops.table import Operation, operation


@operation("GET /whoami", scope="system")
class WhoAmI(Operation[Identity], frozen=True, kw_only=True):
    pass


@operation("GET /system/status", scope="system")
class GetSystemStatus(Operation[SystemStatus], frozen=True, kw_only=True):
    pass


@operation("POST /system/wait", scope="system")
class WaitUntilIdle(Operation[dict[str, QueueCounts]], frozen=True, kw_only=True):
    """Answers once everything that was accepted before it is done, with the counts of each queue.

    At the latest after `timeout` seconds: then what is left goes on, and the answer is DEADLINE_EXCEEDED.
    """

    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] | None = None


@operation("GET /debug/health", scope="system")
class CheckHealth(Operation[Health], frozen=True, kw_only=True):
    pass


@operation("GET /observer/system", role="admin", scope="all_accounts")
class ObserveSystem(Operation[SystemHealth], frozen=True, kw_only=True):
    pass


@operation("GET /observer/{component}", role="admin", scope="all_accounts")
class ObserveComponent(Operation[Component], frozen=True, kw_only=True):
    component: ComponentName


@operation("GET /stats/memories")
class GetMemoryStats(Operation[MemoryStats], frozen=True, kw_only=True):
    """Counts of what the caller has."""
