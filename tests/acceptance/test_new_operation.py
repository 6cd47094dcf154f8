"""An operation that is added as CONTRIBUTING.md describes: checked by the client, prepared with a model, handled."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import uvicorn

from holdfast import Settings
from holdfast.client.local import LocalTransport
from holdfast.client.sync.http import HttpTransport
from holdfast.client.wire import HttpCodec
from holdfast.composition import open_database
from holdfast.engine import Engine
from holdfast.engine.engine import HANDLERS
from holdfast.engine.gate.hooks import Hooks
from holdfast.engine.gate.operation_handler import CallContext, EngineResources, OperationHandler, always
from holdfast.engine.gate.session_access import require_session
from holdfast.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from holdfast.http.app import build_app
from holdfast.http.server import Server
from holdfast.http.server_state import ServerState
from holdfast.model.identity import Principal
from holdfast.model.summaries import Prompt
from holdfast.ops.sessions import AddMessage, CreateSession
from holdfast.ops.table import OPERATIONS, Operation, operation
from holdfast.store.database import Tx, in_transaction
from holdfast.testing.model import FakeModel, running_model

ALICE = Principal("acme", "alice", "root")
HEADERS = {"X-OpenViking-Account": "acme", "X-OpenViking-User": "alice"}
Transport = LocalTransport | HttpTransport


class Answer(msgspec.Struct, frozen=True):
    text: str
    message_count: int


class AskSession(Operation[Answer], frozen=True, kw_only=True):
    """Ask the model a question about a session."""

    session_id: str
    owner: str | None = None
    question: str


def _check(_context: CallContext, op: AskSession) -> str:
    if not op.question.strip():
        raise InvalidArgumentError("question", "is empty; ask something")
    return op.question.strip()


def _prepare(resources: EngineResources, _principal: Principal, _op: AskSession, question: str) -> str:
    assert not in_transaction()
    model = resources.models.language_model
    assert model is not None
    prompt = Prompt(system="Answer briefly.", user=question, max_tokens=100)
    return model.complete(prompt).text


def _handle(tx: Tx, principal: Principal, op: AskSession, answer: str, _context: CallContext) -> Answer:
    return Answer(answer, require_session(tx, principal, op).last_seq)


@pytest.fixture
def new_operation() -> Iterator[None]:
    operation("POST /sessions/{session_id}/ask", right="read", audit="{session_id}")(AskSession)
    HANDLERS[AskSession] = OperationHandler(_handle, writes=always, check=_check, prepare=_prepare)
    yield
    del HANDLERS[AskSession], OPERATIONS[AskSession]


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with running_model() as running:
        yield running


@contextmanager
def serving(engine: Engine) -> Iterator[str]:
    """Serve an engine over HTTP from a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        state = ServerState(engine, engine.settings)
        server = Server(uvicorn.Config(build_app(state), log_config=None, lifespan="on"), state)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


OpenTransport = Callable[..., Transport]


@pytest.fixture(params=["embedded", "http"])
def connect(request: pytest.FixtureRequest, target: str, model: FakeModel) -> Iterator[OpenTransport]:
    """Opens a transport to an engine without worker threads, in this process or over HTTP."""
    settings = Settings(worker_threads=0, model_provider="openai", model_name="m", model_base_url=model.url)
    cleanups: list[Callable[[], object]] = []

    def open_transport(hooks: Hooks | None = None) -> Transport:
        engine = Engine(open_database(target, settings), settings, hooks=hooks)
        if request.param == "embedded":
            cleanups.append(engine.close)
            return LocalTransport(engine, ALICE)
        served = serving(engine)
        transport = HttpTransport(HttpCodec(served.__enter__(), HEADERS, settings))
        cleanups.extend([lambda: served.__exit__(None, None, None), transport.close])
        return transport

    yield open_transport
    for clean_up in reversed(cleanups):
        clean_up()


@pytest.mark.usefixtures("new_operation")
def test_a_new_operation_calls_the_engines_model_before_its_transaction(
    connect: OpenTransport, model: FakeModel
) -> None:
    transport = connect()
    transport.call(AddMessage(session_id="trip", role="user", content="We fly on Friday."))
    model.behaviour = msgspec.structs.replace(model.behaviour, text="On Friday.")
    answer = transport.call(AskSession(session_id="trip", question=" When do we fly? "))
    assert answer == Answer("On Friday.", 1)
    assert [request.prompt for request in model.requests] == ["Answer briefly.\nWhen do we fly?"]


@pytest.mark.usefixtures("new_operation")
def test_a_failed_check_reaches_neither_the_server_nor_the_model(connect: OpenTransport, model: FakeModel) -> None:
    transport = connect()
    with pytest.raises(InvalidArgumentError, match="question: is empty; ask something"):
        transport.call(AskSession(session_id="trip", question="  "))
    assert model.calls == 0


@pytest.mark.usefixtures("new_operation")
def test_an_error_inside_the_transaction_reaches_the_caller(connect: OpenTransport) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        connect().call(AskSession(session_id="nowhere", question="Where?"))


def test_a_hook_can_refuse_or_change_an_operation_and_another_sees_its_result(connect: OpenTransport) -> None:
    seen: list[tuple[str, str, int]] = []

    def require_title(_principal: Principal, op: Operation[Any]) -> Operation[Any]:
        if isinstance(op, CreateSession) and not op.title:
            raise PermissionDeniedError("a session needs a title here; give one")
        return op

    def mask_digits(_principal: Principal, op: Operation[Any]) -> Operation[Any]:
        if isinstance(op, AddMessage) and isinstance(op.content, str):
            return msgspec.structs.replace(op, content=op.content.replace("4711", "****"))
        return op

    def observe(principal: Principal, op: Operation[Any], result: Any) -> None:
        assert not in_transaction()
        if isinstance(op, AddMessage):
            seen.append((principal.user_id, str(op.content), result.seq))

    transport = connect(Hooks(before=(require_title, mask_digits), after=(observe,)))
    with pytest.raises(PermissionDeniedError, match="needs a title"):
        transport.call(CreateSession(session_id="trip"))
    transport.call(AddMessage(session_id="trip", role="user", content="My PIN is 4711."))
    assert seen == [("alice", "My PIN is ****.", 1)]


def test_what_a_hook_returns_is_validated_again(connect: OpenTransport) -> None:
    def break_role(_principal: Principal, op: Operation[Any]) -> Operation[Any]:
        return msgspec.structs.replace(op, role="nobody") if isinstance(op, AddMessage) else op

    with pytest.raises(InvalidArgumentError, match="role"):
        connect(Hooks(before=(break_role,))).call(AddMessage(session_id="trip", role="user", content="hello"))
