"""A backup while many threads write, and the comparison of the restored copy with what was acknowledged."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import holdfast
from holdfast.testing.faults.damage import NO_WORKERS, list_damage

WRITERS = 64
PROGRESS_TIMEOUT_SECONDS = 10.0
"""How long to wait for every writer to make progress."""


class Writers:
    """Threads that each append numbered messages to a session of their own."""

    def __init__(self, client: holdfast.Client, count: int = WRITERS) -> None:
        self._client = client
        self._stop = threading.Event()
        self.acknowledged = [0] * count
        """The last acknowledged message of each writer."""
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_progress(self) -> None:
        """Wait until every writer has had a further message acknowledged."""
        before, deadline = list(self.acknowledged), time.monotonic() + PROGRESS_TIMEOUT_SECONDS
        while any(now <= then for now, then in zip(self.acknowledged, before, strict=True)):
            assert not self.errors, self.errors
            assert time.monotonic() < deadline, "the writers make no progress"
            time.sleep(0.005)

    def _write(self, number: int) -> None:
        try:
            while not self._stop.is_set():
                seq = self.acknowledged[number] + 1
                appended = self._client.add_message(f"writer_{number}", "user", text_of(number, seq))
                self.acknowledged[number] = appended.seq
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)


def text_of(number: int, seq: int) -> str:
    return f"message {seq} of writer {number}"


@contextmanager
def writing(client: holdfast.Client) -> Iterator[Writers]:
    writers = Writers(client)
    writers.start()
    try:
        writers.wait_for_progress()
        yield writers
    finally:
        writers.stop()


def back_up_under_load(client: holdfast.Client, back_up: Callable[[], object]) -> tuple[list[int], list[int]]:
    """Run a backup while all writers write. Return what was acknowledged before and after it."""
    with writing(client) as writers:
        before = list(writers.acknowledged)
        back_up()
        writers.wait_for_progress()
    assert not writers.errors, writers.errors
    return before, list(writers.acknowledged)


def check_restored(file: Path, before: list[int], after: list[int]) -> None:
    """Check that a restored database has a prefix of each session, with all that was acknowledged before the backup."""
    assert list_damage(file) == []
    counts: list[int] = []
    with holdfast.connect(file, settings=NO_WORKERS) as client:
        for number, (least, most) in enumerate(zip(before, after, strict=True)):
            texts = []
            first: int | None = 1
            while first is not None:
                page = client.get_messages(f"writer_{number}", first=first, limit=1_000)
                texts += [message.text for message in page.messages]
                first = page.next_seq
            assert least <= len(texts) <= most, (number, least, len(texts), most)
            assert texts == [text_of(number, seq) for seq in range(1, len(texts) + 1)]
            counts.append(len(texts))
        assert client.add_message("writer_0", "user", "goes on").seq == counts[0] + 1
