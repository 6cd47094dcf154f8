"""The contract of access that ends: between two pages, by transfer, by expiry, and with a removed user."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.testing.faults.watching import wait_for

Connect = Callable[..., Any]


def assert_closed(user: Any, session_id: str, owner: str) -> None:
    """Check that no operation returns anything of a session under its address."""
    address = f"viking://user/{owner}/sessions/{session_id}"
    attempts: list[Callable[[], Any]] = [
        lambda: user.get_session(session_id, owner=owner),
        lambda: user.get_messages(session_id, owner=owner),
        lambda: user.read_events(session_id, owner=owner),
        lambda: user.get_session_context(session_id, owner=owner),
        lambda: user.list_archives(session_id, owner=owner),
        lambda: user.list_usage(session_id, owner=owner),
        lambda: user.list_collaborators(session_id, owner=owner),
        lambda: user.add_message(session_id, "user", "still here?", owner=owner),
        lambda: user.fork_session(session_id, owner=owner),
        lambda: user.ls(address),
        lambda: user.read(f"{address}/messages.jsonl"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFoundError):
            attempt()
    assert (session_id, owner) not in [(row.session_id, row.owner) for row in user.list_sessions()]


class RevocationContract:
    @pytest.fixture
    def reader(self, connect_as: Connect) -> Any:
        return connect_as("acme", "bob", "user")

    def test_a_page_of_a_list_has_no_session_that_was_revoked_before_it(self, client: Any, reader: Any) -> None:
        for number in range(6):
            client.create_session(f"s{number}")
            client.share_session(f"s{number}", "bob")
        first = reader.list_sessions(limit=2)
        assert [row.session_id for row in first] == ["s5", "s4"]
        for revoked in ("s3", "s1"):
            client.unshare_session(revoked, "bob")
        rest = reader.list_sessions(limit=4, cursor=first.next_cursor)
        assert ([row.session_id for row in rest], rest.next_cursor) == (["s2", "s0"], None)
        folders = reader.ls("viking://user/alice/sessions", simple=True)
        assert [uri.rsplit("/", 1)[1] for uri in folders] == ["s5", "s4", "s2", "s0"]

    def test_pages_of_messages_and_events_end_with_the_access(self, client: Any, reader: Any) -> None:
        client.batch_add_messages("plan", [{"role": "user", "content": f"message {number}"} for number in range(6)])
        client.share_session("plan", "bob")
        page = reader.get_messages("plan", limit=3, owner="alice")
        events = reader.read_events("plan", limit=3, owner="alice")
        assert (page.next_seq, events.has_more) == (4, True)
        client.unshare_session("plan", "bob")
        client.add_message("plan", "user", "written after the revocation")
        with pytest.raises(NotFoundError, match="Session plan not found"):
            reader.get_messages("plan", first=page.next_seq, owner="alice")
        with pytest.raises(NotFoundError, match="Session plan not found"):
            reader.read_events("plan", after=events.cursor, owner="alice")
        assert_closed(reader, "plan", "alice")
        assert list(reader.ls("viking://user", simple=True)) == ["viking://user/bob"]

    def test_a_session_closes_for_a_former_owner_and_opens_at_its_new_address(
        self, client: Any, reader: Any, connect_as: Connect
    ) -> None:
        carol = connect_as("acme", "carol", "user")
        client.add_message("plan", "user", "the first message")
        client.share_session("plan", "carol")
        client.transfer_session("plan", "bob", keep_rights=[])
        assert_closed(client, "plan", "alice")
        assert_closed(client, "plan", "bob")
        assert_closed(carol, "plan", "alice")
        assert [message.text for message in carol.get_messages("plan", owner="bob").messages] == ["the first message"]
        assert list(carol.ls("viking://user", simple=True)) == ["viking://user/carol", "viking://user/bob"]
        assert list(carol.ls("viking://user/bob/sessions", simple=True)) == ["viking://user/bob/sessions/plan"]
        assert reader.add_message("plan", "user", "mine now").seq == 2

    def test_a_grant_that_has_expired_opens_nothing(self, client: Any, reader: Any) -> None:
        client.add_message("plan", "user", "for a short time")
        client.share_session("plan", "bob", ["read", "write"], expires_in=1)
        assert reader.get_session("plan", owner="alice").total_message_count == 1

        def is_closed() -> bool:
            try:
                reader.get_session("plan", owner="alice")
            except NotFoundError:
                return True
            return False

        wait_for(is_closed)
        assert_closed(reader, "plan", "alice")
        assert list(client.list_collaborators("plan").collaborators) == []

    def test_a_deleted_and_recreated_session_is_not_shared_any_more(self, client: Any, reader: Any) -> None:
        client.batch_add_messages("plan", [{"role": "user", "content": "old"}] * 10)
        client.share_session("plan", "bob")
        client.delete_session("plan")
        client.add_message("plan", "user", "new")
        assert_closed(reader, "plan", "alice")
        assert list(reader.ls("viking://user", simple=True)) == ["viking://user/bob"]

    def test_a_name_that_is_given_again_opens_nothing_of_before(self, client: Any, connect_as: Connect) -> None:
        client.create_session("plan")  # also creates the account
        for user in ("alice", "bob"):
            client.admin.create_user("acme", user)
        before = connect_as("acme", "bob", "user")
        before.add_message("own", "user", "bob's secret")
        before.share_session("own", "alice")
        client.share_session("plan", "bob")
        task = before.commit_session("own").task_id
        removed = client.admin.delete_user("acme", "bob")
        client.admin.create_user("acme", "bob")
        again = connect_as("acme", "bob", "user")
        assert (list(again.list_sessions()), again.list_tasks()) == ([], [])
        assert list(again.ls("viking://user", recursive=True, simple=True)) == [
            "viking://user/bob",
            "viking://user/bob/resources",
            "viking://user/bob/sessions",
            "viking://user/bob/skills",
        ]
        assert_closed(again, "plan", "alice")
        for owner in ("bob", removed.internal_id):
            with pytest.raises(NotFoundError):
                again.get_messages("own", owner=owner)
        with pytest.raises(NotFoundError):
            again.get_task(task)
        assert again.add_message("own", "user", "another session").seq == 1
        shared = client.get_messages("own", owner=removed.internal_id)
        assert [message.text for message in shared.messages] == ["bob's secret"]
        client.admin.delete_user("acme", "bob")
        client.admin.create_user("acme", "bob", internal_id=removed.internal_id)
        restored = connect_as("acme", "bob", "user")
        assert [message.text for message in restored.get_messages("own").messages] == ["bob's secret"]
        assert restored.get_task(task).task_id == task
        assert restored.get_session("plan", owner="alice").owner == "alice"
