"""Models and embedders, asked over real connections."""

import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, TypeVar

import httpx2
import msgspec
import numpy as np
import pytest

from holdfast import Settings
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.model.summaries import Prompt, TokenUsage
from holdfast.providers.anthropic import AnthropicChat
from holdfast.providers.configured import limiter_for, open_embedder, open_model
from holdfast.providers.http_service import retry_after_seconds
from holdfast.providers.openai import OpenAIChat, OpenAIEmbedder, _usage
from holdfast.testing.model import Behaviour, FakeModel, running_model
from holdfast.text.tokens import estimate

KEY = "sk-very-secret-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}},
    "required": ["topic"],
    "additionalProperties": False,
}
PROMPT = Prompt(system="Summarise.", user="[m1] user: Deploy the site", max_tokens=50, schema=SCHEMA)
PLAIN = Prompt(system="Be brief.", user="Hello", max_tokens=50)

Chat = OpenAIChat | AnthropicChat
Kept = TypeVar("Kept", bound=Any)
Keep = Callable[[Kept], Kept]


@pytest.fixture
def server() -> Iterator[FakeModel]:
    with running_model() as model:
        yield model


@pytest.fixture
def keep(server: FakeModel) -> Iterator[Callable[[Kept], Kept]]:
    """Close at the end what a test opened."""
    with ExitStack() as stack:
        yield lambda opened: stack.enter_context(closing(opened))


@pytest.fixture(params=[OpenAIChat, AnthropicChat])
def open_chat(request: pytest.FixtureRequest, server: FakeModel, keep: Callable[[Chat], Chat]) -> Callable[..., Chat]:
    return lambda **options: keep(request.param("small", base_url=server.url, api_key=KEY, **options))


