"""What a client must do with large tool outputs."""

from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.parts import ToolPart

LARGE = "".join(f"line {n}: über the lazy dog 🦊\n" for n in range(2_000))


class ToolResultContract:
    def test_a_small_output_stays_in_its_message(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_name="t", output="small")])
        assert client.get_messages("chat_001").messages[0].parts[0].tool_output == "small"
        assert client.list_tool_results("chat_001").tool_results == []

    def test_a_large_output_is_previewed_and_can_be_read_by_range(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_id="c1", tool_name="t", output=LARGE)])
        part = client.get_messages("chat_001").messages[0].parts[0]
        assert LARGE.startswith(part.tool_output)
        assert len(part.tool_output) < len(LARGE) == part.tool_output_chars
        whole, offset = "", 0
        while True:
            piece = client.read_tool_result("chat_001", part.tool_result_id, offset=offset, limit=9_999)
            whole, offset = whole + piece.content, offset + len(piece.content)
            if not piece.has_more:
                break
        assert whole == LARGE

    def test_the_list_names_what_was_stored_apart(self, client: Any) -> None:
        parts = [ToolPart(tool_id=f"c{n}", tool_name=f"t{n % 2}", output=LARGE + str(n)) for n in range(3)]
        client.add_message("chat_001", "tool", parts=parts)
        results = client.list_tool_results("chat_001")["tool_results"]
        assert [result["tool_id"] for result in results] == ["c2", "c1", "c0"]
        assert [r.tool_id for r in client.list_tool_results("chat_001", tool_name="t0").tool_results] == ["c2", "c0"]
        assert [r.tool_id for r in client.list_tool_results("chat_001", limit=1).tool_results] == ["c2"]
        assert results[2]["chars"] == len(LARGE) + 1

    def test_a_large_output_that_is_not_text_is_kept_as_json(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_name="t", output={"rows": list(range(5_000))})])
        part = client.get_messages("chat_001").messages[0].parts[0]
        read = client.read_tool_result("chat_001", part.tool_result_id, limit=100_000)
        assert read.content == '{"rows":[' + ",".join(map(str, range(5_000))) + "]}"

    def test_a_large_output_can_be_searched(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        (result,) = client.list_tool_results("chat_001").tool_results
        found = client.search_tool_result("chat_001", result.tool_result_id, "LINE 199", limit=5, context_chars=4)
        assert [match.offset for match in found.matches] == [
            LARGE.index(f"line {n}") for n in (199, 1990, 1991, 1992, 1993)
        ]
        assert found["matches"][0]["context"] == LARGE[LARGE.index("line 199:") - 4 :][:16]

    def test_the_same_output_is_the_same_result_and_survives_one_of_its_messages(self, client: Any) -> None:
        for session_id in ("chat_001", "chat_002"):
            client.add_message(session_id, "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        ids = {client.list_tool_results(s).tool_results[0].tool_result_id for s in ("chat_001", "chat_002")}
        assert len(ids) == 1
        client.delete_session("chat_001")
        assert client.read_tool_result("chat_002", ids.pop(), limit=100_000).content == LARGE

    def test_a_result_of_another_session_is_not_found(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        client.create_session("chat_002")
        result_id = client.list_tool_results("chat_001").tool_results[0].tool_result_id
        with pytest.raises(NotFoundError):
            client.read_tool_result("chat_002", result_id)
        with pytest.raises(NotFoundError):
            client.search_tool_result("chat_002", result_id, "line")

    def test_the_words_at_the_beginning_of_a_large_output_are_searchable(self, client: Any) -> None:
        client.add_message("chat_001", "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        assert len(client.get_messages("chat_001", q="lazy dog").messages) == 1
