"""A server that is running while a newer version upgrades its database."""

import httpx2
import pytest

from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.store import migrations
from holdfast.store.migrations import Migration
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.server import TIMEOUT_SECONDS, running_server

MESSAGES = "/api/v1/sessions/s/messages"
NEWER = migrations.newest_known("sqlite") + 1


def test_it_is_not_ready_refuses_writes_and_still_serves_reads(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        running_server(target) as server,
        httpx2.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as http,
    ):
        message = {"role": "user", "content": "hi"}
        assert http.post(MESSAGES, json=message).status_code == 200
        assert http.get("/ready").status_code == 200
        available = migrations.list_available
        later = Migration(NEWER, f"{NEWER:04}_later", "CREATE TABLE later (id integer)")
        monkeypatch.setattr(migrations, "list_available", lambda dialect: [*available(dialect), later])
        monkeypatch.setattr(migrations, "newest_known", lambda _dialect: NEWER)
        newer_version = open_database(target, Settings())
        newer_version.migrate(0)
        newer_version.close()
        response = http.post(MESSAGES, json=message)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "UNAVAILABLE")
        assert f"the database has schema {NEWER}" in response.json()["error"]["message"]
        wait_for(lambda: http.get("/ready").status_code == 503)  # a result is used for a second
        assert http.get("/health").status_code == 200
        assert len(http.get(MESSAGES).json()["result"]["messages"]) == 1
