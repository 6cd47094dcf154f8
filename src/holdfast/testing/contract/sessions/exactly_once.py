"""The contract of retries."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.errors import ConflictError
from holdfast.model.parts import ToolPart


def message_count(client: Any) -> int:
    return int(client.get_session("chat_001").total_message_count)


class ExactlyOnceContract:
    def test_a_retry_with_the_same_key_returns_the_first_result(self, client: Any) -> None:
        first = client.add_message("chat_001", "user", "hi", idempotency_key="k1")
        client.add_message("chat_001", "user", "more")
        assert client.add_message("chat_001", "user", "hi", idempotency_key="k1") == first
        assert message_count(client) == 2

    def test_a_retry_with_the_same_message_id_returns_the_first_result(self, client: Any) -> None:
        first = client.add_message("chat_001", "user", "hi", id="m1")
        client.add_message("chat_001", "user", "more")
        assert client.add_message("chat_001", "user", "hi", id="m1") == first
        assert (message_count(client), first.message_id) == (2, "m1")

    def test_a_retry_may_use_another_spelling_of_the_same_parts(self, client: Any) -> None:
        part = ToolPart(tool_name="t", tool_input={"a": 1}, tool_status="completed")
        first = client.add_message("chat_001", "assistant", parts=[part], idempotency_key="k")
        again = {"type": "tool", "name": "t", "input": {"a": 1}, "success": True}
        assert client.add_message("chat_001", "assistant", parts=[again], idempotency_key="k") == first

    def test_the_order_of_keys_does_not_change_the_body(self, client: Any) -> None:
        bodies = [ToolPart(tool_name="t", tool_input=order) for order in ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
        results = [client.add_message("s", "assistant", parts=[body], idempotency_key="k") for body in bodies]
        assert results[0] == results[1]

    @pytest.mark.parametrize("handle", [{"idempotency_key": "k1"}, {"id": "m1"}])
    @pytest.mark.parametrize(
        "other", [{"content": "bye"}, {"role": "assistant"}, {"peer_id": "bob"}, {"created_at": "2026-01-01T00:00:00Z"}]
    )
    def test_the_same_key_with_another_body_is_a_conflict(self, client: Any, handle: Any, other: Any) -> None:
        body = {"role": "user", "content": "hi"}
        client.add_message("chat_001", **body, **handle)
        with pytest.raises(ConflictError) as raised:
            client.add_message("chat_001", **{**body, **other}, **handle)
        assert raised.value.details["resource"] in {"k1", "m1"}
        assert message_count(client) == 1

    def test_a_batch_is_retried_as_a_whole(self, client: Any) -> None:
        batch = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        first = client.batch_add_messages("chat_001", batch, idempotency_key="k1")
        assert client.batch_add_messages("chat_001", batch, idempotency_key="k1") == first
        with pytest.raises(ConflictError):
            client.batch_add_messages("chat_001", batch[:1], idempotency_key="k1")
        assert message_count(client) == 2

    def test_a_batch_with_message_ids_is_retried_as_a_whole(self, client: Any) -> None:
        batch = [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "id": "m2"}]
        client.add_message("chat_001", "user", "before")
        first = client.batch_add_messages("chat_001", batch)
        assert client.batch_add_messages("chat_001", batch) == first
        with pytest.raises(ConflictError, match="m2"):
            client.batch_add_messages("chat_001", [batch[1], batch[0]])
        assert message_count(client) == 3

    def test_keys_and_message_ids_are_unique_per_session_only(self, client: Any) -> None:
        client.add_message("chat_001", "user", "hi", idempotency_key="k", id="m")
        added = client.add_message("chat_002", "user", "hi", idempotency_key="k", id="m")
        assert (added.session_id, added.seq) == ("chat_002", 1)

    def test_a_retry_of_a_conditional_append_succeeds_after_later_messages(self, client: Any) -> None:
        """The key is checked before the condition, which was met by the first attempt."""
        first = client.add_message("chat_001", "user", "hi", idempotency_key="k", expected_seq=0)
        client.add_message("chat_001", "user", "more")
        assert client.add_message("chat_001", "user", "hi", idempotency_key="k", expected_seq=0) == first

    def test_many_concurrent_retries_add_one_message(self, client: Any) -> None:
        with ThreadPoolExecutor(8) as threads:
            results = list(
                threads.map(
                    lambda _: client.add_message("chat_001", "user", "hi", idempotency_key="k"),
                    range(24),
                )
            )
        assert len({result.message_id for result in results}) == 1
        assert message_count(client) == 1

    def test_concurrent_writers_of_a_session_get_gapless_numbers(self, client: Any) -> None:
        with ThreadPoolExecutor(8) as threads:
            added = list(threads.map(lambda n: client.add_message("chat_001", "user", str(n)), range(80)))
        assert sorted(result.seq for result in added) == list(range(1, 81))
        by_seq = {m.seq: m.id for m in client.get_messages("chat_001").messages}
        assert all(by_seq[result.seq] == result.message_id for result in added)

    def test_concurrent_writers_that_create_a_session_get_gapless_numbers(self, client: Any) -> None:
        with ThreadPoolExecutor(8) as threads:
            for session_id in (f"s{n}" for n in range(10)):
                added = list(threads.map(lambda _: client.add_message(session_id, "user", "hi"), range(8)))  # noqa: B023
                assert sorted(result.seq for result in added) == list(range(1, 9))

    def test_only_one_of_many_concurrent_conditional_appends_succeeds(self, client: Any) -> None:
        client.create_session("chat_001")

        def attempt(number: int) -> bool:
            try:
                client.add_message("chat_001", "user", str(number), expected_seq=0)
            except ConflictError:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(attempt, range(16))) == 1
        assert message_count(client) == 1
