"""What all requests share."""

import asyncio

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.http.auth import Authenticator
from holdfast.http.deadlines import Deadlines
from holdfast.http.event_stream import Hub
from holdfast.http.executor import EngineExecutor
from holdfast.http.limits import RateLimit, StreamLimit
from holdfast.http.telemetry.logs import Log
from holdfast.http.telemetry.metrics import Metrics


class ServerState:
    """An engine, and around it what a server needs: who calls, how much, what is logged and counted."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.executor = EngineExecutor(engine)
        self.authenticator = Authenticator(self.executor, settings, engine.clock)
        self.rate = RateLimit(settings)
        self.streams = StreamLimit(settings)
        self.hub = Hub()
        self.log = Log(settings, engine.clock)
        self.metrics = Metrics(engine.db.waiting, lambda: self.streams.count)
        self.deadlines = Deadlines(settings.request_timeout_seconds)

    def open(self) -> None:
        self.executor.open()
        self._watching = asyncio.create_task(self.deadlines.watch())

    def close(self) -> None:
        """Finish what was accepted."""
        self._watching.cancel()
        self.engine.stop_working()  # first, so that nobody waits for background work any more
        self.executor.close()
        self.engine.close()
