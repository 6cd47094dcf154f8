"""The contract of accounts, users and keys."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)


class TenantContract:
    def test_an_account_is_created_with_an_administrator_and_a_key(self, client: Any) -> None:
        created = client.admin.create_account("newcomer", "eve")
        assert (created.account_id, created.admin_user_id) == ("newcomer", "eve")
        assert created.user_key.startswith("hf.")
        (user,) = client.admin.list_users("newcomer")
        assert (user.account_id, user.user_id, user.role, user.key_count) == ("newcomer", "eve", "admin", 1)
        listed = {account.account_id: account for account in client.admin.list_accounts()}
        assert (listed["newcomer"].user_count, listed["newcomer"].status) == (1, "active")

    def test_users_are_created_changed_and_deleted(self, client: Any) -> None:
        client.admin.create_account("newcomer")
        created = client.admin.create_user("newcomer", "bob")
        assert (created.user_id, created.role) == ("bob", "user")
        assert client.admin.set_role("newcomer", "bob", "admin").role == "admin"
        with pytest.raises(AlreadyExistsError, match="User bob already exists"):
            client.admin.create_user("newcomer", "bob")
        assert client.admin.delete_user("newcomer", "bob").user_id == "bob"
        assert [user.user_id for user in client.admin.list_users("newcomer")] == ["admin"]
        attempts: list[Callable[[], Any]] = [
            lambda: client.admin.delete_user("newcomer", "bob"),
            lambda: client.admin.set_role("newcomer", "bob", "user"),
            lambda: client.admin.rotate_key("newcomer", "bob"),
            lambda: client.admin.create_key("newcomer", "bob"),
            lambda: client.admin.list_keys("newcomer", "bob"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="User bob not found"):
                attempt()

    def test_keys_are_created_listed_rotated_and_revoked(self, client: Any) -> None:
        client.admin.create_account("newcomer")
        second = client.admin.create_key("newcomer", "admin", expires_in_seconds=3600)
        keys = {key.key_id: key for key in client.admin.list_keys("newcomer", "admin")}
        assert len(keys) == 2
        assert keys[second.key_id].expires_at == second.expires_at
        assert second.user_key not in str(keys)
        assert client.admin.revoke_key("newcomer", "admin", second.key_id).key_id == second.key_id
        with pytest.raises(NotFoundError, match=r"Key \w+ not found"):
            client.admin.revoke_key("newcomer", "admin", second.key_id)
        third = client.admin.rotate_key("newcomer", "admin")
        assert [key.key_id for key in client.admin.list_keys("newcomer", "admin")] == [third.key_id]

    def test_deleting_an_account_deletes_all_its_data(self, client: Any, connect_as: Callable[..., Any]) -> None:
        other = connect_as("newcomer", "eve")
        other.add_message("s", "user", "the secret word is xylophone", idempotency_key="k")
        assert client.admin.delete_account("newcomer").account_id == "newcomer"
        with pytest.raises(NotFoundError, match="Account newcomer not found"):
            client.admin.delete_account("newcomer")
        assert list(other.list_sessions()) == []
        assert other.add_message("s", "user", "anew", idempotency_key="k").seq == 1
        assert other.get_messages("s", q="xylophone").messages == []

    def test_a_caller_cannot_delete_its_own_account(self, client: Any) -> None:
        client.create_session("s")
        with pytest.raises(ConflictError, match="is your own"):
            client.admin.delete_account("acme")
        assert len(client.list_sessions()) == 1

    def test_users_of_a_missing_account_are_not_found(self, client: Any) -> None:
        attempts: list[Callable[[], Any]] = [
            lambda: client.admin.list_users("nowhere"),
            lambda: client.admin.create_user("nowhere", "x"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFoundError, match="Account nowhere not found"):
                attempt()

    def test_an_administrator_has_access_to_the_own_account_only(self, connect_as: Callable[..., Any]) -> None:
        connect_as("acme", "alice", "root").create_session("s")
        boss = connect_as("acme", "boss", "admin")
        assert boss.admin.create_user("acme", "carol").user_id == "carol"
        for account in ("rival", "nowhere"):
            with pytest.raises(PermissionDeniedError, match=f"cannot act on the account {account}"):
                boss.admin.list_users(account)

    @pytest.mark.parametrize("seconds", [0, -1, 10**12, "soon", 1.5])
    def test_an_invalid_lifetime_of_a_key_is_rejected(self, client: Any, seconds: Any) -> None:
        client.admin.create_account("newcomer")
        with pytest.raises(InvalidArgumentError, match="expires_in_seconds"):
            client.admin.create_key("newcomer", "admin", expires_in_seconds=seconds)

    @pytest.mark.parametrize("role", ["root", "king", ""])
    def test_a_user_cannot_have_another_role_than_user_or_admin(self, client: Any, role: str) -> None:
        client.admin.create_account("newcomer")
        with pytest.raises(InvalidArgumentError, match="role"):
            client.admin.create_user("newcomer", "bob", role)
