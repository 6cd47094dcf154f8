"""Operations on the system itself: identity, health and statistics."""

from typing import Annotated, Literal

import msgspec

from holdfast.model.identity import Identity
from holdfast.model.system import (
    Component,
    ComponentName,
    Consistency,
    Health,
    MemoryStats,
    QueueCounts,
    SystemHealth,
    SystemStatus,
)
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation

StatusFormat = Literal["table", "json"]
MemoryCategory = Literal["profile", "preferences", "entities", "events", "cases", "patterns", "tools", "skills"]


@operation("GET /whoami", role="any", scope="system")
class WhoAmI(Operation[Identity], frozen=True, kw_only=True):
    """Return the account, user and role of the caller."""


@operation("GET /system/status", role="any", scope="system")
class GetSystemStatus(Operation[SystemStatus], frozen=True, kw_only=True):
    """Return whether the system is initialized, and the caller's user id."""


@operation("POST /system/wait", role="any", scope="system")
class WaitUntilIdle(Operation[dict[str, QueueCounts]], frozen=True, kw_only=True):
    """Wait until all work accepted before this call is done, and return the counts of each queue.

    `writes` and `tasks` have everything of the caller. The other queues have the tasks of one purpose. After `timeout`
    seconds it fails with DEADLINE_EXCEEDED. The remaining work continues.
    """

    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] | None = None


@operation("GET /debug/health", role="any", scope="system")
class CheckHealth(Operation[Health], frozen=True, kw_only=True):
    """Return whether the system is healthy."""


@operation("GET /observer/system", scope="tenant_or_operator")
class ObserveSystem(Operation[SystemHealth], frozen=True, kw_only=True):
    """Return the health of all components. `status` of each is as in ObserveComponent."""

    format: StatusFormat = "table"


@operation("GET /observer/{component}", scope="tenant_or_operator")
class ObserveComponent(Operation[Component], frozen=True, kw_only=True):
    """Return the state of one component: of the caller's own data, of the account for an administrator.

    The operator sees all accounts. `status` is a text with tables, or with `format=json` an object.
    """

    component: ComponentName
    format: StatusFormat = "table"


@operation("POST /system/consistency", reads=True)
class CheckConsistency(Operation[Consistency], frozen=True, kw_only=True):
    """Return whether the caller's messages at and below an address are indexed."""

    uri: Uri = "viking://"


@operation("GET /stats/memories")
class GetMemoryStats(Operation[MemoryStats], frozen=True, kw_only=True):
    """Return the number of sessions, messages, tokens and memories of the caller; with `category`, of its memories.

    Memories are not extracted yet, so their number is 0.
    """

    category: MemoryCategory | None = None
