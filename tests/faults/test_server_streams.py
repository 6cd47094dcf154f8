"""A reader of a session's events that is cut off again and again, by itself and by the death of the server."""

import random
import threading
from collections import Counter
from contextlib import ExitStack
from typing import Any

import holdfast
from holdfast.errors import UnavailableError
from holdfast.model.sessions import Event
from holdfast.testing.faults.connections import PATIENCE, lasting_port
from holdfast.testing.faults.streams import Follower, ServerEvent
from holdfast.testing.server import running_server

KILLS = 3
THE_END = "the end"


class Writer(threading.Thread):
    """Adds messages and changes the title, each with a mark of its own."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self.certain: list[str] = []
        self.doubtful: list[str] = []
        self.stop = threading.Event()
        self._url = url
        self._prefix = name

    def run(self) -> None:
        draw = random.Random(self._prefix)
        with holdfast.connect(self._url, settings=holdfast.Settings(http_attempts=10)) as client:
            number = 0
            while not self.stop.is_set():
                number += 1
                mark = f"{self._prefix}n{number}"
                try:
                    if number % 4 == 0:
                        client.update_session("chat", title=mark)
                    else:
                        client.add_message("chat", "user", f"{mark} {'x' * draw.randint(1, 2_000)}")
                except UnavailableError:  # a change has no key, and so is not asked for again
                    self.doubtful.append(mark)
                else:
                    self.certain.append(mark)


def is_the_end(event: ServerEvent) -> bool:
    return event.event == "message" and event.data["parts"][0]["text"] == THE_END


def as_told(event: Event) -> dict[str, Any]:
    told = event.message or event.change
    assert told is not None
    return told.to_dict()


def mark_of(event: Event) -> str:
    if event.message is not None:
        return event.message.text.split(" ")[0]
    assert event.change is not None
    return str(event.change.data["title"])


def everything(target: str) -> list[Event]:
    events: list[Event] = []
    with holdfast.connect(target) as client:
        while len(page := client.read_events("chat", after=events[-1].id if events else None).events) == 100:
            events += page
    return events + page


def test_a_reader_that_is_cut_off_anywhere_sees_everything_once_and_in_order(target: str) -> None:
    port = lasting_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"stream_poll_seconds": 0.1, "max_streams_per_user": 1_000}
    follower = Follower(url, "chat", random.Random(11))
    following = threading.Thread(target=follower.follow, args=(is_the_end,))
    writers = [Writer(url, f"w{number}") for number in range(4)]
    with ExitStack() as stack:
        server = stack.enter_context(running_server(target, port=port, **settings))
        client = stack.enter_context(holdfast.connect(url))
        client.create_session("chat", title="the beginning")
        for thread, stop in ((following, follower.stop), *((writer, writer.stop) for writer in writers)):
            thread.start()
            stack.callback(thread.join)
            stack.callback(stop.set)
        for kill in range(1, KILLS + 1):
            follower.wait_for_events(60 * kill)
            server.kill()
            server = stack.enter_context(running_server(target, port=port, **settings))
        follower.wait_for_events(60 * (KILLS + 1))
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join()
        client.add_message("chat", "user", THE_END)
        following.join(PATIENCE)
        assert not following.is_alive(), "the reader has not come to the end"
        assert server.stop() == 0
    truth = everything(target)
    assert [event.id for event in follower.seen] == [event.id for event in truth]
    assert [event.data for event in follower.seen] == [as_told(event) for event in truth]
    seqs = [event.data["seq"] for event in follower.seen if event.event == "message"]
    assert seqs == list(range(1, len(seqs) + 1))
    marks = Counter(mark_of(event) for event in truth[1:-1])
    assert set(marks.values()) == {1}
    certain = {mark for writer in writers for mark in writer.certain}
    doubtful = {mark for writer in writers for mark in writer.doubtful}
    assert certain <= marks.keys() <= certain | doubtful
    assert follower.connections > 10
