"""Clients that ask for large responses do not delay other users, and do not fill the memory of the server.

`tests/soak/test_unread_responses.py` has the same attacks at full size.
"""

from pathlib import Path

import pytest

from holdfast.testing.faults.attacks import attackers, fill_session, measure
from holdfast.testing.faults.watching import peak_memory
from holdfast.testing.server import running_server

MEGABYTE = 1_000_000
SESSION = "/api/v1/sessions/big"
PATHS = [
    f"{SESSION}/events?limit=1000",
    f"{SESSION}/messages?limit=1000",
    f"{SESSION}/context",
    "/api/v1/content/read?uri=viking://session/big/messages.jsonl",
]


@pytest.mark.parametrize("reads", [False, True], ids=["unread", "read"])
def test_large_responses_do_not_delay_other_users(tmp_path: Path, *, reads: bool) -> None:
    with running_server(tmp_path) as server:
        fill_session(server.url, "eve", "big", 200, 100_000)
        threads = attackers(server.url, "eve", PATHS, threads=16, connections=1 if reads else 3, reads=reads)
        for thread in threads:
            thread.start()
        times = measure(server.url, 3.0)
        memory = peak_memory(server)
        for thread in threads:
            thread.stop.set()
        for thread in threads:
            thread.join()
        received = sum(thread.received for thread in threads)
    # The soak test checks the 99th percentile. Here other tests run meanwhile, and a starved request takes seconds.
    assert times.percentile("health", 0.5) < 0.5, times.describe()
    assert max(times.percentile(name, 0.5) for name in ("append", "read", "context")) < 1.0, times.describe()
    # 48 unread responses of 20 MB, or as many as the server can send
    assert memory < 300 * MEGABYTE
    assert received > 20 * MEGABYTE if reads else received == 0
