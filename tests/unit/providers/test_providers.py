"""Language models and embedders over real HTTP connections."""

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
import pytest

from holdfast import Settings
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.model.summaries import Prompt, TokenUsage
from holdfast.providers.anthropic import AnthropicChat
from holdfast.providers.configured import limiter_for, open_embedder, open_model
from holdfast.providers.http_service import retry_after_seconds
from holdfast.providers.openai import OpenAIChat, _usage
from holdfast.providers.remote_embedder import OpenAIEmbedder
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
Closeable = TypeVar("Closeable", bound=Any)
CloseLater = Callable[[Closeable], Closeable]


@pytest.fixture
def server() -> Iterator[FakeModel]:
    with running_model() as model:
        yield model


@pytest.fixture
def close_later(server: FakeModel) -> Iterator[Callable[[Closeable], Closeable]]:
    """Register an object to be closed at the end of the test."""
    with ExitStack() as stack:
        yield lambda opened: stack.enter_context(closing(opened))


@pytest.fixture(params=[OpenAIChat, AnthropicChat])
def open_chat(
    request: pytest.FixtureRequest, server: FakeModel, close_later: Callable[[Chat], Chat]
) -> Callable[..., Chat]:
    return lambda **options: close_later(request.param("small", base_url=server.url, api_key=KEY, **options))


