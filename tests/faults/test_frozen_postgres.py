"""A PostgreSQL server that no longer answers, while its connections stay open."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from holdfast.testing.faults.watching import wait_for
from holdfast.testing.postgres import PostgresServer, postgres_server
from holdfast.testing.server import running_server

ROOT_KEY = "root-key-of-this-test"
HEADERS = {"X-API-Key": ROOT_KEY}
PROBES = 20
MAX_ANSWER_SECONDS = 3.0
"""Far longer than the event loop needs on a busy machine, far shorter than a call waits for a frozen database."""


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server for one test, because freezing the shared one would block other tests."""
    with postgres_server() as server:
        yield server


def test_the_server_answers_health_checks_while_every_operation_waits_for_a_frozen_database(
    own_postgres: PostgresServer,
) -> None:
    with (
        running_server(own_postgres.new_database(), root_api_key=ROOT_KEY, request_timeout_seconds=8) as server,
        ThreadPoolExecutor(40) as threads,
        httpx2.Client(base_url=server.url, timeout=30) as http,
    ):
        account = http.post("/api/v1/admin/accounts", json={"account_id": "acme"}, headers=HEADERS).json()["result"]
        user = {"X-API-Key": account["user_key"]}
        message = {"role": "user", "content": "hello"}
        assert http.post("/api/v1/sessions/chat/messages", json=message, headers=user).status_code == 200

        def send(verb: str, path: str, headers: dict[str, str], body: object) -> int:
            return httpx2.request(verb, f"{server.url}{path}", headers=headers, json=body, timeout=30).status_code

        def health(headers: dict[str, str]) -> float:
            begin = time.monotonic()
            assert http.get("/health", headers=headers).json()["healthy"] is True
            return time.monotonic() - begin

        with own_postgres.frozen():
            waiting = [
                threads.submit(send, verb, f"/api/v1{path}", headers, body)
                for _ in range(4)
                for verb, path, headers, body in [
                    ("GET", "/tasks/task_of_somebody", HEADERS, None),
                    ("POST", "/tasks/task_of_somebody/cancel", HEADERS, {}),
                    ("POST", "/tasks/task_of_somebody/retry", HEADERS, {}),
                    ("GET", "/tasks", HEADERS, None),
                    ("GET", "/sessions", user, None),
                    ("POST", "/sessions/chat/messages", user, message),
                    ("POST", "/sessions/chat/commit", user, {}),
                    ("GET", "/sessions/chat", {"X-API-Key": "hf.YWNtZQ.0123456789abcdef.unknown"}, None),
                    ("POST", "/system/wait", user, {}),
                ]
            ]
            answers = [health(headers) for _ in range(PROBES) for headers in ({}, HEADERS, user)]
            assert max(answers) < MAX_ANSWER_SECONDS
            begin = time.monotonic()
            assert http.get("/ready").status_code == 503
            assert time.monotonic() - begin < MAX_ANSWER_SECONDS
            assert not any(call.done() and call.result() < 400 for call in waiting)
        statuses = {call.result() for call in waiting}
        assert statuses <= {200, 401, 404, 500, 503, 504}
        for _ in range(50):
            if http.get("/ready").status_code == 200:
                break
            time.sleep(0.2)
        assert http.post("/api/v1/sessions/chat/messages", json=message, headers=user).status_code == 200


def test_a_server_whose_database_does_not_respond_is_not_ready(own_postgres: PostgresServer) -> None:
    """Callers get an error in time, and the threads and connections that waited are free again."""
    message = {"role": "user", "content": "hello"}
    with (
        running_server(own_postgres.new_database(), request_timeout_seconds=2, close_seconds=1) as server,
        httpx2.Client(base_url=server.url, timeout=30) as http,
    ):
        path = "/api/v1/sessions/chat/messages"
        assert http.post(path, json=message, headers={"Idempotency-Key": "first"}).status_code == 200
        assert http.get("/ready").status_code == 200
        with own_postgres.frozen():
            assert http.post(path, json=message, headers={"Idempotency-Key": "second"}).status_code in {503, 504}
            assert http.get("/ready").status_code == 503
            assert http.get("/health").status_code == 200
        retried = http.post(path, json=message, headers={"Idempotency-Key": "second"})
        assert (retried.status_code, retried.json()["result"]["seq"]) == (200, 2)
        wait_for(lambda: http.get("/ready").status_code == 200)  # the probe of before may still wait for its end
