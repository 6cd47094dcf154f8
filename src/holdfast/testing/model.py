"""A fake language model for tests: an HTTP server whose responses and failures can be configured.

>>> with running_model() as model:
...     model.calls
0

It serves the chat and embeddings endpoints of OpenAI, the messages endpoint of Anthropic and the usual rerank endpoint
under `model.url`.

`python -m holdfast.testing.model` runs it as a separate process and prints its URL. `GET {url}/control` returns the
received requests; `POST {url}/control` sets the fields of its `Behaviour`.
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

from holdfast.testing.answers import (
    TURN,
    anthropic_body,
    embeddings_body,
    openai_body,
    prose_answer,
    rerank_body,
    summary_answer,
)

TIMEOUT_SECONDS = 30.0

Kind = Literal[
    "normal",
    "rate_limited",
    "unavailable",
    "unauthorized",
    "prose",
    "invalid_json",
    "truncated",
    "partial_response",
    "disconnect",
    "no_answer",
    "echo_error",
    "echo_html",
]
Format = Literal["json_schema", "json_object", "text"]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How the model responds to calls."""

    kind: Kind = "normal"
    """One of:

    - normal: a valid answer
    - rate_limited: status 429
    - unavailable: status 503
    - unauthorized: status 401, with the key in the message
    - prose: prose instead of JSON
    - invalid_json: JSON with syntax errors, surrounded by prose
    - truncated: an answer that stops in the middle and is marked as truncated
    - partial_response: the connection ends in the middle of the response
    - disconnect: the connection ends before the response
    - no_answer: status 200 with JSON that contains no answer
    - echo_error: the status `status`, with the prompt and the key wherever they can be quoted
    - echo_html: status 200 with an HTML page that quotes the prompt and the key
    """

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] = 400
    """The status of the response if the kind is echo_error."""

    seconds: float = 0.0
    """How long each response takes."""

    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """After this many calls the behaviour becomes normal. None means never."""

    retry_after: float | None = None
    """The `Retry-After` header if the kind is rate_limited or unavailable."""

    formats: tuple[Format, ...] = ("json_schema", "json_object", "text")
    """The response formats that it supports. Requests with another format get status 400."""

    token_limit_field: str = "max_tokens"
    """The field for the maximum length of the answer that it supports. Requests with another field get status 400."""

    text: str | None = None
    """The text of every answer, instead of a generated one. Of embeddings and rerank, the content of the response."""

    max_texts: int = 1_000
    """How many texts it embeds in one request. Requests with more get status 422."""

    max_text_chars: int = 1_000_000
    """How long a text may be that it embeds. Requests with a longer one get status 413."""

    texts_field: str = "documents"
    """The field for the texts of a rerank request that it supports. Requests with another field get status 422."""


class ReceivedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the model."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The system prompt and all messages, joined."""
        texts = [self.body.get("system", ""), *(message["content"] for message in self.body.get("messages", []))]
        return "\n".join(text for text in texts if text)

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")

    @property
    def quotable_text(self) -> str:
        """All text of the request, for responses that quote it: the key, the conversation, then the whole prompt."""
        turns = [text for _alias, _role, text in TURN.findall(self.prompt)]
        texts = [*self.body.get("input", []), self.body.get("query", ""), *self.body.get("documents", [])]
        return "\n".join([self.key, *turns, *map(str, texts), self.prompt])

    @property
    def quotable_line(self) -> str:
        """The start of `quotable_text` on one line, for headers."""
        return " ".join(self.quotable_text[:1_000].split())