def test_an_answer_fits_the_requested_schema(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    reply = open_chat().complete(PROMPT)
    assert msgspec.json.decode(reply.text) == {"topic": "Deploy the site"}
    assert reply.complete
    (request,) = server.requests
    assert request.body["model"] == "small"
    assert request.body["max_tokens"] == 50
    assert request.prompt == "Summarise.\n[m1] user: Deploy the site"


def test_without_a_schema_the_answer_is_text(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    assert open_chat().complete(PLAIN).text.startswith("Sure!")
    assert not {"response_format", "output_config", "tools"} & server.requests[0].body.keys()


def test_openai_reports_the_token_usage_of_a_call(close_later: CloseLater[Any], server: FakeModel) -> None:
    usage = close_later(OpenAIChat("small", base_url=server.url)).complete(PROMPT).usage
    prompt, completion = len(server.requests[0].prompt) // 3 + 7, len('{"topic":"Deploy the site"}') // 3 + 1
    assert usage == TokenUsage(prompt, completion, prompt + completion, prompt // 2, completion // 2)


def test_anthropic_reports_the_token_usage_of_a_call_with_cached_tokens(
    close_later: CloseLater[Any], server: FakeModel
) -> None:
    usage = close_later(AnthropicChat("small", base_url=server.url)).complete(PROMPT).usage
    prompt, completion = len(server.requests[0].prompt) // 3 + 7, len('{"topic":"Deploy the site"}') // 3 + 1
    assert usage == TokenUsage(prompt, completion, prompt + completion, prompt // 2, 0)


def test_each_provider_gets_the_key_in_its_own_header(close_later: CloseLater[Any], server: FakeModel) -> None:
    close_later(OpenAIChat("small", base_url=server.url, api_key=KEY)).complete(PLAIN)
    close_later(AnthropicChat("small", base_url=server.url, api_key=KEY)).complete(PLAIN)
    close_later(OpenAIChat("small", base_url=server.url)).complete(PLAIN)
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
def test_openai_finds_and_remembers_a_response_format_that_the_server_supports(
    close_later: CloseLater[Any], server: FakeModel, formats: tuple[str, ...], tried: list[str | None]
) -> None:
    server.behaviour = msgspec.structs.replace(Behaviour(), formats=formats)
    chat = close_later(OpenAIChat("small", base_url=server.url))
    for _ in range(2):
        assert msgspec.json.decode(chat.complete(PROMPT).text) == {"topic": "Deploy the site"}
    assert [request.body.get("response_format", {}).get("type") for request in server.requests] == tried
    assert '{"type":"object","properties":{"topic"' in server.requests[-1].prompt


@pytest.mark.parametrize(
    ("formats", "tried"),
    [
        (("json_object", "text"), ["output_config", "tools", "tools"]),
        (("text",), ["output_config", "tools", "prompt", "prompt"]),
    ],
)
def test_anthropic_finds_and_remembers_a_json_mode_that_the_server_supports(
    close_later: CloseLater[Any], server: FakeModel, formats: tuple[str, ...], tried: list[str]
) -> None:
    server.behaviour = msgspec.structs.replace(Behaviour(), formats=formats)
    chat = close_later(AnthropicChat("small", base_url=server.url))
    for _ in range(2):
        assert msgspec.json.decode(chat.complete(PROMPT).text) == {"topic": "Deploy the site"}
    modes = [
        next((field for field in ("output_config", "tools") if field in request.body), "prompt")
        for request in server.requests
    ]
    assert modes == tried


def test_openai_finds_and_remembers_the_token_limit_field_that_the_server_supports(
    close_later: CloseLater[Any], server: FakeModel
) -> None:
    server.behaviour = Behaviour(token_limit_field="max_completion_tokens", formats=("json_object",))
    chat = close_later(OpenAIChat("small", base_url=server.url))
    for _ in range(2):
        chat.complete(PROMPT)
    fields = [next(field for field in request.body if field.startswith("max")) for request in server.requests]
    assert fields[-1] == "max_completion_tokens"
    assert len(fields) == 4


def test_a_prompt_rejected_in_every_variant_fails_with_advice(close_later: CloseLater[Any], server: FakeModel) -> None:
    server.behaviour = Behaviour(formats=())
    chat = close_later(OpenAIChat("small", base_url=server.url))
    with pytest.raises(FailedPreconditionError, match="lower model_input_tokens"):
        chat.complete(PROMPT)
    server.behaviour = "normal"
    chat.complete(PROMPT)
    assert server.requests[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Behaviour(kind="rate_limited", retry_after=7), "429"),
        (Behaviour(kind="unavailable", retry_after=7), "503"),
        (Behaviour(kind="partial_response"), "RemoteProtocolError"),
        (Behaviour(kind="disconnect"), "RemoteProtocolError"),
        (Behaviour(kind="no_answer"), "no answer"),
        (Behaviour(seconds=1.0), "timeout"),
    ],
)
def test_a_temporary_error_is_reported_as_unavailable(
    open_chat: Callable[..., Chat], server: FakeModel, behaviour: Behaviour, reason: str
) -> None:
    server.behaviour = behaviour
    with pytest.raises(UnavailableError) as raised:
        open_chat(timeout=0.3).complete(PROMPT)
    assert raised.value.details["service"] == "model"
    assert raised.value.details["reason"] == reason
    assert raised.value.details.get("retry_after") == behaviour.retry_after
    assert server.calls == 1


def test_a_stopped_server_is_unavailable_until_it_is_started_again(
    open_chat: Callable[..., Chat], server: FakeModel
) -> None:
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


def test_a_response_in_slow_single_bytes_times_out() -> None:
    """The timeout covers the whole response: single bytes do not extend it."""

    def slow_bytes() -> Iterator[bytes]:
        for _ in range(100):
            time.sleep(0.05)
            yield b" "

    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1", timeout=0.3)
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, content=slow_bytes()))
    )
    before = time.monotonic()
    with pytest.raises(UnavailableError, match=r"within 0\.3 s"):
        chat.complete(PLAIN)
    assert time.monotonic() - before < 2


def test_a_truncated_answer_is_marked_as_incomplete(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    server.behaviour = "truncated"
    assert not open_chat().complete(PLAIN).complete


def test_a_key_never_appears_in_errors_or_logs(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    """The provider quotes the key in its error message."""
    caplog.set_level(logging.DEBUG)
    server.behaviour = "unauthorized"
    chat = open_chat()
    with pytest.raises(FailedPreconditionError, match="check the API key") as raised:
        chat.complete(PROMPT)
    error = raised.value
    assert server.requests[0].headers.get("x-api-key", server.requests[0].headers.get("authorization", ""))
    texts = [str(error), repr(error), str(error.to_dict()), repr(chat), repr(chat._service), caplog.text]
    texts += [*traceback.format_exception(error, chain=True), pickle.dumps(error).decode(errors="replace")]
    assert not [text for text in texts if KEY in text]


SECRETS = ("kumquat", "Zanzibar", KEY)
CONFIDENTIAL = Prompt(system="Be brief.", user="The kumquat is buried in Zanzibar", max_tokens=50, schema=SCHEMA)


def all_output(error: Exception, caplog: pytest.LogCaptureFixture) -> str:
    """Everything that an error shows: its texts, its attributes, its traceback, its pickle and the log."""
    texts = [str(error), repr(error), str(error.__dict__), caplog.text]
    texts += [*traceback.format_exception(error, chain=True), pickle.dumps(error).decode(errors="replace")]
    return "\n".join(texts)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503])
