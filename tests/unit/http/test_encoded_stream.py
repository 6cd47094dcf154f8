"""The JSON of a streamed result equals the JSON of the whole result."""

from typing import Any

import msgspec
import pytest

from holdfast.engine.gate.streams import Page, StreamedResult
from holdfast.http.encoded_stream import EncodedStream
from holdfast.model.archives import Archive
from holdfast.model.sessions import Event, EventPage


class Pages:
    """Reads the pages of a result without a database."""

    def read_next(self, page: Page[Any], _max_bytes: int) -> Page[Any]:
        assert page.read_next is not None
        return page.read_next(None)  # type: ignore[arg-type]  # no transaction


def pages(items: list[list[Any]], ending: dict[str, Any]) -> Page[Any]:
    if len(items) == 1:
        return Page(items[0], ending=ending)
    return Page(items[0], lambda _tx: pages(items[1:], ending))


EVENTS = [Event(id=str(number), event="message") for number in range(5)]
TEXT = 'line "one"\n\u00e9\u4e2d\U0001f600\x01\\'


@pytest.mark.parametrize(
    ("result", "field", "items", "ending", "whole"),
    [
        (
            EventPage([], ""),
            "events",
            [EVENTS[:2], [], EVENTS[2:]],
            {"cursor": "4", "has_more": True},
            EventPage(EVENTS, "4", has_more=True),
        ),
        (EventPage([], ""), "events", [[], EVENTS], {"cursor": "4"}, EventPage(EVENTS, "4")),
        (EventPage([], ""), "events", [[], []], {}, EventPage([], "")),
        (
            Archive(archive_id="a", abstract="b", overview="c", messages=[]),
            "messages",
            [[1], [2]],
            {},
            {"archive_id": "a", "abstract": "b", "overview": "c", "messages": [1, 2]},
        ),
        ([], None, [[1], [2, 3]], {}, [1, 2, 3]),
        ("", None, [[TEXT], [], [TEXT, TEXT]], {}, TEXT * 3),
    ],
)
def test_a_streamed_result_is_encoded_as_the_whole_result(
    result: Any, field: str | None, items: list[list[Any]], ending: dict[str, Any], whole: Any
) -> None:
    stream = EncodedStream(Pages(), StreamedResult(result, field, pages(items, ending)))  # type: ignore[arg-type]
    size, encoded = stream.size, stream.take_beginning()
    assert (size, stream.size) == (len(encoded), 0)
    while stream.has_more:
        encoded += stream.read_next(1_000)
    assert encoded + stream.encode_end() == msgspec.json.encode(whole)