class FakeModel:
    """Responds according to `behaviour`, which can be changed at any time, and records the requests."""

    def __init__(self, behaviour: Behaviour | Kind = "normal", port: int = 0) -> None:
        self.behaviour = behaviour
        self.gate = threading.Event()
        """Calls wait while it is cleared: `model.gate.clear()` blocks them, `model.gate.set()` resumes them."""
        self.gate.set()
        self.connections = 0
        """How many connections were opened in total."""
        self._requests: list[ReceivedRequest] = []
        self._condition = threading.Condition()
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
    def requests(self) -> list[ReceivedRequest]:
        with self._condition:
            return list(self._requests)

    @property
    def calls(self) -> int:
        with self._condition:
            return len(self._requests)

    def clear_requests(self) -> None:
        with self._condition:
            self._requests.clear()

    def wait_for_calls(self, count: int, timeout: float = TIMEOUT_SECONDS) -> None:
        """Wait until that many calls were received, answered or not."""
        with self._condition:
            if not self._condition.wait_for(lambda: len(self._requests) >= count, timeout):
                raise AssertionError(f"received {len(self._requests)} calls, expected {count}")

    def start(self) -> None:
        """Listen. After a `stop`, the port is the same as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.model = self
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Act as if the process died: open connections end, and new ones are refused until `start`."""
        self._server.shutdown()
        self._server.server_close()
        self._server.close_connections()

    def _record(self, request: ReceivedRequest) -> Behaviour:
        """Record a request and return the behaviour for its response."""
        with self._condition:
            self._requests.append(request)
            self._condition.notify_all()
            behaviour = self._behaviour
            times = behaviour.times
            if times is not None:
                changes = {"times": times - 1} if times > 1 else {"kind": "normal", "seconds": 0.0, "times": None}
                self._behaviour = msgspec.structs.replace(behaviour, **changes)
            return behaviour


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
        """Ignore errors: a client that disconnects is expected."""

    def close_connections(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        if self.path != "/control":
            self._send(404, _error_body("there is nothing here"))
            return
        model = self.server.model
        bodies = [request.body for request in model.requests]
        self._send(200, {"behaviour": model.behaviour, "calls": model.calls, "requests": bodies})

    def do_POST(self) -> None:
        model = self.server.model
        body = msgspec.json.decode(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.path == "/control":
            current = msgspec.structs.asdict(model.behaviour)
            model.behaviour = msgspec.convert({**current, **body}, Behaviour)
            self._send(200, {"behaviour": model.behaviour})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ReceivedRequest(path=self.path, headers=headers, body=body)
        behaviour = model._record(request)
        model.gate.wait(TIMEOUT_SECONDS)
        time.sleep(behaviour.seconds)
        if not self._send_failure(behaviour, request):
            self._send_answer(behaviour, request)

    def _send_failure(self, behaviour: Behaviour, request: ReceivedRequest) -> bool:
        """Respond with the failure that the behaviour demands. Return False if it demands none."""
        retry_after = {} if behaviour.retry_after is None else {"Retry-After": f"{behaviour.retry_after:g}"}
        match behaviour.kind:
            case "disconnect":
                self.close_connection = True
            case "rate_limited":
                self._send(429, _error_body("Rate limit reached, try again later"), retry_after)
            case "unavailable":
                self._send(503, _error_body("The server is overloaded"), retry_after)
            case "unauthorized":
                self._send(401, _error_body(f"Incorrect API key provided: {request.key}"))
            case "echo_error":
                self._send(behaviour.status, _echo_body(request), retry_after, reason=request.quotable_line)
            case "echo_html":
                page = f"<html>{request.quotable_text}</html>"
                self._send(200, page, {"X-Words": request.quotable_line}, media_type="text/html")
            case "no_answer":
                self._send(200, {"object": "thing"})
            case _:
                return self._send_unsupported(behaviour, request.body)
        return True

    def _send_unsupported(self, behaviour: Behaviour, body: dict[str, Any]) -> bool:
        """Respond with status 400 if the request uses an unsupported option. Return False if it does not."""
        format_ = body.get("response_format", {}).get("type", "text")
        format_ = "json_schema" if "output_config" in body else "json_object" if "tools" in body else format_
        if format_ not in behaviour.formats:
            self._send(400, _error_body(f"This response_format type is unavailable now: {format_}"))
            return True
        supported = behaviour.token_limit_field
        for field in ("max_tokens", "max_completion_tokens"):
            if field in body and field != supported:
                message = f"Unsupported parameter: '{field}' is not supported. Use '{supported}' instead."
                self._send(400, _error_body(message))
                return True
        texts = body.get("input", [])
        if len(texts) > behaviour.max_texts:
            self._send(422, _error_body(f"batch size {len(texts)} > maximum allowed {behaviour.max_texts}"))
            return True
        if max(map(len, texts), default=0) > behaviour.max_text_chars:
            self._send(413, _error_body("a text is too long"))
            return True
        if "query" in body and behaviour.texts_field not in body:
            self._send(422, _error_body(f"missing field `{behaviour.texts_field}`"))
            return True
        return False

    def _send_answer(self, behaviour: Behaviour, request: ReceivedRequest) -> None:
        if request.path.endswith(("/embeddings", "/rerank")):
            make = embeddings_body if request.path.endswith("/embeddings") else rerank_body
            self._send(200, make(request.body) if behaviour.text is None else msgspec.Raw(behaviour.text.encode()))
            return
        text = behaviour.text if behaviour.text is not None else _answer_text(behaviour, request)
        make_body = anthropic_body if request.path.endswith("/messages") else openai_body
        body = make_body(request.body, request.prompt, text, truncated=behaviour.kind == "truncated")
        self._send(200, body, is_partial=behaviour.kind == "partial_response")

    def _send(
        self,
        status: int,
        body: Any,
        headers: dict[str, str] | None = None,
        *,
        is_partial: bool = False,
        reason: str | None = None,
        media_type: str = "application/json",
    ) -> None:
        content = body.encode() if media_type == "text/html" else msgspec.json.encode(body)
        self.send_response(status, reason and reason.encode("ascii", "replace").decode())
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value.encode("ascii", "replace").decode())
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if is_partial else content)
        self.close_connection = self.close_connection or is_partial


def _answer_text(behaviour: Behaviour, request: ReceivedRequest) -> str:
    text = summary_answer(request.body, request.prompt)
    match behaviour.kind:
        case "prose":
            return prose_answer(request.prompt)
        case "invalid_json":
            return f"Here it is:\n```json\n{text[:-1].replace('], ', '],], ', 1)},}}\n```\nI hope it helps!"
        case "truncated":
            return text[: len(text) * 2 // 3]
        case _:
            return text


def _echo_body(request: ReceivedRequest) -> dict[str, Any]:
    """An error with the text of the request as its message, its longest word as the type and the key as the code."""
    text = request.quotable_text
    word = max(text.removeprefix(request.key).split(), key=len, default="")[:64]
    return {"error": {"message": text, "type": word, "code": request.key, "param": text}, "detail": text}


def _error_body(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "error", "message": message, "code": None}}


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
    options = parser.parse_args()
    behaviour = msgspec.convert({"kind": options.kind, "seconds": options.seconds}, Behaviour)
    with running_model(behaviour, options.port) as model:
        print(model.url.removesuffix("/v1"), flush=True)  # noqa: T201 - the parent process reads it
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
