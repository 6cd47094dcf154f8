"""Cases of shared access that combine several operations: guests, and names that were given again."""

from pathlib import Path

import pytest

import holdfast
from holdfast.errors import NotFoundError, PermissionDeniedError
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
