"""Every operation, as it is in the table, tried by strangers. A new operation joins by itself."""

from typing import Any, get_type_hints

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.access import RANK
from holdfast.engine.engine import RULES
from holdfast.errors import HoldfastError, InvalidArgumentError, PermissionDeniedError
from holdfast.model import Principal
from holdfast.ops import OPERATIONS, AddMessage, GetMessages, GetSession, ListToolResults, Operation
from holdfast.parts import ToolPart
from holdfast.store.database import Database

OWNER = Principal("acme", "alice", "user")
STRANGERS = [Principal("acme", "bob", "user"), Principal("acme", "bob", "admin"), Principal("rival", "alice", "user")]
ABOUT_A_SESSION = [op for op in OPERATIONS if "session_id" in op.__struct_fields__ and op.__name__ != "CreateSession"]


def example(cls: type[Operation[Any]], **known: Any) -> Operation[Any]:
    """An operation with its required fields filled in: the known ones as given, the others by their type."""
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    values = {name: known[name] for name in fields if name in known}
    for name, field in fields.items():
        if field.required and name not in values:
            values[name] = _value(name, get_type_hints(cls)[name])
    if "content" in fields:
        values.setdefault("content", "hello")
    if cls.__name__ == "RecordUse":
        values["contexts"] = ["viking://x"]
    return cls(**values)


def _value(name: str, hint: Any) -> Any:
    if name == "role":
        return "user"
    if name == "messages":
        return [{"role": "user", "content": "hello"}]
    if hint is str:
        return "x"
    raise AssertionError(f"tell this test how to make a value for {name}: {hint}")


@pytest.fixture
def engine(database: Database) -> Engine:
    engine = Engine(database)
    operator = Principal("acme", "operator", "root")
    for account in ("acme", "rival"):
        engine.call(Principal(account, "operator", "root"), GetSession(session_id="first", auto_create=True))
    engine.call(operator, GetSession(session_id="first"))
    return engine


def outcome(engine: Engine, who: Principal, op: Operation[Any], name: str) -> Any:
    """What a caller gets to see, with the session's name and what differs by nature left out."""
    try:
        seen = msgspec.to_builtins(engine.call(who, op))
    except HoldfastError as error:
        seen = error.to_dict()
    return _blurred(seen, name)


def _blurred(seen: Any, name: str) -> Any:
    if isinstance(seen, dict):
        varying = {"created_at", "updated_at", "last_message_at", "mod_time", "message_ids"}
        return {key: _blurred(value, name) for key, value in seen.items() if key not in varying}
    if isinstance(seen, list):
        return [_blurred(item, name) for item in seen]
    return seen.replace(name, "NAME") if isinstance(seen, str) else seen


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


def _state(engine: Engine) -> Any:
    return [
        engine.call(OWNER, GetSession(session_id="theirs")),
        engine.call(OWNER, GetMessages(session_id="theirs")),
    ]


@pytest.mark.parametrize("role", RANK)
@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.__name__)
def test_an_operation_is_refused_to_exactly_the_roles_below_its_own(
    engine: Engine, cls: type[Operation[Any]], role: Any
) -> None:
    op = example(cls, session_id="some", account_id="some", tool_result_id="some")
    try:
        engine.call(Principal("acme", "carol", role), op)
        allowed = True
    except PermissionDeniedError:
        allowed = False
    except HoldfastError:
        allowed = True
    assert allowed == (RANK[role] >= RANK[OPERATIONS[cls].role])


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
