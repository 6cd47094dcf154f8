"""Whether the server can serve requests: it can read and write its database."""

import asyncio

from holdfast.errors import HoldfastError
from holdfast.http.executor import EngineExecutor
from holdfast.http.telemetry.logs import Log
from holdfast.model.identity import Principal
from holdfast.ops.system import CheckHealth

OK = "ok"
PROBE_PRINCIPAL = Principal("default", "nobody", "user")
"""The caller of the test read. Its operation reads no data of any user."""
PROBE_SECONDS = 2.0
"""A database that takes longer for a test write is not ready."""
REUSE_SECONDS = 1.0
"""How long the result of a probe is used again. Frequent checks cause no load."""
REASONS = {
    "FullError": "the disk is full",
    "BusyError": "another process keeps the database locked",
    "FileDisplaced": "the database file was moved, replaced or deleted",
    "ReadOnlyError": "the database file cannot be written",
    "CantOpenError": "the database file cannot be opened",
    "CorruptError": "the database file is damaged",
    "PoolTimeout": "the database server does not respond",
}
"""Anyone may read the reason, so it names no file and no host."""


class Readiness:
    """Probes the database, with one probe at a time: a test write through the queue of all writes, then a test read."""

    def __init__(self, executor: EngineExecutor, log: Log) -> None:
        self._executor = executor
        self._log = log
        self._probe: asyncio.Task[str] | None = None
        self._started_at = 0.0

    async def check(self) -> str:
        """Return `ok` or the reason why requests cannot be served, within `PROBE_SECONDS`."""
        now = asyncio.get_running_loop().time()
        if self._probe is None or (self._probe.done() and now - self._started_at > REUSE_SECONDS):
            self._started_at = now
            self._probe = asyncio.create_task(self._run())
        await asyncio.wait({self._probe}, timeout=max(0.0, self._started_at + PROBE_SECONDS - now))
        if not self._probe.done():
            return f"does not respond: a test write has not finished within {PROBE_SECONDS:g} s"
        return self._probe.result()

    async def _run(self) -> str:
        try:
            await self._executor.probe_write()
            await self._executor.call(PROBE_PRINCIPAL, CheckHealth, {}, strict=True, body_size=0)
        except HoldfastError as error:
            self._log.write_exception("storage is unavailable", reason=error.details.get("reason"))
            reason = str(error.details.get("reason", error.code))
            return f"unavailable: {REASONS.get(reason, reason)}; see the server's log"
        except Exception as error:  # noqa: BLE001 - any error means that requests fail
            self._log.write_exception("storage is unavailable")
            return f"unavailable: {type(error).__name__}; see the server's log"
        return OK
