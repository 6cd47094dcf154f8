"""A minimal HTTP server: it decodes a message and encodes a response like that of an append."""

import socket

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.http.server import OPTIONS

PATH = "/echo"


class Message(msgspec.Struct):
    role: str
    content: str


class Appended(msgspec.Struct):
    session_id: str
    message_count: int
    added: int
    pending_tokens: int
    seq: int
    message_ids: list[str]


class Envelope(msgspec.Struct):
    result: Appended
    time: float
    status: str = "ok"
    error: None = None
    telemetry: None = None


_decoder = msgspec.json.Decoder(Message)
_encoder = msgspec.json.Encoder()


async def echo(request: Request) -> Response:
    message = _decoder.decode(await request.body())
    size = len(message.content)
    result = Appended("session-001", size, 1, size // 4, size, ["msg_01a1e19b024c00000001fc0c9e0714fa"])
    return Response(_encoder.encode(Envelope(result, 0.001)), media_type="application/json")


async def health(_: Request) -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")


app = Starlette(routes=[Route(PATH, echo, methods=["POST"]), Route("/health", health)])


def main() -> None:
    # The same options as `holdfast serve`, so that the difference is Holdfast and not uvicorn.
    config = uvicorn.Config(app, **OPTIONS)
    listener = socket.create_server(("127.0.0.1", 0), backlog=config.backlog)
    print(f"Echo server on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
