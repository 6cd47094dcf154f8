"""What all requests share."""

import asyncio

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.http.auth import Gatekeeper
from holdfast.http.deadlines import Deadlines
from holdfast.http.event_stream import Hub
from holdfast.http.gate import Bridge
from holdfast.http.limits import RateLimit, StreamLimit
from holdfast.http.telemetry.logs import Log
from holdfast.http.telemetry.metrics import Metrics


class Service:
    """An engine, and around it what a server needs: who calls, how much, what is logged and counted."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self.bridge = Bridge(engine)
        self.gatekeeper = Gatekeeper(self.bridge, settings, engine.clock)
        self.rate = RateLimit(settings)
        self.streams = StreamLimit(settings)
        self.hub = Hub()
        self.log = Log(settings, engine.clock)
        self.metrics = Metrics(engine.db.waiting, lambda: self.streams.count)
        self.deadlines = Deadlines(settings.request_timeout_seconds)

    def open(self) -> None:
        self.bridge.open()
        self._watching = asyncio.create_task(self.deadlines.watch())

    def close(self) -> None:
        """Finish what was accepted."""
        self._watching.cancel()
        self.engine.stop_working()  # first, so that nobody waits for background work any more
        self.bridge.close()
        self.engine.close()
