"""The contract of searches within a session: they find every message, whether it is indexed yet or not."""

from collections.abc import Callable
from typing import Any


def found(client: Any, session_id: str, q: str, owner: str | None = None) -> list[int]:
    return [message.seq for message in client.get_messages(session_id, q=q, owner=owner).messages]


class IndexingContract:
    def test_a_search_within_a_session_finds_the_same_before_and_after_indexing(self, client: Any) -> None:
        for number in range(1, 6):
            client.add_message("s", "user", f"Running fox {number} uses web_search 狐狸")
            assert found(client, "s", f"run {number}") == [number]
        queries = {"run": [1, 2, 3, 4, 5], "web_search 3": [3], "狐 fox": [1, 2, 3, 4, 5], "walk": [], "_": []}
        assert {q: found(client, "s", q) for q in queries} == queries
        client.wait_until_idle()
        assert {q: found(client, "s", q) for q in queries} == queries
        client.add_message("s", "user", "The last fox runs.")
        assert found(client, "s", "run") == [1, 2, 3, 4, 5, 6]

    def test_a_fork_finds_what_it_inherited_also_after_its_origin_is_deleted(self, client: Any) -> None:
        for text in ("fox one", "fox two", "fox three"):
            client.add_message("s", "user", text)
        client.wait_until_idle()
        client.fork_session("s", 2, new_session_id="fork")
        client.add_message("fork", "user", "fox four")
        assert found(client, "fork", "fox") == [1, 2, 3]
        client.delete_session("s")
        assert found(client, "fork", "fox") == [1, 2, 3]
        client.wait_until_idle()
        assert found(client, "fork", "fox") == [1, 2, 3]

    def test_a_transferred_session_is_searched_by_its_new_owner(
        self, client: Any, connect_as: Callable[..., Any]
    ) -> None:
        bob = connect_as("acme", "bob")
        bob.create_session("his")
        for text in ("fox one", "fox two"):
            client.add_message("s", "user", text)
        client.wait_until_idle()
        client.transfer_session("s", "bob")
        assert found(bob, "s", "fox") == [1, 2]
        bob.add_message("s", "user", "fox three")
        bob.wait_until_idle()
        assert found(bob, "s", "fox") == [1, 2, 3]


class UnindexedContract:
    def test_a_message_is_found_within_its_session_by_the_next_call_without_any_worker(self, client: Any) -> None:
        for number in range(1, 4):
            client.add_message("s", "user", f"word{number} again")
            assert found(client, "s", f"word{number}") == [number]
        assert found(client, "s", "again") == [1, 2, 3]
