"""The state that all requests share."""

import asyncio

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.http.auth import Authenticator
from holdfast.http.deadlines import Deadlines
from holdfast.http.executor import EngineExecutor
from holdfast.http.limits import RateLimit, StreamLimit
from holdfast.http.memory.bodies import BodyMemory
from holdfast.http.memory.budget import MemoryBudget
from holdfast.http.streaming.event_stream import StreamNotifier
from holdfast.http.telemetry.logs import Log
from holdfast.http.telemetry.metrics import Metrics
from holdfast.http.telemetry.readiness import Readiness

RESPONSE_SHARES = 32
"""The unread pages of one user hold at most one of so many equal shares of the memory for responses."""


class ServerState:
    """The engine with the server's authentication, limits, log and metrics."""

    def __init__(self, engine: Engine, settings: Settings, log: Log | None = None) -> None:
        self.engine = engine
        self.settings = settings
        self.executor = EngineExecutor(engine)
        self.authenticator = Authenticator(self.executor, settings, engine.clock)
        self.rate_limit = RateLimit(settings)
        self.stream_limit = StreamLimit(settings)
        buffered = settings.max_buffered_bytes
        self.responses_memory = MemoryBudget(buffered, buffered // RESPONSE_SHARES)
        self.body_memory = BodyMemory(buffered // 2)
        self.processing_memory = MemoryBudget(settings.max_body_bytes, settings.max_body_bytes)
        """For bodies that are being parsed and checked, which needs a multiple of their size."""
        self.notifier = StreamNotifier()
        self.log = log or Log(settings, engine.clock)
        self.metrics = Metrics(
            engine.db.count_waiting_writes, lambda: self.stream_limit.count, lambda: self.log.dropped_count
        )
        self.readiness = Readiness(self.executor, self.log)
        self.deadlines = Deadlines(settings.request_timeout_seconds)

    def open(self) -> None:
        self.executor.open()
        self._deadline_check = asyncio.create_task(self.deadlines.cancel_overdue())

    def close(self) -> None:
        """Finish all accepted operations, and close the engine."""
        self._deadline_check.cancel()
        self.engine.stop_workers()  # first, since an operation may wait for background work
        self.executor.close()
        self.engine.close()
