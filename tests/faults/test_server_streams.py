"""An event stream reader that is repeatedly disconnected, by itself and by kills of the server."""

import random
import threading
from collections import Counter
from contextlib import ExitStack
from typing import Any

import holdfast
from holdfast.errors import UnavailableError
from holdfast.model.sessions import Event
from holdfast.testing.faults.connections import TIMEOUT_SECONDS, find_stable_port
from holdfast.testing.faults.streams import ReconnectingReader, ServerEvent
from holdfast.testing.server import running_server

KILLS = 3
EVENTS_BETWEEN_KILLS = 60
LAST_TEXT = "the end"


class Writer(threading.Thread):
    """Adds messages and changes the title, each with a unique label."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self.succeeded: list[str] = []
        self.unknown: list[str] = []
        self.stop = threading.Event()
        self._url = url
        self._prefix = name

    def run(self) -> None:
        rng = random.Random(self._prefix)
        with holdfast.connect(self._url, settings=holdfast.Settings(http_attempts=10)) as client:
            number = 0
            while not self.stop.is_set():
                number += 1
                label = f"{self._prefix}n{number}"
                try:
                    if number % 4 == 0:
                        client.update_session("chat", title=label)
                    else:
                        client.add_message("chat", "user", f"{label} {'x' * rng.randint(1, 2_000)}")
                except UnavailableError:  # a change has no key, so it is not retried
                    self.unknown.append(label)
                else:
                    self.succeeded.append(label)


def is_last(event: ServerEvent) -> bool:
    return event.event == "message" and event.data["parts"][0]["text"] == LAST_TEXT


def event_data(event: Event) -> dict[str, Any]:
    content = event.message or event.change
    assert content is not None
    return content.to_dict()


def label_of(event: Event) -> str:
    if event.message is not None:
        return event.message.text.split(" ")[0]
    assert event.change is not None
    return str(event.change.data["title"])


def read_all_events(target: str) -> list[Event]:
    events: list[Event] = []
    with holdfast.connect(target) as client:
        while len(page := client.read_events("chat", after=events[-1].id if events else None).events) == 100:
            events += page
    return events + page


def test_a_reader_that_is_disconnected_anywhere_gets_every_event_once_and_in_order(target: str) -> None:
    port = find_stable_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"stream_poll_seconds": 0.1, "max_streams_per_user": 1_000}
    reader = ReconnectingReader(url, "chat", random.Random(11))
    reading = threading.Thread(target=reader.read_until, args=(is_last,))
    writers = [Writer(url, f"w{number}") for number in range(4)]
    with ExitStack() as stack:
        server = stack.enter_context(running_server(target, port=port, **settings))
        client = stack.enter_context(holdfast.connect(url))
        client.create_session("chat", title="the beginning")
        for thread, stop in ((reading, reader.stop), *((writer, writer.stop) for writer in writers)):
            thread.start()
            stack.callback(thread.join)
            stack.callback(stop.set)
        for kill in range(1, KILLS + 1):
            reader.wait_for_events(EVENTS_BETWEEN_KILLS * kill)
            server.kill()
            server = stack.enter_context(running_server(target, port=port, **settings))
        reader.wait_for_events(EVENTS_BETWEEN_KILLS * (KILLS + 1))
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join()
        client.add_message("chat", "user", LAST_TEXT)
        reading.join(TIMEOUT_SECONDS)
        assert not reading.is_alive(), "the reader did not get the last event"
        assert server.stop() == 0
    stored = read_all_events(target)
    assert [event.id for event in reader.events] == [event.id for event in stored]
    assert [event.data for event in reader.events] == [event_data(event) for event in stored]
    seqs = [event.data["seq"] for event in reader.events if event.event == "message"]
    assert seqs == list(range(1, len(seqs) + 1))
    labels = Counter(label_of(event) for event in stored[1:-1])
    assert set(labels.values()) == {1}
    succeeded = {label for writer in writers for label in writer.succeeded}
    unknown = {label for writer in writers for label in writer.unknown}
    assert succeeded <= labels.keys() <= succeeded | unknown
    assert reader.connections > 10
