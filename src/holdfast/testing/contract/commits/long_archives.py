"""The contract of archives that are larger than a response."""

from collections.abc import Callable
from typing import Any

LARGE = "large output " * 1_000
TEXTS = [f"{number} {'x' * 20_000}" for number in range(30)]


class LongArchiveContract:
    def test_an_archive_and_what_is_expanded_from_it_are_complete(
        self, client: Any, run_tasks: Callable[..., None]
    ) -> None:
        messages: list[Any] = [{"role": "user", "content": text} for text in TEXTS]
        calls = [{"type": "tool", "tool_id": "c1", "tool_output": LARGE, "tool_status": "completed"}]
        client.batch_add_messages("s", [*messages, {"role": "assistant", "parts": calls}])
        client.commit_session("s")
        run_tasks()
        archive = client.get_session_archive("s", "archive_001")
        assert [message.text for message in archive.messages[:-1]] == TEXTS
        expanded = client.expand("s", "archive_001", token_budget=1_000_000)
        assert [message.text for message in expanded.messages[:-1]] == TEXTS
        assert expanded.messages[-1].parts[0].tool_output == LARGE
        assert (expanded.first_seq, expanded.last_seq, expanded.next_ref) == (1, 31, None)
        assert expanded.estimated_tokens == sum(message.tokens for message in expanded.messages)
        part = client.expand("s", "[#1-20, #25-30]", token_budget=archive.messages[0].tokens * 22)
        assert [message.seq for message in part.messages] == [*range(1, 21), 25, 26]
        assert part.next_ref == "27-30"
