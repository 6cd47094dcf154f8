"""Lists of any length: a server reads and sends them page by page."""

import sqlite3
import time
from pathlib import Path

import httpx2

import holdfast
from holdfast.testing.faults.watching import peak_memory
from holdfast.testing.server import running_server

SESSIONS = 100_000
COPY = (
    "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count} - 1)"
    " INSERT INTO sessions SELECT {columns} FROM sessions, numbers"
)


def add_copies(database: Path, count: int) -> None:
    """Copy the only session until there are `count`, which is faster than creating them."""
    with sqlite3.connect(database) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")]
        copied = {"session_id": "'copy-' || number", "log_id": "log_id + number", "metadata": "'{}'"}
        connection.execute(COPY.format(count=count, columns=", ".join(copied.get(name, name) for name in names)))
    connection.close()


def test_a_list_of_sessions_without_a_limit_has_every_session(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        created = http.post("/api/v1/sessions", json={"session_id": "first", "metadata": {"large": "x" * 60_000}})
        assert created.status_code == 200
        (database,) = tmp_path.glob("*.db")
        add_copies(database, SESSIONS)
        assert http.get("/api/v1/sessions?limit=1000").json()["next_cursor"]
        memory, started_at = peak_memory(server), time.monotonic()
        count, oldest = 0, b""
        with http.stream("GET", "/api/v1/sessions") as response:
            for piece in response.iter_bytes():
                count += piece.count(b'"session_id"')  # a piece ends in the middle of a name in few cases
                oldest = (oldest + piece)[-1_000:]
        assert abs(count - SESSIONS) < SESSIONS / 100
        assert b'"first"' in oldest
        assert oldest.endswith(b"}")
        assert b'"next_cursor":null' in oldest
        assert peak_memory(server) - memory < 40_000_000
        assert time.monotonic() - started_at < 30
        with holdfast.connect(server.url) as client:
            rows = client.list_sessions()
            assert (len(rows), rows.next_cursor) == (SESSIONS, None)
            assert [rows[0].session_id, rows[-1].session_id] == [f"copy-{SESSIONS - 1}", "first"]
            assert len({row.session_id for row in rows}) == SESSIONS
            page = client.list_sessions(limit=3)
            assert [row.session_id for row in client.list_sessions(cursor=page.next_cursor)[:2]] == [
                row.session_id for row in rows[3:5]
            ]
