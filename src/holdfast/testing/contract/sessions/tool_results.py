"""The contract of large tool outputs."""

import re
from typing import Any

import pytest

from holdfast.errors import NotFoundError
from holdfast.model.parts import ToolPart

MARKER = re.compile(r"\n\[\.\.\. ([0-9,]+) more characters: (tr_[0-9a-f]+) \.\.\.\]")
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
        complete, offset = "", 0
        while True:
            piece = client.read_tool_result("chat_001", part.tool_result_id, offset=offset, limit=9_999)
            complete, offset = complete + piece.content, offset + len(piece.content)
            if not piece.has_more:
                break
        assert complete == LARGE

    def test_the_list_has_every_separately_stored_output(self, client: Any) -> None:
        parts = [ToolPart(tool_id=f"c{n}", tool_name=f"t{n % 2}", output=LARGE + str(n)) for n in range(3)]
        client.add_message("chat_001", "tool", parts=parts)
        results = client.list_tool_results("chat_001")["tool_results"]
        assert [result["tool_id"] for result in results] == ["c2", "c1", "c0"]
        assert [r.tool_id for r in client.list_tool_results("chat_001", tool_name="t0").tool_results] == ["c2", "c0"]
        assert [r.tool_id for r in client.list_tool_results("chat_001", limit=1).tool_results] == ["c2"]
        assert results[2]["chars"] == len(LARGE) + 1

    def test_a_large_output_that_is_not_text_is_stored_as_json(self, client: Any) -> None:
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

    def test_equal_outputs_share_one_result_that_outlives_one_of_its_messages(self, client: Any) -> None:
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

    def test_a_tool_part_reports_whether_its_output_is_a_preview(self, client: Any) -> None:
        client.add_message("s", "tool", parts=[ToolPart(output="small"), ToolPart(output=LARGE)])
        assert [part.is_preview for part in client.get_messages("s").messages[0].parts] == [False, True]
        assert [part.is_preview for part in client.get_session_context("s").messages[0].parts] == [False, False]

    def test_a_large_output_is_complete_in_a_context_if_it_fits_the_budget(self, client: Any) -> None:
        client.add_message("s", "user", "read it")
        client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output=LARGE, success=True)])
        context = client.get_session_context("s", 100_000)
        assert context.messages[1].parts[0].tool_output == LARGE
        (live, output) = context.receipt.included
        assert (live.what, output.what, output.first_seq, output.last_seq) == ("live", "tool_output", 2, 2)
        assert context.estimated_tokens == live.tokens + output.tokens == context.stats.active_tokens
        assert context.messages[1].tokens > output.tokens > len(LARGE) // 10
        assert context.receipt.left_out == []

    def test_a_large_output_over_the_budget_is_a_marked_preview_with_a_receipt_line(self, client: Any) -> None:
        client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output=LARGE, success=True)])
        context = client.get_session_context("s", 1_000)
        part = context.messages[0].parts[0]
        marker = MARKER.search(part.tool_output)
        assert marker
        preview = part.tool_output[: marker.start() + 1]
        assert LARGE.startswith(preview)
        assert len(preview) > 800
        assert int(marker[1].replace(",", "")) == len(LARGE) - len(preview)
        (line,) = context.receipt.left_out
        assert (line.what, line.first_seq, line.last_seq, line.tool_result_id) == ("tool_output", 1, 1, marker[2])
        assert marker[2] in line.why
        assert "read_tool_result" in line.why
        rest = client.read_tool_result("s", marker[2], offset=len(preview), limit=1_000_000).content
        assert preview + rest == LARGE

    def test_the_budget_is_used_for_the_newest_outputs_first(self, client: Any) -> None:
        for name in ("old", "mid", "new"):
            client.add_message("s", "tool", parts=[ToolPart(tool_name=name, output=f"{name} {LARGE}")])
        needed = [line.tokens + line.reserved for line in client.get_session_context("s", 10**6).receipt.included[1:]]
        active = client.get_session_context("s", 0).estimated_tokens
        context = client.get_session_context("s", active * 2 + sum(needed[:2]))
        assert [part.is_preview for message in context.messages for part in message.parts] == [True, False, False]
        assert [line.first_seq for line in context.receipt.included] == [1, 3, 2]
        assert [line.first_seq for line in context.receipt.left_out] == [1]

    def test_a_context_has_a_large_output_that_is_not_text_as_json(self, client: Any) -> None:
        client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output={"rows": list(range(5_000))})])
        (message,) = client.get_session_context("s").messages
        assert message.parts[0].tool_output == '{"rows":[' + ",".join(map(str, range(5_000))) + "]}"

    def test_expand_returns_complete_outputs_if_they_fit_the_budget(self, client: Any) -> None:
        for _ in range(2):
            client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        whole = client.expand("s", "#1-2", 200_000)
        assert [message.parts[0].tool_output for message in whole.messages] == [LARGE, LARGE]
        assert whole.estimated_tokens == sum(message.tokens for message in whole.messages) <= 200_000
        assert whole.left_out == []
        small = client.expand("s", "#1-2", 2_000)
        assert all(MARKER.search(message.parts[0].tool_output) for message in small.messages)
        assert small.estimated_tokens == sum(message.tokens for message in small.messages) <= 2_000
        assert [line.first_seq for line in small.left_out] == [2, 1]

    def test_a_fork_has_the_outputs_of_its_parent(self, client: Any) -> None:
        client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output=LARGE)])
        client.fork_session("s", 1, new_session_id="child")
        client.delete_session("s")
        assert client.get_session_context("child").messages[0].parts[0].tool_output == LARGE
