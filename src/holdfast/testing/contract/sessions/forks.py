"""The contract of forks."""

from typing import Any

import pytest

from holdfast.errors import AlreadyExistsError, NotFoundError
from holdfast.model.parts import ToolPart


def texts(client: Any, session_id: str) -> list[str]:
    return [message.text for message in client.get_messages(session_id).messages]


class ForkContract:
    @pytest.fixture
    def parent(self, client: Any) -> Any:
        client.create_session("parent", title="Trunk", metadata={"k": 1})
        client.batch_add_messages("parent", [{"role": "user", "content": f"m{n}"} for n in range(1, 6)])
        return client.session("parent")

    def test_a_fork_shares_earlier_messages_and_then_diverges(self, client: Any, parent: Any) -> None:
        forked = client.fork_session("parent", 3, new_session_id="child")
        assert (forked.session_id, forked.title, forked.metadata) == ("child", "Trunk", {"k": 1})
        assert forked["forked_from"] == {"session_id": "parent", "seq": 3}
        client.add_message("child", "user", "c4")
        client.add_message("parent", "user", "m6")
        assert texts(client, "child") == ["m1", "m2", "m3", "c4"]
        assert texts(client, "parent") == ["m1", "m2", "m3", "m4", "m5", "m6"]
        assert [m.seq for m in client.get_messages("child").messages] == [1, 2, 3, 4]

    def test_a_fork_counts_its_own_messages_and_tokens(self, client: Any, parent: Any) -> None:
        client.add_message("parent", "user", "a much longer message than the others")
        forked = client.fork_session("parent", 3)
        shared = sum(message.tokens for message in client.get_messages(forked.session_id).messages)
        assert (forked.message_count, forked.total_message_count, forked.pending_tokens) == (3, 3, shared)
        assert client.add_message(forked.session_id, "user", "abcd").pending_tokens == shared + 1

    def test_a_session_can_be_forked_at_a_message_id(self, client: Any, parent: Any) -> None:
        second = parent.messages[1].id
        assert [m.text for m in parent.fork(second).messages] == ["m1", "m2"]

    def test_a_session_is_forked_at_its_last_message_by_default(self, client: Any, parent: Any) -> None:
        assert parent.fork().messages == parent.messages

    def test_a_fork_at_zero_shares_nothing(self, client: Any, parent: Any) -> None:
        child = parent.fork(0)
        assert child.messages == []
        assert child.add_message("user", [{"type": "text", "text": "first"}]).seq == 1

    def test_forks_of_forks_have_all_earlier_messages(self, client: Any, parent: Any) -> None:
        session_id = "parent"
        for depth in range(1, 6):
            forked = client.fork_session(session_id, new_session_id=f"child{depth}")
            client.add_message(forked.session_id, "user", f"c{depth}")
            session_id = forked.session_id
        assert texts(client, "child5") == ["m1", "m2", "m3", "m4", "m5", "c1", "c2", "c3", "c4", "c5"]
        page = client.get_messages("child5", 4, 8, limit=4)
        assert ([m.text for m in page.messages], page.next_seq) == (["m4", "m5", "c1", "c2"], 8)
        inner = client.fork_session("child5", 6)
        assert texts(client, inner.session_id) == ["m1", "m2", "m3", "m4", "m5", "c1"]

    def test_shared_messages_of_a_fork_are_searchable_up_to_the_fork_point(self, client: Any, parent: Any) -> None:
        client.fork_session("parent", 3, new_session_id="child")
        assert [m.seq for m in client.get_messages("child", q="m3").messages] == [3]
        assert client.get_messages("child", q="m4").messages == []

    def test_a_fork_outlives_its_parent(self, client: Any, parent: Any) -> None:
        client.fork_session("parent", 3, new_session_id="child")
        client.delete_session("parent")
        client.add_message("parent", "user", "another session of the same name")
        assert texts(client, "child") == ["m1", "m2", "m3"]
        assert client.get_messages("child", q="m2").messages[0].seq == 2

    def test_deleting_a_fork_does_not_change_its_parent(self, client: Any, parent: Any) -> None:
        client.fork_session("parent", 3, new_session_id="child")
        client.add_message("child", "user", "c4")
        client.delete_session("child")
        assert texts(client, "parent") == ["m1", "m2", "m3", "m4", "m5"]

    def test_a_retry_in_a_fork_finds_the_message_id_of_a_shared_message(self, client: Any) -> None:
        first = client.add_message("parent", "user", "hi", id="m1")
        client.fork_session("parent", new_session_id="child")
        again = client.add_message("child", "user", "hi", id="m1")
        assert (again.seq, again.message_ids) == (first.seq, first.message_ids)
        assert texts(client, "child") == ["hi"]

    def test_a_fork_shares_large_tool_outputs(self, client: Any) -> None:
        output = "line of output\n" * 5_000
        client.add_message("parent", "tool", parts=[ToolPart(tool_name="t", output=output)])
        client.fork_session("parent", new_session_id="child")
        (result,) = client.list_tool_results("child").tool_results
        client.delete_session("parent")
        read = client.read_tool_result("child", result.tool_result_id, limit=100_000)
        assert read.content == output

    @pytest.mark.parametrize("at", [6, 10**9])
    def test_a_fork_after_the_last_message_is_rejected(self, client: Any, parent: Any, at: int) -> None:
        with pytest.raises(NotFoundError, match=f"Message {at} not found"):
            client.fork_session("parent", at)

    def test_a_fork_at_an_unknown_message_or_session_is_rejected(self, client: Any, parent: Any) -> None:
        with pytest.raises(NotFoundError, match="Message nope not found"):
            client.fork_session("parent", "nope")
        with pytest.raises(NotFoundError, match="Session nope not found"):
            client.fork_session("nope")

    def test_a_fork_with_an_existing_session_id_is_rejected(self, client: Any, parent: Any) -> None:
        with pytest.raises(AlreadyExistsError):
            client.fork_session("parent", new_session_id="parent")
        assert texts(client, "parent") == ["m1", "m2", "m3", "m4", "m5"]