def test_an_error_has_the_status_and_no_text_of_the_provider(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """The provider quotes the prompt and the key in the message, the type, the code and the reason phrase."""
    caplog.set_level(logging.DEBUG)
    server.behaviour = Behaviour(kind="echo_error", status=status)
    with pytest.raises((FailedPreconditionError, UnavailableError), match=f"answered {status}") as raised:
        open_chat().complete(CONFIDENTIAL)
    assert "kumquat" in server.requests[0].quotable_text
    output = all_output(raised.value, caplog)
    assert not [secret for secret in SECRETS if secret in output]


def test_an_error_of_an_embedder_has_no_text_of_the_provider(
    close_later: CloseLater[Any], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = close_later(OpenAIEmbedder("vectors", base_url=server.url, api_key=KEY))
    assert embedder.dimensions
    for status in (400, 401, 500):
        server.behaviour = Behaviour(kind="echo_error", status=status)
        with pytest.raises((FailedPreconditionError, UnavailableError)) as raised:
            embedder.embed([CONFIDENTIAL.user])
        output = all_output(raised.value, caplog)
        assert not [secret for secret in SECRETS if secret in output]


def test_a_response_that_is_not_json_is_described_by_its_type_and_size(
    open_chat: Callable[..., Chat], server: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.behaviour = "echo_html"
    with pytest.raises(FailedPreconditionError, match=r"answered with text/html of \d+ bytes, not JSON") as raised:
        open_chat().complete(CONFIDENTIAL)
    output = all_output(raised.value, caplog)
    assert not [secret for secret in SECRETS if secret in output]


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
def test_an_error_code_of_the_provider_is_shown_if_it_is_a_short_identifier(body: object, shown: str) -> None:
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1", api_key=KEY)
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(400, json=body))
    )
    with pytest.raises(FailedPreconditionError) as raised:
        chat.complete(CONFIDENTIAL)
    assert shown in raised.value.message
    assert "kumquat" not in raised.value.message.lower()


def test_an_error_with_status_200_is_reported_by_its_code() -> None:
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9/v1")
    body = {"error": {"message": "The kumquat", "code": "upstream_failed"}}
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    )
    with pytest.raises(UnavailableError, match=r"answered with an error \(upstream_failed\)$"):
        chat.complete(CONFIDENTIAL)


def test_a_connection_error_does_not_show_the_password_of_the_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for password, reason in (("hunter2", "Connection refused"), ("hun/ter2", "not a URL"), ("hun?ter2", "not a URL")):
        with closing(OpenAIChat("small", base_url=f"http://ann:{password}@127.0.0.1:9/v1?k=ter2")) as chat:
            with pytest.raises((UnavailableError, FailedPreconditionError), match=reason) as raised:
                chat.complete(PLAIN)
            assert "127.0.0.1:9/v1" in raised.value.message
            assert not [word for word in ("ter2", "hun", "ann:") if word in all_output(raised.value, caplog)]


def test_a_response_that_is_not_http_is_reported_without_its_content() -> None:
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


def test_a_key_of_the_wrong_type_is_rejected_without_showing_it() -> None:
    with pytest.raises(InvalidArgumentError, match="model_api_key: is not a string") as raised:
        Settings.load(model_api_key=987654321)
    assert "987654321" not in str(raised.value)


def test_a_key_with_invalid_characters_is_rejected_without_showing_it() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        OpenAIChat("small", api_key=f"{KEY}\n")
    assert KEY not in str(raised.value)


def test_a_wrong_base_url_is_a_permanent_error(server: FakeModel) -> None:
    with pytest.raises(InvalidArgumentError, match="is not an http"):
        OpenAIChat("small", base_url="localhost:8080")
    chat = OpenAIChat("small", base_url="http://127.0.0.1:9")
    chat._service._connections = httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>Welcome</html>"))
    )
    with pytest.raises(FailedPreconditionError, match="check the base URL"):
        chat.complete(PLAIN)


