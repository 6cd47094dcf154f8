"""Every operation in the table is called by other users and accounts. New operations are included automatically."""

from typing import Any, get_args

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.engine import HANDLERS
from holdfast.engine.gate.access import ALLOWED_ROLES
from holdfast.errors import HoldfastError, InvalidArgumentError, PermissionDeniedError
from holdfast.model.identity import AccessRole, Key, Principal
from holdfast.model.parts import ToolPart
from holdfast.ops.administration import CreateAccount, ListKeys
from holdfast.ops.sessions import AddMessage, GetMessages, GetSession, ListToolResults, RecordUse
from holdfast.ops.table import OPERATIONS, Operation
from holdfast.store.database import Database
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.testing.examples import example_operation, without_varying_fields

OWNER = Principal("acme", "alice", "user")
OPERATOR = Principal("default", "operator", "root")
OTHER_PRINCIPALS = [
    Principal("acme", "bob", "user"),
    Principal("acme", "bob", "admin"),
    Principal("rival", "alice", "user"),
]
ACCOUNT_OPERATIONS = [
    op for op in OPERATIONS if "account_id" in op.__struct_fields__ and op.__name__ != "CreateAccount"
]
OPTIONAL_FIELDS = {"Search": {"session_id"}}
READS_WITHOUT_RESOURCE = [
    op
    for op in OPERATIONS
    if not {"session_id", "account_id"} & set(op.__struct_fields__) - OPTIONAL_FIELDS.get(op.__name__, set())
    and OPERATIONS[op].reads
]
SESSION_OPERATIONS = [
    op for op in OPERATIONS if "session_id" in op.__struct_fields__ and op.__name__ != "CreateSession"
]


@pytest.fixture
def engine(database: Database) -> Engine:
    engine = Engine(database)
    operator = Principal("acme", "operator", "root")
    for account in ("acme", "rival"):
        engine.call(Principal(account, "operator", "root"), GetSession(session_id="first", auto_create=True))
    engine.call(operator, GetSession(session_id="first"))
    return engine


def visible_outcome(engine: Engine, principal: Principal, op: Operation[Any], name: str) -> Any:
    """The result or the error as the caller sees it, without the name and without values that always differ."""
    try:
        result = msgspec.to_builtins(engine.call(principal, op))
    except HoldfastError as error:
        result = error.to_dict()
    return without_varying_fields(result, name)


@pytest.mark.parametrize("other_principal", OTHER_PRINCIPALS, ids=str)
@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_another_users_session_is_indistinguishable_from_one_that_does_not_exist(
    engine: Engine, cls: type[Operation[Any]], other_principal: Principal
) -> None:
    engine.call(OWNER, AddMessage(session_id="theirs", role="tool", parts=[ToolPart(output="x" * 9_000)], id="m1"))
    (result,) = engine.call(OWNER, ListToolResults(session_id="theirs")).tool_results
    before = _state(engine)

    def call(session_id: str) -> Any:
        op = example_operation(cls, session_id=session_id, tool_result_id=result.tool_result_id)
        return visible_outcome(engine, other_principal, op, session_id)

    assert call("theirs") == call("missing")
    assert _state(engine) == before


@pytest.mark.parametrize("other_principal", OTHER_PRINCIPALS, ids=str)
@pytest.mark.parametrize("cls", ACCOUNT_OPERATIONS, ids=lambda cls: cls.__name__)
def test_another_account_is_indistinguishable_from_one_that_does_not_exist(
    engine: Engine, cls: type[Operation[Any]], other_principal: Principal
) -> None:
    (key,) = _users(engine, "theirs")

    def call(account_id: str) -> Any:
        op = example_operation(cls, account_id=account_id, user_id="admin", key_id=key.key_id)
        return visible_outcome(engine, other_principal, op, account_id)

    assert call("theirs") == call("missing")
    assert call("theirs")["code"] == "PERMISSION_DENIED"
    assert engine.call(OPERATOR, ListKeys(account_id="theirs", user_id="admin")) == [key]


@pytest.mark.parametrize("other_principal", [*OTHER_PRINCIPALS, Principal("rival", "boss", "admin")], ids=str)
@pytest.mark.parametrize("cls", READS_WITHOUT_RESOURCE, ids=lambda cls: cls.__name__)
def test_lists_and_counts_show_nothing_of_other_users(
    engine: Engine, cls: type[Operation[Any]], other_principal: Principal
) -> None:
    def call() -> Any:
        engine.audit_log.settle()  # waiting writes are counted
        return visible_outcome(engine, other_principal, example_operation(cls), "NAME")

    before = call()
    engine.call(OWNER, AddMessage(session_id="theirs", role="user", content="hello"))
    engine.call(OWNER, AddMessage(session_id="theirs", role="tool", parts=[ToolPart(output="x" * 9_000)]))
    engine.call(OWNER, RecordUse(session_id="theirs", contexts=["viking://x"]))
    is_visible = (
        cls.__name__ in {"ListAudit", "ExportAudit", "ObserveSystem", "ObserveComponent"}
        and other_principal.account_id == OWNER.account_id
        and other_principal.role == "admin"
    )
    assert (call() == before) is not is_visible, (
        "only an administrator sees it, in the audit log and in the counts of their own account"
    )


def _users(engine: Engine, account_id: str) -> list[Key]:
    engine.call(OPERATOR, CreateAccount(account_id=account_id))
    return engine.call(OPERATOR, ListKeys(account_id=account_id, user_id="admin"))


def _state(engine: Engine) -> Any:
    return [
        engine.call(OWNER, GetSession(session_id="theirs")),
        engine.call(OWNER, GetMessages(session_id="theirs")),
    ]


@pytest.mark.parametrize("role", get_args(AccessRole))
@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.__name__)
def test_an_operation_is_refused_exactly_to_roles_that_may_not_call_it(cls: type[Operation[Any]], role: Any) -> None:
    engine = Engine(SqliteDatabase(":memory:"))  # the role is checked before any database access
    engine.call(Principal("acme", "operator", "root"), GetSession(session_id="first", auto_create=True))
    op = example_operation(
        cls, session_id="some", account_id="acme", user_id="x", tool_result_id="some", key_id="0" * 16
    )
    try:
        engine.call(Principal("acme", "carol", role), op)
        allowed = True
    except PermissionDeniedError as error:  # a resource can be denied, too; then the role was sufficient
        allowed = "required" not in error.details
    except HoldfastError:
        allowed = True
    assert allowed == (role in ALLOWED_ROLES[OPERATIONS[cls].role])
    engine.close()


def test_every_operation_has_a_rule_and_every_rule_an_operation() -> None:
    assert set(HANDLERS) == set(OPERATIONS)


def test_no_two_operations_share_a_route() -> None:
    routes = [(entry.verb, entry.path) for entry in OPERATIONS.values()]
    assert len(routes) == len(set(routes))


def test_path_parameters_are_fields_of_the_operation() -> None:
    for cls, entry in OPERATIONS.items():
        for piece in entry.path.split("/"):
            if piece.startswith("{"):
                assert piece.strip("{}") in cls.__struct_fields__, (cls, piece)


@pytest.mark.parametrize("account", ["*", "", "a/b", "x'; SET LOCAL holdfast.account = '*"])
def test_a_principal_with_an_unsafe_name_is_refused(account: str) -> None:
    with pytest.raises(InvalidArgumentError, match="account_id"):
        Principal(account, "alice", "user")
    with pytest.raises(InvalidArgumentError, match="user_id"):
        Principal("acme", account, "user")
