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
    UnauthenticatedError,
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


def test_sessions_of_two_users_with_one_name_have_different_addresses(tmp_path: Path) -> None:
    with (
        holdfast.connect(tmp_path, user="operator") as operator,
        holdfast.connect(tmp_path, user="alice") as alice,
        holdfast.connect(tmp_path, user="bob", role="user") as bob,
    ):
        operator.create_session("first")
        for user in ("alice", "bob"):
            operator.admin.create_user("default", user)
        alice.session("plan").add_message("user", "of the first Alice")
        alice.share_session("plan", "bob", ["read", "write"])
        operator.admin.delete_user("default", "alice")
        operator.admin.create_user("default", "alice")
        with holdfast.connect(tmp_path, user="alice") as second_alice:
            second_alice.session("plan").add_message("user", "of the second Alice")
            second_alice.share_session("plan", "bob", ["read"])
            texts = {}
            for row in bob.list_sessions():
                (message,) = bob.session("plan", owner=row.owner).messages
                assert message.text in bob.read(f"{row.uri}/messages.jsonl")
                texts[row.owner] = message.text
            assert sorted(texts.values()) == ["of the first Alice", "of the second Alice"]
            assert texts["alice"] == "of the first Alice"
            assert [message.text for message in second_alice.session("plan").messages] == ["of the second Alice"]
            link = second_alice.session("plan").share_link()
            assert texts[link.owner] == "of the second Alice"


def test_a_collaborator_cannot_confirm_a_guessed_message(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, user="alice") as alice, holdfast.connect(tmp_path, user="bob", role="user") as bob:
        alice.add_message("plan", "user", "the price is 12", id="m1")
        alice.share_session("plan", "bob", ["write"])
        for guess in ("the price is 11", "the price is 12"):
            with pytest.raises(ConflictError, match="already has a message 'm1' with another body"):
                bob.add_message("plan", "user", guess, id="m1", owner="alice")
        first = bob.add_message("plan", "user", "mine", id="m2", owner="alice")
        assert bob.add_message("plan", "user", "mine", id="m2", owner="alice") == first


def test_a_transfer_ends_all_share_links(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, holdfast.connect(server.url, user="alice") as alice:
        session = alice.session("plan")
        session.add_message("user", "hello")
        link = session.share_link(["read", "write"])
        session.transfer("bob", keep_rights=[])
        with holdfast.connect(server.url, api_key=link.token) as guest, pytest.raises(UnauthenticatedError):
            guest.get_session("plan")


def test_a_writer_who_may_not_read_sees_neither_title_nor_counts(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path, user="alice") as alice, holdfast.connect(tmp_path, user="bob", role="user") as bob:
        alice.create_session("plan", title="secret merger", metadata={"price": 12})
        alice.add_message("plan", "user", "hello")
        alice.share_session("plan", "bob", ["write"])
        bob.add_message("plan", "user", "for you", owner="alice")
        (row,) = bob.list_sessions()
        assert (row.session_id, row.title, row.total_message_count, row.rights) == ("plan", "", 0, ["write"])
        assert list(bob.list_sessions(q="secret")) == []
        with pytest.raises(PermissionDeniedError, match="lacks the right to read"):
            bob.update_session("plan", title="mine", owner="alice")
        task_id = bob.commit_session("plan", owner="alice").task_id
        assert bob.wait_for_task(str(task_id), 60).status == "completed"


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
