"""Every operation on a session over HTTP, by users with keys and by share links."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import holdfast
from holdfast.engine.gate.access import ALLOWED_ROLES
from holdfast.errors import NotFoundError, PermissionDeniedError, UnauthenticatedError
from holdfast.model.access import Right, to_bits
from holdfast.ops.table import OPERATIONS
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.rights import SESSION_OPERATIONS, SETS_OF_RIGHTS, needed, outcome, variants
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"
USERS = {"alice": "user", "bob": "user", "boss": "admin", "audrey": "auditor", "carol": "user"}


class Served(msgspec.Struct, frozen=True):
    server: ServerProcess
    clients: dict[str, holdfast.Client]
    """By user id; "stranger" is a user of another account."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that identifies callers by their keys, with a client for each user."""
    database: str | Path = tmp_path_factory.mktemp("served")
    if request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        database = postgres.new_migrated_database()
    with ExitStack() as stack:
        server = stack.enter_context(running_server(database, root_api_key=ROOT_KEY))
        operator = stack.enter_context(holdfast.connect(server.url, api_key=ROOT_KEY))
        operator.admin.create_account("acme")
        operator.admin.create_account("rival")
        keys = {
            user: operator.admin.create_user("acme", user, role).user_key  # type: ignore[arg-type]
            for user, role in USERS.items()
        }
        keys["stranger"] = operator.admin.create_user("rival", "alice").user_key
        clients = {user: stack.enter_context(holdfast.connect(server.url, api_key=key)) for user, key in keys.items()}
        yield Served(server, clients)


def call_as(client: holdfast.Client) -> Any:
    return client._transport.call


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_every_operation_is_allowed_exactly_to_those_with_its_right(served: Served, cls: type[Any]) -> None:
    alice = served.clients["alice"]
    for op in variants(cls, session_id="own"):
        alice.get_session("own", auto_create=True)
        assert outcome(call_as(alice), op) == "allowed", op
    for rights in SETS_OF_RIGHTS:
        name = alice.create_session().session_id
        for user in ("bob", "audrey"):
            alice.share_session(name, user, rights)
        for op in variants(cls, session_id=name, owner="alice"):
            expected = "allowed" if not needed(op) & ~to_bits(rights) else "denied"
            assert outcome(call_as(served.clients["bob"]), op) == expected, (rights, op)
            assert outcome(call_as(served.clients["audrey"]), op) == "denied", op


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_a_foreign_session_is_missing_for_every_role(served: Served, cls: type[Any]) -> None:
    name = served.clients["alice"].create_session().session_id
    for user in ("carol", "boss", "audrey", "stranger"):
        role = USERS.get(user, "user")
        expected = "missing" if role in ALLOWED_ROLES[OPERATIONS[cls].role] else "denied"
        for op in variants(cls, session_id=name, owner="alice"):
            assert outcome(call_as(served.clients[user]), op) == expected, (user, op)


@pytest.mark.parametrize("rights", [["read"], ["read", "write"], ["write"]], ids=str)
def test_a_share_link_opens_its_session_and_nothing_else(served: Served, rights: list[Right]) -> None:
    alice = served.clients["alice"]
    session = alice.session()
    session.add_message("user", "hello")
    alice.create_session(f"other-{session.session_id}")
    link = session.share_link(rights, expires_in=600)
    with holdfast.connect(served.server.url, api_key=link.token) as guest:
        assert guest.whoami().role == "guest"
        assert [row.session_id for row in guest.list_sessions()] == [session.session_id]
        if "read" in rights:
            assert [message.text for message in guest.session(session.session_id).messages] == ["hello"]
            uri = f"viking://user/alice/sessions/{session.session_id}"
            assert guest.ls("viking://user/alice/sessions", simple=True) == [uri]
            assert '"hello"' in guest.read(f"viking://session/{session.session_id}/messages.jsonl")
        if "write" in rights:
            guest.session(session.session_id, owner="alice").add_message("user", "from outside")
            assert session.messages[-1].author == f"link-{link.id}"
        with pytest.raises(NotFoundError):
            guest.get_session(f"other-{session.session_id}", owner="alice")
        for attempt in (lambda: guest.create_session("new"), guest.admin.list_audit):
            with pytest.raises(PermissionDeniedError):
                attempt()
        with pytest.raises(NotFoundError):
            guest.session_used("new", ["viking://x"])
        assert session.links[0].use_count > 0
        session.revoke_link(link.id)
        with pytest.raises(UnauthenticatedError, match="share link is not valid"):
            guest.list_sessions()


def test_a_wrong_or_expired_share_link_is_refused(served: Served) -> None:
    session = served.clients["alice"].session()
    session.add_message("user", "hello")
    link = session.share_link(expires_in=1)
    for token in (link.token[:-2] + "xx", link.token.replace("hfl.", "hf."), "hfl.x.y.z", "hfl...."):
        response = httpx2.get(f"{served.server.url}/api/v1/sessions", headers={"X-API-Key": token})
        assert response.status_code == 401, token


def test_the_owner_of_a_session_may_be_in_the_query_of_any_request(served: Served) -> None:
    alice, bob = served.clients["alice"], served.clients["bob"]
    name = alice.create_session().session_id
    alice.share_session(name, "bob", ["read", "write"])
    headers = {"X-API-Key": bob._transport._codec.headers["X-API-Key"]}  # type: ignore[attr-defined]
    path = f"{served.server.url}/api/v1/sessions/{name}"
    body = {"role": "user", "content": "hello"}
    assert httpx2.post(f"{path}/messages?owner=alice", json=body, headers=headers).status_code == 200
    assert httpx2.get(f"{path}?owner=alice", headers=headers).json()["result"]["total_message_count"] == 1
    assert httpx2.get(path, headers=headers).status_code == 404


def test_the_agent_of_a_request_is_named_by_a_header(served: Served) -> None:
    alice = served.clients["alice"]
    headers = {"X-API-Key": alice._transport._codec.headers["X-API-Key"]}  # type: ignore[attr-defined]
    path = f"{served.server.url}/api/v1/whoami"
    response = httpx2.get(path, headers={**headers, "X-OpenViking-Agent": "coder"})
    assert response.json()["result"]["agent_id"] == "coder"
    response = httpx2.get(path, headers={**headers, "X-OpenViking-Agent": "not a name"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")
    assert "agent_id" in response.json()["error"]["message"]
