"""Appends to one session while another, large one is deleted: in slices, compared with one transaction.

The ratio is that of the longest appends.
"""

import threading
import time
from unittest.mock import patch

import holdfast
from holdfast.engine.sessions import deletion
from measure import Figure, Series, check_at_most, compute_statistics
from scale import Setup
from texts import Texts

BATCH = 100
PAUSE_SECONDS = 0.002
MAX_SECONDS = 120.0


def measure(setup: Setup) -> list[Figure]:
    count = setup.scale.deleted_messages
    in_slices = _appends_during_deletion(setup, "sliced")
    with patch.object(deletion, "FIRST_SLICE_ROWS", 10 * count):
        at_once = _appends_during_deletion(setup, "at_once")
    measured, baseline = compute_statistics(in_slices), compute_statistics(at_once)
    longest = measured.max * 1e3, baseline.max * 1e3
    return [
        Figure(
            name=f"append while {count:,} messages are deleted",
            measured=measured,
            baseline_name="the same, deleted in one transaction",
            baseline=baseline,
            ratio=measured.max / baseline.max,
            checks=[check_at_most(0.1, measured.p99, "p99 < 100 ms")],
            notes=[f"deletion: the longest append took {longest[0]:.0f} ms; in one transaction {longest[1]:.0f} ms"],
        )
    ]


def _appends_during_deletion(setup: Setup, name: str) -> Series:
    """Append until the deleted session has no rows left. Return the times of the appends."""
    texts = Texts(seed=3)
    with holdfast.connect(setup.folder / f"{name}.db") as client:
        for _ in range(0, setup.scale.deleted_messages, BATCH):
            client.batch_add_messages("large", [{"role": "user", "content": text} for text in texts.several(BATCH)])
        for text in texts.several(BATCH):
            client.add_message("other", "user", text)
        wall: list[float] = []
        deleting = threading.Thread(target=client.delete_session, args=("large",))
        cpu, deadline = time.thread_time(), time.monotonic() + MAX_SECONDS
        deleting.start()
        while not wall or (time.monotonic() < deadline and (deleting.is_alive() or _is_busy(client))):
            begun = time.perf_counter()
            client.add_message("other", "user", texts.one())
            wall.append(time.perf_counter() - begun)
            time.sleep(PAUSE_SECONDS)
        deleting.join()
        return Series(wall, time.thread_time() - cpu)


def _is_busy(client: holdfast.Client) -> bool:
    return any(task.status in {"pending", "running"} for task in client.list_tasks(task_type="session_delete"))
