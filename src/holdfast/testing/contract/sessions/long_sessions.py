"""The contract of sessions that are larger than a response: what a client returns does not depend on their size."""

from typing import Any

import pytest

LARGE = "large output " * 20_000
TEXTS = [f"{number} needle {'x' * 20_000}" for number in range(60)]


def fill(client: Any) -> None:
    """Add messages of more than a megabyte, and a change after every fifth message."""
    for start in range(0, len(TEXTS), 5):
        client.batch_add_messages("s", [{"role": "user", "content": text} for text in TEXTS[start : start + 5]])
        client.update_session("s", title=f"t{start}")


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


class LongSessionContract:
    def test_a_page_of_large_messages_has_as_many_as_were_asked_for(self, client: Any) -> None:
        fill(client)
        page = client.get_messages("s")
        assert (texts(page.messages), page.next_seq) == (TEXTS, None)
        page = client.get_messages("s", first=2, limit=50)
        assert (texts(page.messages), page.next_seq) == (TEXTS[1:51], 52)
        assert texts(client.get_messages("s", last=45).messages) == TEXTS[:45]
        assert texts(client.session("s").messages) == TEXTS
        found = client.get_messages("s", q="needle")
        assert texts(found.messages) == TEXTS

    def test_the_events_of_large_messages_are_complete_and_in_order(self, client: Any) -> None:
        fill(client)
        page = client.read_events("s", limit=1_000)
        expected: list[str] = []
        for number, text in enumerate(TEXTS):
            expected.append(text)
            expected += ["updated"] if number % 5 == 4 else []
        labels = [event.message.text if event.message else event.change.kind for event in page.events]
        assert [label for label in labels if label != "created"] == expected
        assert (page.has_more, page.events[-1].id) == (False, page.cursor)
        some = client.read_events("s", limit=50)
        assert (some.events, some.has_more) == (page.events[:50], True)
        assert client.read_events("s", after=some.cursor, limit=1_000).events == page.events[50:]

    def test_the_context_of_large_messages_is_complete(self, client: Any) -> None:
        client.add_message("s", "system", "Be brief.")
        fill(client)
        call = {
            "type": "tool",
            "tool_id": "c1",
            "tool_name": "search",
            "tool_output": LARGE,
            "tool_status": "completed",
        }
        client.add_message("s", "assistant", parts=[call])
        context = client.get_session_context("s", token_budget=10_000_000)
        assert context.system_message.text == "Be brief."
        assert texts(context.messages[:-1]) == TEXTS
        assert context.messages[-1].parts[0].tool_output == LARGE
        assert [line.what for line in context.receipt.included] == ["system", "live", "tool_output"]
        small = client.get_session_context("s", token_budget=1)
        assert texts(small.messages[:-1]) == TEXTS
        assert "more characters" in small.messages[-1].parts[0].tool_output
        assert len(small.receipt.left_out) == 1

    def test_large_uses_are_listed_completely(self, client: Any) -> None:
        for text in TEXTS[:30]:
            client.session_used("s", skill={"uri": "viking://skills/a", "input": text})
        assert [use.input for use in client.list_usage("s")] == TEXTS[:30]
        assert [use.input for use in client.list_usage("s", limit=25)] == TEXTS[:25]

    @pytest.mark.parametrize("char_offset", [0, 7])
    def test_a_large_file_is_read_completely(self, client: Any, char_offset: int) -> None:
        fill(client)
        uri = "viking://session/s/messages.jsonl"
        whole = client.read(uri)
        assert whole.count("\n") == len(TEXTS)
        assert all(text in whole for text in TEXTS)
        assert client.read(uri, char_offset=char_offset) == whole[char_offset:]
        assert (
            client.read(uri, 1, 50, char_offset=char_offset)
            == "".join(whole.splitlines(keepends=True)[1:51])[char_offset:]
        )
        assert client.read(uri, char_offset=char_offset, char_limit=700_001) == whole[char_offset:][:700_001]

    def test_a_message_larger_than_a_response_is_returned(self, client: Any) -> None:
        texts_in = ["a" * 1_000, "b" * 2_000_000, "c" * 1_000, "d" * 500_000]
        for text in texts_in:
            client.add_message("s", "user", text)
        assert texts(client.get_messages("s").messages) == texts_in
        assert texts(client.get_session_context("s").messages) == texts_in
        assert [event.message.text for event in client.read_events("s").events if event.message] == texts_in
        assert client.read("viking://session/s/messages.jsonl").count("\n") == len(texts_in)