def test_an_answer_fits_the_schema_that_was_asked_for(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    reply = open_chat().complete(PROMPT)
    assert msgspec.json.decode(reply.text) == {"topic": "Deploy the site"}
    assert reply.complete
    (asked,) = server.requests
    assert asked.body["model"] == "small"
    assert asked.body["max_tokens"] == 50
    assert asked.prompt == "Summarise.\n[m1] user: Deploy the site"


def test_without_a_schema_the_answer_is_text(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    assert open_chat().complete(PLAIN).text.startswith("Sure!")
    assert not {"response_format", "output_config", "tools"} & server.requests[0].body.keys()


def test_openai_tells_what_a_call_cost(keep: Keep[Any], server: FakeModel) -> None:
    usage = keep(OpenAIChat("small", base_url=server.url)).complete(PROMPT).usage
    prompt, said = len(server.requests[0].prompt) // 3 + 7, len('{"topic":"Deploy the site"}') // 3 + 1
    assert usage == TokenUsage(prompt, said, prompt + said, prompt // 2, said // 2)


def test_anthropic_tells_what_a_call_cost_with_what_it_had_cached(keep: Keep[Any], server: FakeModel) -> None:
    usage = keep(AnthropicChat("small", base_url=server.url)).complete(PROMPT).usage
    prompt, said = len(server.requests[0].prompt) // 3 + 7, len('{"topic":"Deploy the site"}') // 3 + 1
    assert usage == TokenUsage(prompt, said, prompt + said, prompt // 2, 0)


def test_each_provider_is_shown_its_key_its_way(keep: Keep[Any], server: FakeModel) -> None:
    keep(OpenAIChat("small", base_url=server.url, api_key=KEY)).complete(PLAIN)
    keep(AnthropicChat("small", base_url=server.url, api_key=KEY)).complete(PLAIN)
    keep(OpenAIChat("small", base_url=server.url)).complete(PLAIN)
    openai, anthropic, keyless = server.requests
    assert (openai.path, openai.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (anthropic.path, anthropic.headers["x-api-key"]) == ("/v1/messages", KEY)
    assert anthropic.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in keyless.headers


@pytest.mark.parametrize(
    ("formats", "tried"),
    [
        (("json_object", "text"), ["json_schema", "json_object", "json_object"]),
        (("text",), ["json_schema", "json_object", None, None]),
    ],
)
def test_openai_asks_for_json_in_a_way_the_server_knows_and_remembers_it(
    keep: Keep[Any], server: FakeModel, formats: tuple[str, ...], tried: list[str | None]
) -> None:
    server.behaviour = msgspec.structs.replace(Behaviour(), formats=formats)
    chat = keep(OpenAIChat("small", base_url=server.url))
    for _ in range(2):
        assert msgspec.json.decode(chat.complete(PROMPT).text) == {"topic": "Deploy the site"}
    assert [asked.body.get("response_format", {}).get("type") for asked in server.requests] == tried
    assert '{"type":"object","properties":{"topic"' in server.requests[-1].prompt


@pytest.mark.parametrize(
    ("formats", "tried"),
    [
        (("json_object", "text"), ["output_config", "tools", "tools"]),
        (("text",), ["output_config", "tools", "words", "words"]),
    ],
)
def test_anthropic_asks_for_json_in_a_way_the_model_knows_and_remembers_it(
    keep: Keep[Any], server: FakeModel, formats: tuple[str, ...], tried: list[str]
) -> None:
    server.behaviour = msgspec.structs.replace(Behaviour(), formats=formats)
    chat = keep(AnthropicChat("small", base_url=server.url))
    for _ in range(2):
        assert msgspec.json.decode(chat.complete(PROMPT).text) == {"topic": "Deploy the site"}
    ways = [
        next((way for way in ("output_config", "tools") if way in asked.body), "words") for asked in server.requests
    ]
    assert ways == tried


def test_openai_says_the_bound_of_an_answer_in_the_servers_word(keep: Keep[Any], server: FakeModel) -> None:
    server.behaviour = Behaviour(bound="max_completion_tokens", formats=("json_object",))
    chat = keep(OpenAIChat("small", base_url=server.url))
    for _ in range(2):
        chat.complete(PROMPT)
    words = [next(word for word in asked.body if word.startswith("max")) for asked in server.requests]
    assert words[-1] == "max_completion_tokens"
    assert len(words) == 4


def test_a_prompt_that_is_refused_in_every_way_fails_and_says_what_to_do(keep: Keep[Any], server: FakeModel) -> None:
    server.behaviour = Behaviour(formats=())
    chat = keep(OpenAIChat("small", base_url=server.url))
    with pytest.raises(FailedPreconditionError, match="lower model_input_tokens"):
        chat.complete(PROMPT)
    server.behaviour = "normal"
    chat.complete(PROMPT)
    assert server.requests[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Behaviour(kind="limited", retry_after=7), "429"),
        (Behaviour(kind="down", retry_after=7), "503"),
        (Behaviour(kind="cut"), "RemoteProtocolError"),
        (Behaviour(kind="hung up"), "RemoteProtocolError"),
        (Behaviour(kind="confused"), "no answer"),
        (Behaviour(seconds=1.0), "timeout"),
    ],
)
def test_what_may_pass_is_unavailable(
    open_chat: Callable[..., Chat], server: FakeModel, behaviour: Behaviour, reason: str
) -> None:
    server.behaviour = behaviour
    with pytest.raises(UnavailableError) as raised:
        open_chat(timeout=0.3).complete(PROMPT)
    assert raised.value.details["service"] == "model"
    assert raised.value.details["reason"] == reason
    assert raised.value.details.get("retry_after") == behaviour.retry_after
    assert server.calls == 1


def test_a_dead_server_is_unavailable_and_may_come_back(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    chat = open_chat()
    chat.complete(PLAIN)
    server.stop()
    with pytest.raises(UnavailableError):
        chat.complete(PLAIN)
    with pytest.raises(UnavailableError) as raised:
        chat.complete(PLAIN)
    assert raised.value.details["reason"] == "ConnectError"
    server.start()
    chat.complete(PLAIN)


def test_a_server_that_drips_is_too_slow() -> None:
    """A byte now and then is not a sign of life."""

    def drip() -> Iterator[bytes]:
        for _ in range(100):
            time.sleep(0.05)
            yield b" "

    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1", timeout=0.3)
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, content=drip()))
    )
    before = time.monotonic()
    with pytest.raises(UnavailableError, match=r"within 0\.3 s"):
        chat.complete(PLAIN)
    assert time.monotonic() - before < 2


def test_an_answer_that_was_bounded_says_so(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    server.behaviour = "truncated"
    assert not open_chat().complete(PLAIN).complete


def test_a_key_is_never_told(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even when the provider repeats it."""
    caplog.set_level(logging.DEBUG)
    server.behaviour = "refusing"
    chat = open_chat()
    with pytest.raises(FailedPreconditionError, match="check the API key") as raised:
        chat.complete(PROMPT)
    error = raised.value
    assert server.requests[0].headers.get("x-api-key", server.requests[0].headers.get("authorization", ""))
    told = [str(error), repr(error), str(error.to_dict()), repr(chat), repr(chat._service), caplog.text]
    told += [*traceback.format_exception(error, chain=True), pickle.dumps(error).decode(errors="replace")]
    assert not [text for text in told if KEY in text]


SECRETS = ("kumquat", "Zanzibar", KEY)
CONFIDENTIAL = Prompt(system="Be brief.", user="The kumquat is buried in Zanzibar", max_tokens=50, schema=SCHEMA)


def everything_said(error: Exception, caplog: pytest.LogCaptureFixture) -> str:
    said = [str(error), repr(error), str(error.__dict__), caplog.text]
    said += [*traceback.format_exception(error, chain=True), pickle.dumps(error).decode(errors="replace")]
    return "\n".join(said)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503])
def test_a_failure_is_told_by_its_code_and_without_a_word_of_the_provider(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """It repeats the prompt and the key in the message, the type, the code and beside the status."""
    caplog.set_level(logging.DEBUG)
    server.behaviour = Behaviour(kind="repeating", status=status)
    with pytest.raises((FailedPreconditionError, UnavailableError), match=f"answered {status}") as raised:
        open_chat().complete(CONFIDENTIAL)
    assert "kumquat" in server.requests[0].words
    said = everything_said(raised.value, caplog)
    assert not [secret for secret in SECRETS if secret in said]


def test_an_embedder_tells_no_word_of_the_provider(
    keep: Keep[Any], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = keep(OpenAIEmbedder("vectors", base_url=server.url, api_key=KEY))
    assert embedder.dimensions
    for status in (400, 401, 500):
        server.behaviour = Behaviour(kind="repeating", status=status)
        with pytest.raises((FailedPreconditionError, UnavailableError)) as raised:
            embedder.embed([CONFIDENTIAL.user])
        said = everything_said(raised.value, caplog)
        assert not [secret for secret in SECRETS if secret in said]


def test_an_answer_that_is_no_json_is_told_by_its_type_and_size(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.behaviour = "web page"
    with pytest.raises(FailedPreconditionError, match=r"answered with text/html of \d+ bytes, not JSON") as raised:
        open_chat().complete(CONFIDENTIAL)
    said = everything_said(raised.value, caplog)
    assert not [secret for secret in SECRETS if secret in said]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"error": {"message": "too long", "code": "context_length_exceeded"}}, " (context_length_exceeded);"),
        (
            {"error": {"message": "too long", "code": None, "type": "invalid_request_error"}},
            " (invalid_request_error);",
        ),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, " (overloaded_error);"),
        ({"error": {"code": "two words"}}, "answered 400;"),
        ({"error": {"code": "x" * 65}}, "answered 400;"),
        ({"error": {"code": "line\n"}}, "answered 400;"),
        ({"error": {"code": "KUMQUAT", "type": ["kumquat"]}}, "answered 400;"),
        ({"error": {"code": KEY}}, "answered 400;"),
        ({"error": "The kumquat"}, "answered 400;"),
        (["kumquat"], "answered 400;"),
    ],
)
def test_a_code_of_the_provider_is_shown_if_it_is_one(body: object, shown: str) -> None:
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1", api_key=KEY)
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(400, json=body))
    )
    with pytest.raises(FailedPreconditionError) as raised:
        chat.complete(CONFIDENTIAL)
    assert shown in raised.value.message
    assert "kumquat" not in raised.value.message.lower()


def test_a_success_that_holds_an_error_is_told_by_its_code() -> None:
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1")
    answer = {"error": {"message": "The kumquat", "code": "upstream_failed"}}
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer))
    )
    with pytest.raises(UnavailableError, match=r"answered with an error \(upstream_failed\)$"):
        chat.complete(CONFIDENTIAL)


def test_a_connection_that_fails_is_told_without_the_password_in_its_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for password, reason in (("hunter2", "Connection refused"), ("hun/ter2", "not a URL"), ("hun?ter2", "not a URL")):
        with closing(OpenAIChat("small", base_url=f"http://ann:{password}@127.0.0.1:9/v1?k=ter2")) as chat:
            with pytest.raises((UnavailableError, FailedPreconditionError), match=reason) as raised:
                chat.complete(PLAIN)
            assert "127.0.0.1:9/v1" in raised.value.message
            assert not [word for word in ("ter2", "hun", "ann:") if word in everything_said(raised.value, caplog)]


def test_what_is_no_http_is_told_without_what_came() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"The kumquat is buried in Zanzibar\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        with (
            closing(OpenAIChat("small", base_url=f"http://127.0.0.1:{port}")) as chat,
            pytest.raises(UnavailableError, match="cannot be reached: RemoteProtocolError") as raised,
        ):
            chat.complete(CONFIDENTIAL)
        thread.join(10)
    assert "kumquat" not in "".join(traceback.format_exception(raised.value, chain=True))


def test_settings_do_not_show_their_keys() -> None:
    settings = Settings(model_api_key=KEY, embedding_api_key=KEY, root_api_key=KEY, api_key=KEY)
    assert KEY not in repr(settings)
    assert KEY not in str(settings.__rich_repr__())
    assert "hunter2" not in repr(Settings(path="postgresql://me:hunter2@host/db"))
    assert "me:***@host/db" in repr(Settings(path="postgresql://me:hunter2@host/db"))


def test_a_key_of_the_wrong_type_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgumentError, match="model_api_key: is not text") as raised:
        Settings.load(model_api_key=987654321)
    assert "987654321" not in str(raised.value)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        OpenAIChat("small", api_key=f"{KEY}\n")
    assert KEY not in str(raised.value)


def test_a_wrong_address_is_told_apart_from_trouble(server: FakeModel) -> None:
    with pytest.raises(InvalidArgumentError, match="is not an http"):
        OpenAIChat("small", base_url="localhost:8080")
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9")
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>Welcome</html>"))
    )
    with pytest.raises(FailedPreconditionError, match="check the base URL"):
        chat.complete(PLAIN)


def test_threads_share_connections_that_stay_open(keep: Keep[Any], server: FakeModel) -> None:
    chat = keep(OpenAIChat("small", base_url=server.url))
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: chat.complete(PROMPT), range(40)))
    assert len({reply.text for reply in replies}) == 1
    assert server.calls == 40
    assert server.connections <= 8


def test_a_model_that_was_closed_is_unavailable(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    chat = open_chat()
    chat.close()
    with pytest.raises(UnavailableError) as raised:
        chat.complete(PLAIN)
    assert raised.value.details["reason"] == "closed"
    assert server.calls == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(keep: Keep[Any], server: FakeModel) -> None:
    chat = keep(OpenAIChat("small", base_url=server.url))
    chat.complete(PLAIN)
    child = os.fork()
    if child == 0:
        chat.complete(PLAIN)
        os._exit(0)
    late = threading.Timer(20, os.kill, (child, 9))
    late.start()
    _, status = os.waitpid(child, 0)
    late.cancel()
    assert status == 0
    chat.complete(PLAIN)
    assert (server.calls, server.connections) == (3, 2)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "date": "Fri, 31 Dec 1999 23:59:39 GMT"}, 20.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, 3_600.0),
        ({"retry-after-ms": "nan"}, None),
    ],
)
def test_a_wait_is_understood_however_it_is_told(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("usage", [{"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4}, {}, "many"])
def test_a_usage_that_cannot_be_is_not_counted(usage: object) -> None:
    assert _usage(usage) == TokenUsage()


def test_vectors_of_a_server_have_length_one_and_the_order_of_their_texts(keep: Keep[Any], server: FakeModel) -> None:
    embedder = keep(OpenAIEmbedder("vectors", base_url=server.url, api_key=KEY))
    texts = [f"text {n}" for n in range(200)]
    together, alone = embedder.embed(texts).vectors, embedder.embed(texts[150:151]).vectors
    assert together.dtype == np.float32
    assert together.shape == (200, embedder.dimensions) == (200, 16)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    assert np.array_equal(together[150], alone[0])


def test_a_text_that_says_nothing_has_no_direction(keep: Keep[Any], server: FakeModel) -> None:
    for embedder in (keep(OpenAIEmbedder("vectors", base_url=server.url)), open_embedder(Settings())):
        vectors = embedder.embed(["", "something"]).vectors
        assert not vectors[0].any()
        assert np.isfinite(vectors).all()
        assert embedder.embed([]).vectors.shape == (0, embedder.dimensions)


def test_an_embedder_fails_as_a_model_does(keep: Keep[Any], server: FakeModel) -> None:
    embedder = keep(OpenAIEmbedder("vectors", base_url=server.url, api_key=KEY))
    server.behaviour = "limited"
    with pytest.raises(UnavailableError):
        embedder.embed(["text"])
    server.behaviour = "refusing"
    with pytest.raises(FailedPreconditionError):
        embedder.embed(["text"])


def test_static_vectors_are_near_for_what_means_the_same() -> None:
    near, also, far = (
        open_embedder(Settings())
        .embed(["How do I configure the database?", "Setting up a database", "The cat sleeps in the sun"])
        .vectors
    )
    assert near @ also > near @ far + 0.2
    chinese, same, other = (
        open_embedder(Settings()).embed(["如何配置嵌入模型?", "怎样设置向量模型", "今天天气很好"]).vectors
    )
    assert chinese @ same > chinese @ other + 0.2


def test_static_vectors_have_length_one_whatever_the_text() -> None:
    texts = ["a", "你好", "😀", "\x00", "long " * 50_000, "  two  "]
    vectors = open_embedder(Settings()).embed(texts).vectors
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[:2], open_embedder(Settings()).embed(texts[:2]).vectors)


def test_static_vectors_are_loaded_once_for_all_threads() -> None:
    code = """
import threading
from holdfast import Settings
from holdfast.providers import static_vectors
from holdfast.providers.configured import open_embedder
loads = []
find = static_vectors._folder
static_vectors._folder = lambda: loads.append(1) or find()
threads = [threading.Thread(target=lambda: open_embedder(Settings()).embed(["x"])) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
import sys
print(len(loads), "wordllama" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["1", "False"]


def test_neither_holdfast_nor_the_choice_of_a_model_imports_numpy_or_http() -> None:
    code = """
import sys, holdfast
from holdfast import Settings
from holdfast.providers.configured import open_embedder, open_model
open_model(Settings(), len), open_embedder(Settings())
print(sorted({"numpy", "httpx2", "tokenizers"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_without_a_provider_there_is_no_model() -> None:
    assert open_model(Settings(), estimate) is None


def test_the_settings_name_the_model(server: FakeModel) -> None:
    for provider in ("openai", "anthropic"):
        settings = Settings.load(model_provider=provider, model_name="small", model_base_url=server.url)
        model = open_model(settings, estimate)
        assert model
        assert model.name == f"{provider}/small"
        assert model.complete(PROMPT).text == '{"topic":"Deploy the site"}'
        model.close()


@pytest.mark.parametrize("settings", [{"model_provider": "openai"}, {"model_provider": "anthropic"}])
def test_a_provider_without_a_model_says_what_is_missing(settings: dict[str, str]) -> None:
    with pytest.raises(FailedPreconditionError, match="set HOLDFAST_MODEL_NAME"):
        open_model(Settings.load(**settings), estimate)


def test_an_embedding_server_without_a_model_says_what_is_missing() -> None:
    with pytest.raises(FailedPreconditionError, match="set HOLDFAST_EMBEDDING_MODEL"):
        open_embedder(Settings(embedder="openai"))


def test_a_key_comes_from_where_its_provider_is_used_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the key of openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the key of anthropic")
    assert Settings.load().model_api_key is None
    assert Settings.load(model_provider="openai").model_api_key == "the key of openai"
    assert Settings.load(model_provider="anthropic").model_api_key == "the key of anthropic"
    assert Settings.load(model_provider="anthropic").embedding_api_key is None
    assert Settings.load(model_provider="anthropic", embedder="openai").embedding_api_key == "the key of openai"
    assert Settings.load(model_provider="openai", model_api_key="mine").model_api_key == "mine"


def test_all_clients_of_a_process_share_one_limiter(keep: Keep[Any]) -> None:
    settings = Settings(model_provider="openai", model_name="shared", model_concurrency=3)
    first, second = keep(open_model(settings, estimate)), keep(open_model(settings, estimate))
    assert first
    assert second
    assert first.limiter is second.limiter is limiter_for(settings)
    assert limiter_for(Settings(model_provider="openai", model_name="other")) is not first.limiter


def test_the_fake_model_holds_calls_until_they_are_let_go(keep: Keep[Any], server: FakeModel) -> None:
    chat = keep(OpenAIChat("small", base_url=server.url))
    server.gate.clear()
    thread = threading.Thread(target=chat.complete, args=(PLAIN,))
    thread.start()
    server.wait_for_calls(1)
    assert thread.is_alive()
    server.gate.set()
    thread.join(10)
    assert not thread.is_alive()


def test_the_fake_model_runs_as_a_process_that_others_share(keep: Keep[Any]) -> None:
    command = [sys.executable, "-m", "holdfast.testing.model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            chat = keep(OpenAIChat("small", base_url=f"{url}/v1"))
            assert chat.complete(PROMPT).text
            httpx2.post(f"{url}/control", json={"kind": "down", "times": 1}).raise_for_status()
            with pytest.raises(UnavailableError):
                chat.complete(PROMPT)
            assert chat.complete(PROMPT).text
            assert httpx2.get(f"{url}/control").json()["calls"] == 3
        finally:
            process.kill()
