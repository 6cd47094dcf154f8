"""The contract of shared sessions: collaborators, their rights, share links and owners."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, PermissionDeniedError
from holdfast.model.parts import ToolPart

Connect = Callable[..., Any]


class SharingContract:
    @pytest.fixture
    def bob(self, connect_as: Connect) -> Any:
        return connect_as("acme", "bob", "user")

    def test_a_shared_session_is_read_under_its_owners_address(self, client: Any, bob: Any) -> None:
        client.add_message("plan", "user", "Let us meet on Monday.")
        with pytest.raises(NotFoundError, match="Session plan not found"):
            bob.get_messages("plan", owner="alice")
        shared = client.session("plan").share("bob")
        assert (shared.user_id, shared.rights, shared.granted_by) == ("bob", ["read"], "alice")
        session = bob.session("plan", owner="alice")
        assert [message.text for message in session.messages] == ["Let us meet on Monday."]
        assert session.stats.owner == "alice"
        assert session.context().messages[0].text == "Let us meet on Monday."
        assert session.uri == "viking://user/alice/sessions/plan"
        with pytest.raises(NotFoundError):
            bob.get_messages("plan")

    def test_a_list_shows_shared_sessions_with_owner_and_rights(self, client: Any, bob: Any) -> None:
        client.create_session("private")
        bob.create_session("mine")
        client.create_session("plan")
        client.share_session("plan", "bob", ["read", "write"])
        # Two processes may create sessions in one millisecond. Then their order is not that of their creation.
        rows = sorted((row.session_id, row.owner, row.rights) for row in bob.list_sessions())
        assert rows == [("mine", "bob", ["read", "write", "invoke"]), ("plan", "alice", ["read", "write"])]
        assert [row.session_id for row in bob.list_sessions(shared=True)] == ["plan"]
        assert [row.session_id for row in bob.list_sessions(shared=False)] == ["mine"]
        assert [row.session_id for row in bob.list_sessions(q="PLA")] == ["plan"]
        assert [row.session_id for row in client.list_sessions()] == ["plan", "private"]

    def test_pages_of_a_list_contain_every_own_and_shared_session_once(self, client: Any, bob: Any) -> None:
        for number in range(6):
            (bob if number % 2 else client).create_session(f"s{number}")
            if not number % 2:
                client.share_session(f"s{number}", "bob")
        found, cursor = [], None
        for _ in range(6):
            page = bob.list_sessions(limit=1, cursor=cursor)
            found += [row.session_id for row in page]
            cursor = page.next_cursor
        assert (sorted(found), cursor) == ([f"s{number}" for number in range(6)], None)

    def test_each_right_allows_its_own_operations(self, client: Any, bob: Any) -> None:
        client.create_session("plan")
        client.share_session("plan", "bob", ["read"])
        with pytest.raises(PermissionDeniedError, match="lacks the right to write"):
            bob.add_message("plan", "user", "hello", owner="alice")
        client.share_session("plan", "bob", ["write"])
        assert bob.add_message("plan", "user", "hello", owner="alice").seq == 1
        with pytest.raises(PermissionDeniedError, match="lacks the right to read"):
            bob.get_messages("plan", owner="alice")
        call = ToolPart(tool_id="c1", tool_name="search", tool_input={"q": "x"}, tool_output="found")
        with pytest.raises(PermissionDeniedError, match="lacks the right to invoke"):
            bob.add_message("plan", "assistant", parts=[call], owner="alice")
        with pytest.raises(PermissionDeniedError, match="lacks the right to invoke"):
            bob.session_used("plan", skill={"uri": "viking://skill"}, owner="alice")
        client.share_session("plan", "bob", ["write", "invoke"])
        assert bob.add_message("plan", "assistant", parts=[call], owner="alice").seq == 2
        assert client.get_session("plan").total_message_count == 2

    def test_only_the_owner_shares_configures_archives_and_deletes(self, client: Any, bob: Any) -> None:
        client.create_session("plan")
        client.share_session("plan", "bob", ["read", "write", "invoke"])
        attempts: list[Callable[[], Any]] = [
            lambda: bob.share_session("plan", "carol", owner="alice"),
            lambda: bob.create_share_link("plan", owner="alice"),
            lambda: bob.list_share_links("plan", owner="alice"),
            lambda: bob.transfer_session("plan", "bob", owner="alice"),
            lambda: bob.update_session_config("plan", auto_commit_policy=None, owner="alice"),
            lambda: bob.update_session("plan", state="archived", owner="alice"),
            lambda: bob.delete_session("plan", owner="alice"),
        ]
        for attempt in attempts:
            with pytest.raises(PermissionDeniedError, match="only its owner"):
                attempt()
        assert bob.update_session("plan", title="ours", owner="alice").title == "ours"

    def test_messages_of_collaborators_and_agents_name_their_author(
        self, client: Any, bob: Any, connect_as: Connect
    ) -> None:
        client.add_message("plan", "user", "mine")
        client.share_session("plan", "bob", ["read", "write"])
        bob.add_message("plan", "user", "his", owner="alice", metadata={"k": 1}, id="m2")
        bob.add_message("plan", "user", "his", owner="alice", metadata={"k": 1}, id="m2")
        connect_as("acme", "alice", "root", agent="coder").add_message("plan", "assistant", "done")
        messages = client.get_messages("plan").messages
        assert [(message.author, message.agent_id) for message in messages] == [
            (None, None),
            ("bob", None),
            (None, "coder"),
        ]
        assert messages[1].metadata == {"k": 1}
        assert connect_as("acme", "alice", "root", agent="coder").whoami().agent_id == "coder"

    def test_a_grant_can_be_limited_to_an_agent(self, client: Any, bob: Any, connect_as: Connect) -> None:
        client.create_session("plan")
        assert client.session("plan").share("bob", agent_id="critic").agent_id == "critic"
        with pytest.raises(NotFoundError):
            bob.get_session("plan", owner="alice")
        assert list(bob.list_sessions()) == []
        critic = connect_as("acme", "bob", "user", agent="critic")
        assert critic.get_session("plan", owner="alice").rights == ["read"]
        with pytest.raises(NotFoundError):
            connect_as("acme", "carol", "user", agent="critic").get_session("plan", owner="alice")

    def test_access_ends_when_it_is_removed_or_given_up(self, client: Any, bob: Any) -> None:
        session = client.session("plan")
        session.add_message("user", "hello")
        session.share("bob", ["read"])
        assert [row.user_id for row in session.collaborators] == ["bob"]
        session.unshare("bob")
        with pytest.raises(NotFoundError):
            bob.get_session("plan", owner="alice")
        with pytest.raises(NotFoundError, match="bob"):
            session.unshare("bob")
        session.share("bob", ["write"])
        bob.session("plan", owner="alice").leave()
        assert (session.collaborators, list(bob.list_sessions())) == ([], [])

    def test_collaborators_are_listed_in_pages(self, client: Any) -> None:
        client.create_session("plan")
        for number in range(5):
            client.share_session("plan", f"user{number}")
        page = client.list_collaborators("plan", limit=3)
        rest = client.list_collaborators("plan", limit=3, cursor=page.next_cursor)
        found = [row.user_id for row in (*page.collaborators, *rest.collaborators)]
        assert (found, rest.next_cursor) == ([f"user{number}" for number in range(5)], None)

    def test_a_transferred_session_has_another_owner(self, client: Any, bob: Any) -> None:
        client.add_message("plan", "user", "hello")
        client.share_session("plan", "bob")
        info = client.transfer_session("plan", "bob", keep_rights=["read"])
        assert (info.owner, info.rights, info.uri) == ("bob", ["read"], "viking://user/bob/sessions/plan")
        assert [message.text for message in bob.get_messages("plan").messages] == ["hello"]
        assert bob.session("plan").collaborators[0].user_id == "alice"
        with pytest.raises(NotFoundError):
            client.get_session("plan")
        with pytest.raises(PermissionDeniedError, match="lacks the right to write"):
            client.add_message("plan", "user", "more", owner="bob")
        client.create_session("plan")
        with pytest.raises(AlreadyExistsError, match="bob already has a session plan"):
            client.transfer_session("plan", "bob")

    def test_bad_shares_are_refused_with_the_field(self, client: Any) -> None:
        client.create_session("plan")
        with pytest.raises(InvalidArgumentError, match="alice owns the session"):
            client.share_session("plan", "alice")
        with pytest.raises(InvalidArgumentError, match="rights"):
            client.share_session("plan", "bob", [])
        with pytest.raises(InvalidArgumentError, match="rights"):
            client.share_session("plan", "bob", ["own"])
        with pytest.raises(InvalidArgumentError, match="user_id"):
            client.share_session("plan", "no such/name")
        with pytest.raises(InvalidArgumentError, match="expires_in_seconds"):
            client.share_session("plan", "bob", expires_in=0)
        with pytest.raises(InvalidArgumentError, match="owner"):
            client.get_session("plan", owner="~link")

    def test_links_are_listed_and_revoked(self, client: Any) -> None:
        session = client.session("plan")
        session.add_message("user", "hello")
        link = session.share_link(["read"], expires_in=3_600)
        assert (link.session_id, link.owner, link.rights) == ("plan", "alice", ["read"])
        (listed,) = session.links
        assert (listed.id, listed.use_count, listed.created_by, listed.expires_at) == (
            link.id,
            0,
            "alice",
            link.expires_at,
        )
        assert link.token not in str(listed.to_dict())
        assert session.collaborators == []
        session.revoke_link(link.id)
        assert session.links == []
        with pytest.raises(NotFoundError, match=r"[Ss]hare link"):
            session.revoke_link(link.id)

    def test_the_events_of_a_session_show_who_shared_it(self, client: Any, bob: Any) -> None:
        session = client.session("plan")
        session.add_message("user", "hello")
        session.share("bob", ["read"])
        session.unshare("bob")
        session.revoke_link(session.share_link().id)
        changes = [event.change for event in client.read_events("plan").events if event.change is not None]
        assert [(change.kind, change.user_id) for change in changes[1:]] == [
            (kind, "alice") for kind in ("shared", "unshared", "link_created", "link_revoked")
        ]
        assert changes[1].data == {"user_id": "bob", "rights": ["read"]}
        with pytest.raises(NotFoundError):
            bob.read_events("plan", owner="alice")

    def test_the_tree_shows_shared_sessions_under_their_owner(self, client: Any, bob: Any) -> None:
        client.add_message("plan", "user", "hello")
        client.create_session("private")
        bob.create_session("mine")
        with pytest.raises(NotFoundError):
            bob.ls("viking://user/alice")
        assert bob.ls("viking://user", simple=True) == ["viking://user/bob"]
        client.share_session("plan", "bob")
        folder = "viking://user/alice/sessions"
        assert bob.ls("viking://user", simple=True) == ["viking://user/bob", "viking://user/alice"]
        assert bob.ls(folder, simple=True) == [f"{folder}/plan"]
        assert '"hello"' in bob.read(f"{folder}/plan/messages.jsonl")
        with pytest.raises(NotFoundError):
            bob.stat(f"{folder}/private")
        client.share_session("plan", "bob", ["write"])
        with pytest.raises(NotFoundError):
            bob.read(f"{folder}/plan/messages.jsonl")

    def test_a_collaborator_sees_the_tasks_of_a_shared_session(self, client: Any, bob: Any) -> None:
        client.add_message("plan", "user", "hello")
        client.add_message("private", "user", "hello")
        hidden = client.commit_session("private").task_id
        client.share_session("plan", "bob", ["read", "write"])
        task_id = bob.commit_session("plan", owner="alice").task_id
        assert bob.wait_for_task(task_id, 60).status == "completed"
        assert [task.task_id for task in bob.list_tasks()] == [task_id]
        client.unshare_session("plan", "bob")
        for task in (task_id, hidden):
            with pytest.raises(NotFoundError):
                bob.get_task(task)
        assert bob.list_tasks() == []

    def test_a_fork_of_a_shared_session_belongs_to_its_reader(self, client: Any, bob: Any) -> None:
        client.add_message("plan", "user", "hello")
        client.share_session("plan", "bob")
        fork = bob.session("plan", owner="alice").fork(new_session_id="copy")
        client.unshare_session("plan", "bob")
        assert [message.text for message in fork.messages] == ["hello"]
        assert bob.get_session("copy").owner == "bob"
