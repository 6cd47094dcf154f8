"""A row that another transaction keeps locked, and transactions whose process has stopped."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import psycopg
import pytest

import holdfast
from holdfast.errors import UnavailableError
from holdfast.store.database import Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server

ROOT_KEY = "root-key-of-this-test"
REQUEST_SECONDS = 6
BLOCKED_APPENDS = BLOCKED_COMMITS = 40
"""Requests that wait for the locked session: more than the server has threads and connections."""
MAX_ANSWER_SECONDS = 1.5
"""Far longer than a write needs on a busy machine, and shorter than a write waits for a lock."""
MESSAGE = {"role": "user", "content": "hello"}


@contextmanager
def locked_session(url: str, account: str, session: str) -> Iterator[None]:
    """Keep a session locked, like the transaction of a peer that has vanished."""
    with psycopg.connect(url) as peer:
        peer.execute("SELECT set_config('holdfast.account', %s, false)", (account,))
        found = peer.execute(
            "SELECT 1 FROM sessions WHERE account_id = %s AND session_id = %s FOR NO KEY UPDATE", (account, session)
        )
        assert found.rowcount == 1
        yield
        peer.rollback()


def test_a_locked_session_delays_no_other_session_and_no_other_account(postgres: PostgresServer) -> None:
    url = postgres.new_migrated_database()
    with (
        running_server(url, root_api_key=ROOT_KEY, request_timeout_seconds=REQUEST_SECONDS) as server,
        ThreadPoolExecutor(BLOCKED_APPENDS + BLOCKED_COMMITS) as threads,
        httpx2.Client(base_url=f"{server.url}/api/v1", timeout=30) as http,
    ):
        keys = {}
        for account in ("acme", "rival"):
            created = http.post("/admin/accounts", json={"account_id": account}, headers={"X-API-Key": ROOT_KEY})
            keys[account] = {"X-API-Key": created.json()["result"]["user_key"]}

        def send(account: str, path: str, body: object, key: str = "") -> tuple[httpx2.Response, float]:
            begun = time.monotonic()
            headers = keys[account] | ({"Idempotency-Key": key} if key else {})
            return http.post(f"/sessions/{path}", json=body, headers=headers), time.monotonic() - begun

        for account in keys:
            for session in ("chat", "other"):
                assert send(account, f"{session}/messages", MESSAGE)[0].status_code == 200
        with locked_session(url, "acme", "chat"):
            appends = [threads.submit(send, "acme", "chat/messages", MESSAGE, f"k{n}") for n in range(BLOCKED_APPENDS)]
            commits = [threads.submit(send, "acme", "chat/commit", {}) for _ in range(BLOCKED_COMMITS)]
            time.sleep(0.3)
            seconds = []
            for number in range(5):
                for account, path in (("rival", "chat"), ("acme", "other"), ("rival", f"new{number}")):
                    response, elapsed = send(account, f"{path}/messages", MESSAGE)
                    assert response.status_code == 200, response.text
                    seconds.append(elapsed)
            assert max(seconds) < MAX_ANSWER_SECONDS
            assert http.get(f"{server.url}/ready").status_code == 200
            for future in appends + commits:
                response, elapsed = future.result()
                assert response.status_code == 503
                assert "locked by another transaction" in response.json()["error"]["message"]
                assert elapsed < REQUEST_SECONDS
        retried = [send("acme", "chat/messages", MESSAGE, f"k{n}")[0] for n in range(BLOCKED_APPENDS)]
        assert [response.json()["result"]["seq"] for response in retried] == list(range(2, 2 + BLOCKED_APPENDS))


def test_a_locked_session_does_not_take_the_connections_of_an_embedded_client(postgres: PostgresServer) -> None:
    url = postgres.new_migrated_database()
    settings = holdfast.Settings(request_timeout_seconds=3, worker_threads=0)
    with holdfast.connect(url, settings=settings) as client, ThreadPoolExecutor(20) as threads:
        for session in ("chat", "other"):
            client.add_message(session, "user", "first")
        with locked_session(url, "default", "chat"):
            blocked = [threads.submit(client.add_message, "chat", "user", "blocked") for _ in range(20)]
            time.sleep(0.3)
            begun = time.monotonic()
            assert client.add_message("other", "user", "second").seq == 2
            assert len(client.get_messages("chat").messages) == 1
            assert time.monotonic() - begun < MAX_ANSWER_SECONDS
            for future in blocked:
                with pytest.raises(UnavailableError, match=r"locked by another transaction .*nothing was written"):
                    future.result()
        assert client.add_message("chat", "user", "second").seq == 2


def test_a_write_gets_its_lock_after_the_process_that_held_it_has_stopped(postgres: PostgresServer) -> None:
    """PostgreSQL ends a transaction that sends nothing. If its process continues, the transaction runs again."""
    url, is_locked, continues = postgres.new_migrated_database(), threading.Event(), threading.Event()
    stopped, other = PostgresDatabase(url, request_seconds=6), PostgresDatabase(url, request_seconds=6)
    runs: list[int] = []

    def stop_in_transaction(tx: Tx) -> None:
        tx.one("SELECT pg_advisory_xact_lock(7)")
        runs.append(1)
        is_locked.set()
        assert continues.wait(20)
        tx.one("SELECT 1")

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(stopped.write, "acme", stop_in_transaction)
        assert is_locked.wait(20)
        begun = time.monotonic()
        other.write("acme", lambda tx: tx.one("SELECT pg_advisory_xact_lock(7)"))
        assert 0.5 < time.monotonic() - begun < 5
        continues.set()
        future.result()
    assert len(runs) == 2
    stopped.close()
    other.close()
