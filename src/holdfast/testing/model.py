"""A language model for tests: a real HTTP server that answers as told, and can fail in every way that models do.

>>> with running_model() as model:
...     model.calls
0

It speaks the chat and embeddings endpoints of OpenAI under `model.url` and the messages endpoint of Anthropic. As a
process of its own, `python -m holdfast.testing.model` prints its URL; `GET {url}/control` tells what it was asked,
`POST {url}/control` sets the fields of its `Behaviour`.
"""

import argparse
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Literal

import msgspec

from holdfast.testing.answers import TURN, prose, summary_like, vector_of

PATIENCE = 30.0

Kind = Literal[
    "normal",
    "limited",
    "wrong",
    "broken",
    "truncated",
    "cut",
    "hung up",
    "down",
    "refusing",
    "confused",
    "repeating",
    "web page",
]
Format = Literal["json_schema", "json_object", "text"]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """What the model does with a call."""

    kind: Kind = "normal"
    """normal; limited: 429; wrong: prose instead of JSON; broken: JSON with mistakes; truncated: stops in the middle,
    and says so; cut: the connection ends in the middle of the answer; hung up: it ends before; down: 503;
    refusing: 401, which repeats the key; confused: a success that is no answer; repeating: a failure with `status`
    that repeats the prompt and the key wherever it can; web page: HTML that repeats them."""

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] = 400
    """Of the answer when it is repeating."""

    seconds: float = 0.0
    """How long each answer takes."""

    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """For how many calls; normal afterwards. None is for ever."""

    retry_after: float | None = None
    """What it says when it is limited or down."""

    formats: tuple[Format, ...] = ("json_schema", "json_object", "text")
    """Which ways to ask for JSON it knows; it answers 400 to the others."""

    bound: str = "max_tokens"
    """The only word for the bound of an answer that it knows, or both as `max_tokens max_completion_tokens`."""

    text: str | None = None
    """What it says instead of an answer of its own."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All that the model was told, joined."""
        said = [self.body.get("system", ""), *(one["content"] for one in self.body.get("messages", []))]
        return "\n".join(text for text in said if text)

    @property
    def words(self) -> str:
        """Every word that came, for a server that repeats them: the key, what people said, then the whole prompt."""
        key = self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
        said = [text for _alias, _role, text in TURN.findall(self.prompt)]
        return "\n".join([key, *said, *map(str, self.body.get("input", [])), self.prompt])

    @property
    def in_a_line(self) -> str:
        return " ".join(self.words[:1_000].split())


