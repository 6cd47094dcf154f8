"""A rerank service decides the order of hits, if the settings name one. It is a real server on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from holdfast import connect
from holdfast.config import Settings

TURNS = ["We moved to Graz", "The cat sleeps on the sofa", "My sister Anna plays the cello", "It rained all day"]


@contextmanager
def rerank_server(score: str) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Serve `/rerank`: a text with the word cat has a high score, in the scale of `score`."""
    requests: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            scores = {"probability": (0.9, 0.1), "logit": (6.0, -6.0), "huge": (10**400, 1)}
            high, low = scores.get(score, (0.0, 0.0))
            results = [
                {"index": index, "relevance_score": high if "cat" in text else low}
                for index, text in enumerate(body["documents"])
            ]
            self.send_response(500 if score == "down" else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("score", ["probability", "logit"])
def test_a_service_decides_the_order_and_its_share_is_a_reason(score: str) -> None:
    with rerank_server(score) as (url, requests), connect(":memory:", settings=Settings(rerank_base_url=url)) as client:
        client.session("trip").add_messages([{"role": "user", "content": text} for text in TURNS])
        found = client.search("Which instrument does Anna play?").messages
    assert requests[0]["query"] == "Which instrument does Anna play?"
    assert found[0].message.text == "The cat sleeps on the sofa"
    assert found[0].reasons[0].signal == "rerank"
    for hit in found:
        assert 0 <= hit.score <= 1
        assert sum(reason.share for reason in hit.reasons) == pytest.approx(hit.score)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


@pytest.mark.parametrize("score", ["down", "huge"])
def test_a_service_that_is_down_or_answers_nonsense_costs_a_note_and_not_the_search(score: str) -> None:
    with rerank_server(score) as (url, _), connect(":memory:", settings=Settings(rerank_base_url=url)) as client:
        client.session("trip").add_messages([{"role": "user", "content": text} for text in TURNS])
        result = client.search("Which instrument does Anna play?")
    assert result.messages[0].message.text == "My sister Anna plays the cello"
    assert any(note.startswith("not reranked: ") for note in result.query_plan.notes)


def test_recalled_text_that_is_added_again_is_not_found_a_second_time() -> None:
    with connect(":memory:") as client:
        client.session("trip").add_messages([{"role": "user", "content": text} for text in TURNS])
        block = client.search("Anna cello", mode="context").rendered
        client.session("next").add_message("user", f"{block}\nWhat do you think?")
        hits = client.search("Anna cello").messages
    assert hits[0].session_id == "trip"
    assert all("words" not in {reason.signal for reason in hit.reasons} for hit in hits if hit.session_id == "next")
