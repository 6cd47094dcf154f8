"""Four promises about the security and isolation of sessions, each tested with real keys on a real server.

- Tenant isolation: sessions in different tenants never see each other.
- User isolation: within a tenant, sessions are private by default unless shared.
- Permission model: owner, collaborators, read-only roles.
- Audit: open, edit, share and archive are logged.
"""

from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.errors import NotFoundError, PermissionDeniedError
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"
Connect = Callable[[str], holdfast.Client]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("served"), root_api_key=ROOT_KEY) as server:
        yield server


@pytest.fixture
def connect(server: ServerProcess) -> Iterator[Connect]:
    """Opens a client for a user of the account acme: alice, bob, audrey the auditor; or for "rival", of another one."""
    with holdfast.connect(server.url, api_key=ROOT_KEY) as operator:
        operator.admin.create_account("acme")
        keys = {user: operator.admin.create_user("acme", user).user_key for user in ("alice", "bob")}
        keys["audrey"] = operator.admin.create_user("acme", "audrey", "auditor").user_key
        operator.admin.create_account("rival")
        keys["rival"] = operator.admin.create_user("rival", "alice").user_key
        opened: dict[str, holdfast.Client] = {}

        def connect(user: str) -> holdfast.Client:
            if user not in opened:
                opened[user] = holdfast.connect(server.url, api_key=keys[user])
            return opened[user]

        yield connect
        for client in opened.values():
            client.close()
        for account in ("acme", "rival"):
            operator.admin.delete_account(account)


def test_sessions_in_different_tenants_never_see_each_other(connect: Connect) -> None:
    alice, rival = connect("alice"), connect("rival")
    alice.add_message("matter", "user", "the secret word is xylophone")
    rival.add_message("matter", "user", "another tenant's")
    assert [message.text for message in rival.get_messages("matter", owner="alice").messages] == ["another tenant's"]
    assert [row.session_id for row in rival.list_sessions()] == ["matter"]
    assert rival.get_messages("matter", q="xylophone").messages == []
    with pytest.raises(NotFoundError, match="User bob not found"):
        rival.share_session("matter", "bob")
    rival.create_session("of-the-rival")
    assert "of-the-rival" not in {record.resource for record in connect("audrey").list_audit().records}
    with pytest.raises(PermissionDeniedError):
        rival.list_audit()


def test_sessions_are_private_by_default_unless_shared(connect: Connect) -> None:
    alice, bob = connect("alice"), connect("bob")
    alice.add_message("draft", "user", "hello")
    with pytest.raises(NotFoundError, match="Session draft not found"):
        bob.session("draft", owner="alice").context()
    assert list(bob.list_sessions()) == []
    alice.session("draft").share("bob")
    assert bob.session("draft", owner="alice").context().messages[0].text == "hello"
    alice.session("draft").unshare("bob")
    with pytest.raises(NotFoundError, match="Session draft not found"):
        bob.session("draft", owner="alice").context()


def test_a_session_has_an_owner_collaborators_and_read_only_roles(server: ServerProcess, connect: Connect) -> None:
    alice, bob, audrey = connect("alice"), connect("bob"), connect("audrey")
    session = alice.session("team")
    session.add_message("user", "hello")
    session.share("bob", ["read", "write"])
    bob.session("team", owner="alice").add_message("user", "from bob")
    assert [(row.user_id, row.rights) for row in session.collaborators] == [("bob", ["read", "write"])]
    link = session.share_link(["read"], expires_in=60)
    with holdfast.connect(server.url, api_key=link.token) as reviewer:
        assert [message.author for message in reviewer.session("team").messages] == [None, "bob"]
        with pytest.raises(PermissionDeniedError, match="right to write"):
            reviewer.session("team").add_message("user", "no")
    with pytest.raises(PermissionDeniedError, match="needs the role"):
        audrey.list_sessions()
    session.transfer("bob", keep_rights=["read"])
    assert (bob.get_session("team").owner, alice.get_session("team", owner="bob").rights) == ("bob", ["read"])


def test_open_edit_share_and_archive_are_logged(connect: Connect) -> None:
    alice, bob, audrey = connect("alice"), connect("bob"), connect("audrey")
    alice.add_message("log", "user", "nobody reads this in the audit log")
    alice.share_session("log", "bob", ["read"])
    bob.get_messages("log", owner="alice")
    alice.update_session("log", title="edited")
    with pytest.raises(PermissionDeniedError):
        bob.update_session("log", title="mine", owner="alice")
    alice.commit_session("log")
    alice.update_session("log", state="archived")
    records = audrey.list_audit(limit=1_000).records
    logged = {(record.user_id, record.action, record.outcome) for record in records if "log" in record.resource}
    assert {
        ("alice", "CreateSession", "done"),
        ("alice", "ShareSession", "done"),
        ("bob", "OpenSession", "done"),
        ("alice", "UpdateSession", "done"),
        ("bob", "UpdateSession", "denied"),
        ("alice", "CommitSession", "done"),
    } <= logged
    opened = next(record for record in records if record.action == "OpenSession" and record.user_id == "bob")
    assert (opened.address, bool(opened.key_id), opened.agent_id) == ("127.0.0.1", True, "default")
    assert opened.version.endswith("-1")
    assert "nobody reads this" not in str([record.to_dict() for record in records])
    assert audrey.verify_audit().is_intact