def test_threads_share_persistent_connections(close_later: CloseLater[Any], server: FakeModel) -> None:
    chat = close_later(OpenAIChat("small", base_url=server.url))
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: chat.complete(PROMPT), range(40)))
    assert len({reply.text for reply in replies}) == 1
    assert server.calls == 40
    assert server.connections <= 8


def test_a_closed_model_is_unavailable(open_chat: Callable[..., Chat], server: FakeModel) -> None:
    chat = open_chat()
    chat.close()
    with pytest.raises(UnavailableError) as raised:
        chat.complete(PLAIN)
    assert raised.value.details["reason"] == "closed"
    assert server.calls == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_its_own_connections(close_later: CloseLater[Any], server: FakeModel) -> None:
    chat = close_later(OpenAIChat("small", base_url=server.url))
    chat.complete(PLAIN)
    child = os.fork()
    if child == 0:
        chat.complete(PLAIN)
        os._exit(0)
    kill_timer = threading.Timer(20, os.kill, (child, 9))
    kill_timer.start()
    _, status = os.waitpid(child, 0)
    kill_timer.cancel()
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
def test_all_forms_of_retry_after_are_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("usage", [{"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4}, {}, "many"])
def test_an_invalid_usage_is_not_counted(usage: object) -> None:
    assert _usage(usage) == TokenUsage()


def test_importing_holdfast_and_opening_a_model_imports_neither_numpy_nor_httpx() -> None:
    code = """
import sys, holdfast
from holdfast import Settings
from holdfast.providers.configured import open_embedder, open_model
open_model(Settings(), len), open_embedder(Settings())
print(sorted({"numpy", "httpx2", "tokenizers"} & sys.modules.keys()))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_without_a_provider_there_is_no_model() -> None:
    assert open_model(Settings(), estimate) is None


def test_the_settings_select_the_model(server: FakeModel) -> None:
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


def test_a_key_is_read_from_the_usual_environment_variable_of_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the key of openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the key of anthropic")
    assert Settings.load().model_api_key is None
    assert Settings.load(model_provider="openai").model_api_key == "the key of openai"
    assert Settings.load(model_provider="anthropic").model_api_key == "the key of anthropic"
    assert Settings.load(model_provider="anthropic").embedding_api_key is None
    assert Settings.load(model_provider="anthropic", embedder="openai").embedding_api_key == "the key of openai"
    assert Settings.load(model_provider="openai", model_api_key="mine").model_api_key == "mine"


def test_all_clients_of_a_process_share_one_limiter(close_later: CloseLater[Any]) -> None:
    settings = Settings(model_provider="openai", model_name="shared", model_concurrency=3)
    first, second = close_later(open_model(settings, estimate)), close_later(open_model(settings, estimate))
    assert first
    assert second
    assert first.limiter is second.limiter is limiter_for(settings)
    assert limiter_for(Settings(model_provider="openai", model_name="other")) is not first.limiter


def test_the_fake_model_blocks_calls_until_its_gate_is_set(close_later: CloseLater[Any], server: FakeModel) -> None:
    chat = close_later(OpenAIChat("small", base_url=server.url))
    server.gate.clear()
    thread = threading.Thread(target=chat.complete, args=(PLAIN,))
    thread.start()
    server.wait_for_calls(1)
    assert thread.is_alive()
    server.gate.set()
    thread.join(10)
    assert not thread.is_alive()


def test_the_fake_model_runs_as_a_separate_process(close_later: CloseLater[Any]) -> None:
    command = [sys.executable, "-m", "holdfast.testing.model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            chat = close_later(OpenAIChat("small", base_url=f"{url}/v1"))
            assert chat.complete(PROMPT).text
            httpx2.post(f"{url}/control", json={"kind": "unavailable", "times": 1}).raise_for_status()
            with pytest.raises(UnavailableError):
                chat.complete(PROMPT)
            assert chat.complete(PROMPT).text
            assert httpx2.get(f"{url}/control").json()["calls"] == 3
        finally:
            process.kill()