class FakeModel:
    """Behaves as `behaviour` says, which may be changed at any time, and remembers what it was asked."""

    def __init__(self, behaviour: Behaviour | Kind = "normal", port: int = 0) -> None:
        self.behaviour = behaviour
        self.gate = threading.Event()
        """Calls wait while it is cleared: `model.gate.clear()` holds them, `model.gate.set()` lets them go on."""
        self.gate.set()
        self.connections = 0
        """How many were ever opened."""
        self._asked: list[Asked] = []
        self._changed = threading.Condition()
        self._port = port
        self.start()

    @property
    def behaviour(self) -> Behaviour:
        return self._behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour | Kind) -> None:
        self._behaviour = Behaviour(kind=behaviour) if isinstance(behaviour, str) else behaviour

    @property
    def url(self) -> str:
        """The base URL for either protocol."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[Asked]:
        with self._changed:
            return list(self._asked)

    @property
    def calls(self) -> int:
        with self._changed:
            return len(self._asked)

    def forget(self) -> None:
        with self._changed:
            self._asked.clear()

    def wait_for_calls(self, count: int, patience: float = PATIENCE) -> None:
        """Until that many calls have come, answered or not."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._asked) >= count, patience):
                raise AssertionError(f"{len(self._asked)} calls came, not {count}")

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.model = self
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """As if the process had died: open connections end, and new ones are refused until `start`."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()

    def _take(self, asked: Asked) -> Behaviour:
        """Remember a call and tell how to behave to it."""
        with self._changed:
            self._asked.append(asked)
            self._changed.notify_all()
            now = self._behaviour
            if now.times is not None:
                left = {"times": now.times - 1} if now.times > 1 else {"kind": "normal", "seconds": 0.0, "times": None}
                self._behaviour = msgspec.structs.replace(now, **left)
            return now


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512
    model: FakeModel

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        self.model.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who is gone is no news."""

    def hang_up(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """The tests have their own reports."""

    def do_GET(self) -> None:
        model = self.server.model
        told = {"behaviour": model.behaviour, "calls": model.calls, "requests": [one.body for one in model.requests]}
        self._send(200, told) if self.path == "/control" else self._send(404, _problem("there is nothing here"))

    def do_POST(self) -> None:
        model = self.server.model
        body = msgspec.json.decode(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.path == "/control":
            current = msgspec.structs.asdict(model.behaviour)
            model.behaviour = msgspec.convert({**current, **body}, Behaviour)
            self._send(200, {"behaviour": model.behaviour})
            return
        asked = Asked(path=self.path, headers={name.lower(): value for name, value in self.headers.items()}, body=body)
        behaviour = model._take(asked)
        model.gate.wait(PATIENCE)
        time.sleep(behaviour.seconds)
        if not self._failed(behaviour, asked):
            self._answer(behaviour, asked)

    def _failed(self, behaviour: Behaviour, asked: Asked) -> bool:
        """Whether the call ends without an answer, as a behaviour demands."""
        wait = {} if behaviour.retry_after is None else {"Retry-After": f"{behaviour.retry_after:g}"}
        match behaviour.kind:
            case "hung up":
                self.close_connection = True
            case "limited":
                self._send(429, _problem("Rate limit reached, try again later"), wait)
            case "down":
                self._send(503, _problem("The server is overloaded"), wait)
            case "refusing":
                self._send(401, _problem(f"Incorrect API key provided: {asked.words.splitlines()[0]}"))
            case "repeating":
                self._send(behaviour.status, _echo(asked), wait, reason=asked.in_a_line)
            case "web page":
                self._send(200, f"<html>{asked.words}</html>", {"X-Words": asked.in_a_line}, kind="text/html")
            case "confused":
                self._send(200, {"object": "thing"})
            case _:
                return self._cannot_be_asked_so(behaviour, asked.body)
        return True

    def _cannot_be_asked_so(self, behaviour: Behaviour, body: dict[str, Any]) -> bool:
        way = body.get("response_format", {}).get("type", "text")
        way = "json_schema" if "output_config" in body else "json_object" if "tools" in body else way
        if way not in behaviour.formats:
            self._send(400, _problem(f"This response_format type is unavailable now: {way}"))
            return True
        for word in ("max_tokens", "max_completion_tokens"):
            if word in body and word not in behaviour.bound.split():
                told = f"Unsupported parameter: '{word}' is not supported. Use '{behaviour.bound}' instead."
                self._send(400, _problem(told))
                return True
        return False

    def _answer(self, behaviour: Behaviour, asked: Asked) -> None:
        if asked.path.endswith("/embeddings"):
            rows = [
                {"object": "embedding", "index": at, "embedding": vector_of(text)}
                for at, text in enumerate(asked.body["input"])
            ]
            self._send(200, {"object": "list", "data": rows[::-1], "model": asked.body["model"]})
            return
        text = behaviour.text if behaviour.text is not None else self._said(behaviour, asked)
        make = _anthropic if asked.path.endswith("/messages") else _openai
        self._send(200, make(asked, text, truncated=behaviour.kind == "truncated"), cut=behaviour.kind == "cut")

    def _said(self, behaviour: Behaviour, asked: Asked) -> str:
        text = summary_like(asked.body, asked.prompt)
        match behaviour.kind:
            case "wrong":
                return prose(asked.prompt)
            case "broken":
                return f"Here it is:\n```json\n{text[:-1].replace('], ', '],], ', 1)},}}\n```\nI hope it helps!"
            case "truncated":
                return text[: len(text) * 2 // 3]
            case _:
                return text

    def _send(
        self,
        status: int,
        body: Any,
        headers: dict[str, str] | None = None,
        *,
        cut: bool = False,
        reason: str | None = None,
        kind: str = "application/json",
    ) -> None:
        content = body.encode() if kind == "text/html" else msgspec.json.encode(body)
        self.send_response(status, reason and reason.encode("ascii", "replace").decode())
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value.encode("ascii", "replace").decode())
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = self.close_connection or cut


def _echo(asked: Asked) -> dict[str, Any]:
    """A failure with the caller's words as its message, the longest of them as its type, and the key as its code."""
    key = asked.words.splitlines()[0]
    word = max(asked.words.removeprefix(key).split(), key=len, default="")[:64]
    return {"error": {"message": asked.words, "type": word, "code": key, "param": asked.words}, "detail": asked.words}


def _problem(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "error", "message": message, "code": None}}


def _openai(asked: Asked, text: str, *, truncated: bool) -> dict[str, Any]:
    prompt, completion = len(asked.prompt) // 3 + 7, len(text) // 3 + 1
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": asked.body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if truncated else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
            "completion_tokens_details": {"reasoning_tokens": completion // 2},
        },
    }


def _anthropic(asked: Asked, text: str, *, truncated: bool) -> dict[str, Any]:
    prompt, completion = len(asked.prompt) // 3 + 7, len(text) // 3 + 1
    block: dict[str, Any] = {"type": "text", "text": text}
    if "tools" in asked.body:
        name, given = asked.body["tools"][0]["name"], {}
        with suppress(msgspec.DecodeError):
            given = msgspec.json.decode(text)
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [block],
        "stop_reason": "max_tokens" if truncated else "end_turn",
        "usage": {
            "input_tokens": prompt - prompt // 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": prompt // 2,
            "output_tokens": completion,
        },
    }


@contextmanager
def running_model(behaviour: Behaviour | Kind = "normal", port: int = 0) -> Iterator[FakeModel]:
    model = FakeModel(behaviour, port)
    try:
        yield model
    finally:
        model.gate.set()
        model.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="A language model for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--kind", default="normal")
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    behaviour = msgspec.convert({"kind": given.kind, "seconds": given.seconds}, Behaviour)
    with running_model(behaviour, given.port) as model:
        print(model.url.removesuffix("/v1"), flush=True)  # noqa: T201 - who started it reads it
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
