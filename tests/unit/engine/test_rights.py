"""Every operation on a session, by every role, on sessions of their own, shared, foreign, and of another account.

The table of operations says what each needs. New operations are included automatically.
"""

import itertools
from functools import partial
from typing import Any, get_args

import msgspec
import pytest

from holdfast.engine import Engine
from holdfast.engine.gate.access import ALLOWED_ROLES
from holdfast.engine.gate.keys import KeyOwner
from holdfast.errors import HoldfastError
from holdfast.model.access import Right, to_bits
from holdfast.model.identity import AccessRole, Principal
from holdfast.ops.sessions import (
    AddMessage,
    GetMessages,
    GetSession,
)
from holdfast.ops.sharing import CreateShareLink, ShareSession
from holdfast.ops.table import OPERATIONS, Operation
from holdfast.store.database import Database
from holdfast.testing.examples import without_varying_fields
from holdfast.testing.rights import SESSION_OPERATIONS, SETS_OF_RIGHTS, needed, outcome, variants

OWNER = Principal("acme", "alice", "user")
ROLES: tuple[Any, ...] = tuple(role for role in get_args(AccessRole) if role != "guest")


@pytest.fixture
def engine(database: Database) -> Engine:
    engine = Engine(database)
    for account in ("acme", "rival"):
        engine.call(Principal(account, "operator", "root"), GetSession(session_id="first", auto_create=True))
    return engine


def share(engine: Engine, rights: list[Right], session_id: str = "shared") -> None:
    engine.call(OWNER, GetSession(session_id=session_id, auto_create=True))
    engine.call(OWNER, ShareSession(session_id=session_id, user_id="bob", rights=rights))


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_the_owner_may_do_everything_that_the_role_allows(engine: Engine, cls: type[Operation[Any]]) -> None:
    for role in ROLES:
        owner = Principal("acme", f"an_{role}", role)
        expected = "allowed" if role in ALLOWED_ROLES[OPERATIONS[cls].role] else "denied"
        for op in variants(cls, session_id="own"):
            engine.call(msgspec.structs.replace(owner, role="root"), GetSession(session_id="own", auto_create=True))
            assert outcome(partial(engine.call, owner), op) == expected, (role, op)


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_a_collaborator_may_do_exactly_what_the_rights_allow(engine: Engine, cls: type[Operation[Any]]) -> None:
    names = (f"s{number}" for number in itertools.count())
    for role, rights in itertools.product(ROLES, SETS_OF_RIGHTS):
        for op in variants(cls, session_id="shared", owner="alice"):
            name = next(names)
            share(engine, rights, name)
            is_allowed = role in ALLOWED_ROLES[OPERATIONS[cls].role] and not needed(op) & ~to_bits(rights)
            result = outcome(
                partial(engine.call, Principal("acme", "bob", role)), msgspec.structs.replace(op, session_id=name)
            )
            assert result == ("allowed" if is_allowed else "denied"), (role, rights, op)


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_a_share_link_allows_exactly_its_rights(engine: Engine, cls: type[Operation[Any]]) -> None:
    names = (f"s{number}" for number in itertools.count())
    for rights in SETS_OF_RIGHTS:
        for op in variants(cls, session_id="shared"):
            name = next(names)
            engine.call(OWNER, GetSession(session_id=name, auto_create=True))
            link = engine.call(OWNER, CreateShareLink(session_id=name, rights=rights))
            guest = engine.find_key_owner(link.token)
            assert isinstance(guest, KeyOwner)
            is_allowed = OPERATIONS[cls].role == "guest" and not needed(op) & ~to_bits(rights)
            for owner in (None, "alice"):
                named = msgspec.structs.replace(op, session_id=name, owner=owner)
                assert outcome(partial(engine.call, guest.principal), named) == (
                    "allowed" if is_allowed else "denied"
                ), named


STRANGERS = [
    *(Principal("acme", "carol", role) for role in ROLES),
    *(Principal("rival", "bob", role) for role in ROLES),
    Principal("rival", "alice", "user"),
]
"""Others of the account, and users of another account with the names of the owner and of a collaborator."""


@pytest.mark.parametrize("cls", SESSION_OPERATIONS, ids=lambda cls: cls.__name__)
def test_a_foreign_session_and_a_missing_one_look_the_same(engine: Engine, cls: type[Operation[Any]]) -> None:
    share(engine, ["read", "write", "invoke"], "theirs")
    engine.call(OWNER, AddMessage(session_id="theirs", role="user", content="hello", id="m1"))

    def state() -> Any:
        return engine.call(OWNER, GetSession(session_id="theirs")), engine.call(OWNER, GetMessages(session_id="theirs"))

    def call(stranger: Principal, session_id: str) -> Any:
        results = []
        for op in variants(cls, session_id=session_id, owner="alice"):
            try:
                results.append(msgspec.to_builtins(engine.call(stranger, op)))
            except HoldfastError as error:
                results.append(error.to_dict())
        return without_varying_fields(results, session_id)

    before = state()
    for stranger in STRANGERS:
        found = call(stranger, "theirs")
        assert found == call(stranger, "missing"), stranger
        assert all(result["code"] in {"NOT_FOUND", "PERMISSION_DENIED"} for result in found), stranger
    assert state() == before


def test_an_operation_on_a_session_must_declare_its_right() -> None:
    assert {cls.__name__ for cls, entry in OPERATIONS.items() if "{session_id}" in entry.path} == {
        cls.__name__ for cls in SESSION_OPERATIONS
    }
