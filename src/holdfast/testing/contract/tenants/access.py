"""The contract of the isolation of users and accounts, of roles, and of the audit log."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, PermissionDeniedError

OTHER_USERS = [("acme", "bob"), ("rival", "alice")]


class AccessContract:
    @pytest.mark.parametrize(("account", "user"), OTHER_USERS)
    def test_sessions_of_other_users_are_not_found(
        self, client: Any, connect_as: Callable[..., Any], account: str, user: str
    ) -> None:
        client.add_message("chat_001", "user", "the secret word is xylophone")
        other_user = connect_as(account, user)
        attempts: list[Callable[[], Any]] = [
            lambda: other_user.get_session("chat_001"),
            lambda: other_user.get_messages("chat_001", q="xylophone"),
            lambda: other_user.update_session("chat_001", title="mine"),
            lambda: other_user.fork_session("chat_001"),
            lambda: other_user.delete_session("chat_001"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="Session chat_001 not found"):
                attempt()
        assert list(other_user.list_sessions()) == []

    @pytest.mark.parametrize(("account", "user"), OTHER_USERS)
    def test_two_users_can_have_different_sessions_with_the_same_id(
        self, client: Any, connect_as: Callable[..., Any], account: str, user: str
    ) -> None:
        client.add_message("chat_001", "user", "alice's", id="m1", idempotency_key="k")
        other_user = connect_as(account, user)
        other_user.add_message("chat_001", "user", "the stranger's", id="m1", idempotency_key="k")
        assert [m.text for m in client.get_messages("chat_001").messages] == ["alice's"]
        assert [m.text for m in other_user.get_messages("chat_001").messages] == ["the stranger's"]
        other_user.delete_session("chat_001")
        assert [m.text for m in client.get_messages("chat_001", q="alice").messages] == ["alice's"]

    def test_an_account_must_exist_unless_the_caller_is_the_operator(self, connect_as: Callable[..., Any]) -> None:
        with pytest.raises(PermissionDeniedError, match="no account newcomer"):
            connect_as("newcomer", "eve", "user").create_session("s")
        operator = connect_as("acme", "alice", "root")
        assert operator.admin.create_account("newcomer").account_id == "newcomer"
        connect_as("newcomer", "eve", "user").create_session("s")
        assert "newcomer" in [account.account_id for account in operator.admin.list_accounts()]
        with pytest.raises(AlreadyExistsError):
            operator.admin.create_account("newcomer")

    def test_changes_of_accounts_are_in_the_operator_audit(self, connect_as: Callable[..., Any]) -> None:
        operator = connect_as("elsewhere", "alice", "root")
        operator.admin.create_account("newcomer")
        operator.admin.delete_account("newcomer")
        records = operator.admin.list_operator_audit(limit=2).records
        assert [(record.action, record.resource, record.user_id) for record in records] == [
            ("DeleteAccount", "newcomer", "alice"),
            ("CreateAccount", "newcomer admin=admin", "alice"),
        ]
        assert operator.admin.list_audit().records == []
        with pytest.raises(PermissionDeniedError, match="needs the role root"):
            connect_as("acme", "boss", "admin").admin.list_operator_audit()

    def test_an_insufficient_role_is_rejected(self, connect_as: Callable[..., Any]) -> None:
        user, admin = connect_as("acme", "alice", "user"), connect_as("acme", "alice", "admin")
        for call in (user.admin.list_audit, user.admin.list_accounts, admin.admin.list_accounts):
            with pytest.raises(PermissionDeniedError, match="needs the role"):
                call()
        assert admin.admin.list_audit().records == []

    def test_changes_are_audited_except_appended_messages(self, client: Any) -> None:
        client.create_session("chat_001")
        client.add_message("chat_001", "user", "hi")
        client.update_session("chat_001", title="x")
        client.fork_session("chat_001", new_session_id="child")
        client.delete_session("chat_001")
        with pytest.raises(NotFoundError):
            client.delete_session("chat_001")
        records = client.admin.list_audit().records
        assert [(record.action, record.resource) for record in reversed(records)] == [
            ("CreateAccount", "acme"),
            ("CreateSession", "chat_001"),
            ("UpdateSession", "chat_001"),
            ("ForkSession", "child forked_from=chat_001"),
            ("DeleteSession", "chat_001"),
        ]
        assert {(record.user_id, record.role) for record in records} == {("alice", "root")}

    def test_sessions_created_implicitly_are_audited(self, client: Any) -> None:
        client.get_session("a", auto_create=True)
        client.add_message("b", "user", "hi")
        client.session_used("c", ["viking://x"])
        created = [record.resource for record in client.admin.list_audit().records if record.action == "CreateSession"]
        assert created == ["c", "b", "a"]

    def test_the_audit_is_read_in_pages(self, client: Any) -> None:
        for number in range(5):
            client.create_session(f"s{number}")
        seen, cursor = [], None
        for _ in range(3):
            page = client.admin.list_audit(limit=2, cursor=cursor)
            seen += [record.resource for record in page.records]
            cursor = page.next_cursor
        assert (seen, cursor) == (["s4", "s3", "s2", "s1", "s0", "acme"], None)

    @pytest.mark.parametrize("account", ["*", "", "a/b", "x'; DROP TABLE messages; --"])
    def test_an_invalid_account_id_is_rejected_when_connecting(
        self, connect_as: Callable[..., Any], account: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match="account_id"):
            connect_as(account, "alice")
