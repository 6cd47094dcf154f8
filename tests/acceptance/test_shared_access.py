"""Cases of shared access that combine several operations: guests, and names that were given again."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psycopg
import pytest

import holdfast
from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server


def test_a_guest_lists_the_tree_and_knows_the_address_but_owns_nothing(tmp_path: Path) -> None:
    with (
        running_server(tmp_path) as server,
        holdfast.connect(server.url, user="alice") as alice,
    ):
        alice.session("plan").add_message("user", "Ship on Friday.")
        link = alice.session("plan").share_link()
        with holdfast.connect(server.url, api_key=link.token) as guest:
            assert guest.session("plan").uri == "viking://user/alice/sessions/plan"
            assert [entry.uri for entry in guest.ls("viking://")] == ["viking://user"]
            below = [entry.uri for entry in guest.ls("viking://", recursive=True)]
            assert "viking://user/alice/sessions/plan/messages.jsonl" in below
            with pytest.raises(PermissionDeniedError):
                guest.session("plan").fork()


def test_a_collaborator_who_leaves_removes_only_themselves(tmp_path: Path) -> None:
    """The first alice continues as bob, with her internal id, which is the name of the second alice."""
    with (
        holdfast.connect(tmp_path) as operator,
        holdfast.connect(tmp_path, user="owner") as owner,
    ):
        owner.create_session("plan")
        operator.admin.create_user("default", "owner")
        operator.admin.create_user("default", "alice")
        owner.share_session("plan", "alice")
        removed = operator.admin.delete_user("default", "alice")
        operator.admin.create_user("default", "bob", internal_id=removed.internal_id)
        operator.admin.create_user("default", "alice")
    with (
        holdfast.connect(tmp_path, user="owner") as owner,
        holdfast.connect(tmp_path, user="alice") as alice,
    ):
        owner.share_session("plan", "alice")
        assert len(owner.session("plan").collaborators) == 2
        alice.session("plan", owner="owner").leave()
        assert [row.user_id for row in owner.session("plan").collaborators] == [removed.internal_id]


def test_a_guest_may_name_the_owner_whose_name_was_given_again(tmp_path: Path) -> None:
    with (
        running_server(tmp_path) as server,
        holdfast.connect(server.url) as operator,
        holdfast.connect(server.url, user="alice") as alice,
    ):
        operator.create_session("first")
        operator.admin.create_user("default", "alice")
        operator.admin.delete_user("default", "alice")
        operator.admin.create_user("default", "alice")
        alice.create_session("plan")
        link = alice.session("plan").share_link()
        with holdfast.connect(server.url, api_key=link.token) as guest:
            for owner in (None, "alice", link.owner):
                assert guest.get_session("plan", owner=owner).session_id == "plan"


def test_a_collaborator_without_access_gets_an_error_and_not_an_empty_session(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, user="alice") as alice, holdfast.connect(tmp_path, user="bob") as bob:
        alice.session("plan").add_message("user", "Ship on Friday.")
        shared = bob.session("plan", owner="alice")
        with pytest.raises(NotFoundError):
            _ = shared.messages
        with pytest.raises(NotFoundError):
            _ = shared.summary
        with pytest.raises(NotFoundError):
            _ = shared.usage_records
        assert bob.session("plan").messages == []


def test_two_collaborators_with_one_idempotency_key_do_not_lose_a_message(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, user="alice") as alice, holdfast.connect(tmp_path, user="bob") as bob:
        alice.add_message("plan", "user", "Agreed.", idempotency_key="1")
        alice.session("plan").share("bob", rights=["read", "write"])
        with pytest.raises(ConflictError, match=r"idempotency_key: '1' was used .* by another user; use a new key"):
            bob.session("plan", owner="alice").add_message("user", "Agreed.", idempotency_key="1")
        for _ in range(2):
            bob.session("plan", owner="alice").add_message("user", "Agreed.", idempotency_key="2")
        assert [message.author for message in alice.session("plan").messages] == [None, "bob"]


def test_a_session_that_the_new_owner_creates_at_the_same_time_is_named_as_the_conflict(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_migrated_database()
    with (
        holdfast.connect(url, user="alice") as alice,
        holdfast.connect(url, user="bob") as bob,
        psycopg.connect(url) as other,
        ThreadPoolExecutor() as threads,
    ):
        alice.create_session("plan")
        bob.create_session("notes")
        other.execute("SELECT set_config('holdfast.account', 'default', false)")
        other.execute("UPDATE sessions SET session_id = 'plan' WHERE session_id = 'notes'")
        transfer = threads.submit(alice.session("plan").transfer, "bob")
        time.sleep(0.3)  # it waits for the other transaction
        assert not transfer.done()
        other.commit()
        with pytest.raises(AlreadyExistsError, match="bob already has a session plan"):
            transfer.result()


def test_a_stream_with_a_share_link_is_one_use_of_it(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, stream_poll_seconds=0.05) as server,
        holdfast.connect(server.url, user="alice") as alice,
    ):
        alice.session("plan").add_message("user", "Ship on Friday.")
        link = alice.session("plan").share_link()
        headers = {"X-API-Key": link.token, "Accept": "text/event-stream"}
        with httpx2.stream("GET", f"{server.url}/api/v1/sessions/plan/events", headers=headers) as events:
            assert events.status_code == 200
            time.sleep(0.5)
            assert alice.session("plan").links[0].use_count == 1


def test_a_session_is_not_transferred_to_an_auditor(tmp_path: Path) -> None:
    """Neither the auditor nor the earlier owner could transfer it back."""
    with holdfast.connect(tmp_path, user="alice") as alice:
        alice.create_session("plan")
        alice.admin.create_user("default", "grace", role="auditor")
        with pytest.raises(InvalidArgumentError, match="user_id: grace is an auditor"):
            alice.session("plan").transfer("grace")


def test_a_misspelt_collaborator_is_refused_with_advice(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, user="alice") as alice:
        alice.create_session("plan")
        with pytest.raises(InvalidArgumentError, match=r"user_id: .* use the name of a user"):
            alice.session("plan").share("b ob")
        with pytest.raises(InvalidArgumentError, match=r"internal_id: .* use the internal_id that the deletion"):
            alice.admin.create_user("default", "bob", internal_id="~")
        with pytest.raises(InvalidArgumentError, match=r"file: .* is a folder; name a file in it"):
            alice.export_audit(tmp_path)
