"""Every operation, as it is in the table, tried by strangers. A new operation joins by itself."""

from typing import Any

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.engine import RULES
from holdfast.engine.gate.access import RANK
from holdfast.errors import HoldfastError, InvalidArgumentError, PermissionDeniedError
from holdfast.model.identity import Key, Principal
from holdfast.model.parts import ToolPart
from holdfast.ops.administration import CreateAccount, ListKeys
from holdfast.ops.sessions import AddMessage, GetMessages, GetSession, ListToolResults, RecordUse
from holdfast.ops.table import OPERATIONS, Operation
from holdfast.store.database import Database
from holdfast.store.drivers.sqlite import SqliteDatabase
from holdfast.testing.examples import blurred, example

OWNER = Principal("acme", "alice", "user")
OPERATOR = Principal("default", "operator", "root")
STRANGERS = [Principal("acme", "bob", "user"), Principal("acme", "bob", "admin"), Principal("rival", "alice", "user")]
ABOUT_AN_ACCOUNT = [op for op in OPERATIONS if "account_id" in op.__struct_fields__ and op.__name__ != "CreateAccount"]
ABOUT_NOTHING_NAMED = [
    op
    for op in OPERATIONS
    if not {"session_id", "account_id"} & set(op.__struct_fields__) and OPERATIONS[op].verb == "GET"
]
ABOUT_A_SESSION = [op for op in OPERATIONS if "session_id" in op.__struct_fields__ and op.__name__ != "CreateSession"]


@pytest.fixture
def engine(database: Database) -> Engine:
    engine = Engine(database)
    operator = Principal("acme", "operator", "root")
    for account in ("acme", "rival"):
        engine.call(Principal(account, "operator", "root"), GetSession(session_id="first", auto_create=True))
    engine.call(operator, GetSession(session_id="first"))
    return engine


def outcome(engine: Engine, principal: Principal, op: Operation[Any], name: str) -> Any:
    """What a caller gets to see, with the session's name and what differs by nature left out."""
    try:
        seen = msgspec.to_builtins(engine.call(principal, op))
    except HoldfastError as error:
        seen = error.to_dict()
    return blurred(seen, name)


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
@pytest.mark.parametrize("cls", ABOUT_A_SESSION, ids=lambda cls: cls.__name__)
def test_a_session_of_somebody_else_answers_exactly_as_one_that_does_not_exist(
    engine: Engine, cls: type[Operation[Any]], stranger: Principal
) -> None:
    engine.call(OWNER, AddMessage(session_id="theirs", role="tool", parts=[ToolPart(output="x" * 9_000)], id="m1"))
    (result,) = engine.call(OWNER, ListToolResults(session_id="theirs")).tool_results
    before = _state(engine)

    def ask(session_id: str) -> Any:
        op = example(cls, session_id=session_id, tool_result_id=result.tool_result_id)
        return outcome(engine, stranger, op, session_id)

    assert ask("theirs") == ask("nobodys")
    assert _state(engine) == before


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
@pytest.mark.parametrize("cls", ABOUT_AN_ACCOUNT, ids=lambda cls: cls.__name__)
def test_an_account_of_somebody_else_answers_exactly_as_one_that_does_not_exist(
    engine: Engine, cls: type[Operation[Any]], stranger: Principal
) -> None:
    (key,) = _users(engine, "theirs")

    def ask(account_id: str) -> Any:
        op = example(cls, account_id=account_id, user_id="admin", key_id=key.key_id)
        return outcome(engine, stranger, op, account_id)

    assert ask("theirs") == ask("nobodys")
    assert ask("theirs")["code"] == "PERMISSION_DENIED"
    assert engine.call(OPERATOR, ListKeys(account_id="theirs", user_id="admin")) == [key]


@pytest.mark.parametrize("stranger", [*STRANGERS, Principal("rival", "boss", "admin")], ids=str)
@pytest.mark.parametrize("cls", ABOUT_NOTHING_NAMED, ids=lambda cls: cls.__name__)
def test_what_others_do_shows_in_nothing_that_a_stranger_can_list_or_count(
    engine: Engine, cls: type[Operation[Any]], stranger: Principal
) -> None:
    def ask() -> Any:
        return outcome(engine, stranger, example(cls), "NAME")

    before = ask()
    engine.call(OWNER, AddMessage(session_id="theirs", role="tool", parts=[ToolPart(output="x" * 9_000)]))
    engine.call(OWNER, RecordUse(session_id="theirs", contexts=["viking://x"]))
    audited = cls.__name__ == "ListAudit" and stranger.account_id == OWNER.account_id and stranger.role == "admin"
    assert (ask() == before) is not audited, "but for an administrator, who sees the audit of their own account"


def _users(engine: Engine, account_id: str) -> list[Key]:
    engine.call(OPERATOR, CreateAccount(account_id=account_id))
    return engine.call(OPERATOR, ListKeys(account_id=account_id, user_id="admin"))


def _state(engine: Engine) -> Any:
    return [
        engine.call(OWNER, GetSession(session_id="theirs")),
        engine.call(OWNER, GetMessages(session_id="theirs")),
    ]


@pytest.mark.parametrize("role", RANK)
@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.__name__)
def test_an_operation_is_refused_to_exactly_the_roles_below_its_own(cls: type[Operation[Any]], role: Any) -> None:
    engine = Engine(SqliteDatabase(":memory:"))  # roles are looked at before any database is
    engine.call(Principal("acme", "operator", "root"), GetSession(session_id="first", auto_create=True))
    op = example(cls, session_id="some", account_id="acme", user_id="x", tool_result_id="some", key_id="0" * 16)
    try:
        engine.call(Principal("acme", "carol", role), op)
        allowed = True
    except PermissionDeniedError:
        allowed = False
    except HoldfastError:
        allowed = True
    assert allowed == (RANK[role] >= RANK[OPERATIONS[cls].role])
    engine.close()


def test_every_operation_has_a_rule_and_every_rule_an_operation() -> None:
    assert set(RULES) == set(OPERATIONS)


def test_no_two_operations_share_a_route() -> None:
    routes = [(entry.verb, entry.path) for entry in OPERATIONS.values()]
    assert len(routes) == len(set(routes))


def test_names_in_a_path_are_fields_of_the_operation() -> None:
    for cls, entry in OPERATIONS.items():
        for piece in entry.path.split("/"):
            if piece.startswith("{"):
                assert piece.strip("{}") in cls.__struct_fields__, (cls, piece)


@pytest.mark.parametrize("account", ["*", "", "a/b", "x'; SET LOCAL holdfast.account = '*"])
def test_a_principal_with_an_unsafe_account_cannot_be_made(account: str) -> None:
    with pytest.raises(InvalidArgumentError, match="account_id"):
        Principal(account, "alice", "user")
    with pytest.raises(InvalidArgumentError, match="user_id"):
        Principal("acme", account, "user")
