"""`/ready` tries a write: a full disk, a displaced file and stuck writers are found, in a bounded time."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from holdfast.engine import Engine
from holdfast.http.executor import EngineExecutor
from holdfast.http.telemetry.logs import Log
from holdfast.http.telemetry.readiness import OK, Readiness
from holdfast.store.database import EVERY_ACCOUNT, ReplyCallback, Submission
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.faults.disks import full_disk
from holdfast.testing.faults.locks import block_writes
from holdfast.testing.server import running_server

MAX_SECONDS = 4.0
"""The server responds within two seconds; the machine may be busy."""


def with_readiness(file: Path, check: Callable[[Readiness, Engine], Awaitable[None]]) -> None:
    """Run `check` with the readiness of a server without HTTP, in this process."""

    async def run() -> None:
        engine = Engine(SqliteDatabase(str(file)))
        executor = EngineExecutor(engine)
        executor.open()
        try:
            await check(Readiness(executor, Log(engine.settings, engine.clock)), engine)
        finally:
            executor.close()
            engine.close()

    asyncio.run(run())


def test_a_server_whose_disk_is_full_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.http.telemetry.readiness.REUSE_SECONDS", 0.0)

    async def check(readiness: Readiness, _engine: Engine) -> None:
        assert await readiness.check() == OK
        disk.start_failing()
        assert await readiness.check() == "unavailable: the disk is full; see the server's log"
        disk.stop_failing()
        assert await readiness.check() == OK

    with full_disk() as disk:
        with_readiness(tmp_path / "holdfast.db", check)


def test_a_probe_changes_nothing(tmp_path: Path) -> None:
    async def check(readiness: Readiness, engine: Engine) -> None:
        before = engine.db.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT * FROM schema_migrations"))
        assert await readiness.check() == OK
        assert engine.db.read(EVERY_ACCOUNT, lambda tx: tx.all("SELECT * FROM schema_migrations")) == before

    with_readiness(tmp_path / "holdfast.db", check)


def test_many_checks_share_one_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[ReplyCallback] = []

    async def check(readiness: Readiness, engine: Engine) -> None:
        submit = engine.submit_probe

        def submit_and_count(reply: ReplyCallback) -> None:
            probes.append(reply)
            submit(reply)

        monkeypatch.setattr(engine, "submit_probe", submit_and_count)
        assert set(await asyncio.gather(*[readiness.check() for _ in range(100)])) == {OK}
        assert await readiness.check() == OK

    with_readiness(tmp_path / "holdfast.db", check)
    assert len(probes) == 1


def test_a_server_whose_writer_is_stuck_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.http.telemetry.readiness.PROBE_SECONDS", 0.3)
    is_over = threading.Event()

    async def check(readiness: Readiness, engine: Engine) -> None:
        engine.db.submit([Submission(EVERY_ACCOUNT, lambda _tx: is_over.wait(30), lambda *_: None)])
        assert "a test write has not finished" in await readiness.check()
        assert "a test write has not finished" in await readiness.check(), "the same probe, without another wait"
        assert engine.db.count_waiting_writes() <= 1
        is_over.set()
        for _ in range(100):
            if await readiness.check() == OK:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the server did not get ready")

    with_readiness(tmp_path / "holdfast.db", check)


def test_a_server_whose_database_is_locked_or_displaced_is_not_ready(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.db"
    with (
        running_server(file) as server,
        httpx2.Client(base_url=server.url, timeout=10) as http,
        ThreadPoolExecutor(8) as threads,
    ):
        assert http.get("/ready").json() == {"status": "ready", "checks": {"storage": "ok"}}
        with block_writes(str(file)):
            time.sleep(1.1)  # the result of the last probe is used for a second
            started_at = time.monotonic()
            responses = list(threads.map(lambda _: http.get("/ready"), range(8)))
            assert time.monotonic() - started_at < MAX_SECONDS
            assert {response.status_code for response in responses} == {503}
            assert "has not finished within 2 s" in responses[0].json()["checks"]["storage"]
        _wait_for_status(http, 200)
        file.rename(tmp_path / "moved.db")
        response = _wait_for_status(http, 503)
        assert "moved, replaced or deleted" in response.json()["checks"]["storage"]
        assert str(tmp_path) not in response.text
        (tmp_path / "moved.db").rename(file)
        _wait_for_status(http, 200)


def _wait_for_status(http: httpx2.Client, status: int) -> httpx2.Response:
    for _ in range(100):
        response = http.get("/ready")
        if response.status_code == status:
            return response
        time.sleep(0.1)
    raise AssertionError(response.text)
