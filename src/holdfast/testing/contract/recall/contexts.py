"""The contract of searches for a session: completed queries, and hits as a text for a prompt."""

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError
from holdfast.search.results.recalled import OPENING, is_recalled

PHARMACY = [
    ("user", "What time does the pharmacy in Aegina close on Thursday?"),
    ("assistant", "The pharmacy in Aegina closes at 20:30 on Thursday."),
    ("assistant", "Good. The bakery has bread until noon."),
    ("user", "On Friday the pharmacy in Aegina will close at 14:00."),
]


def add(client: Any, session_id: str, turns: list[tuple[str, str]], **fields: Any) -> None:
    client.batch_add_messages(session_id, [{"role": role, "content": text, **fields} for role, text in turns])


class SearchContextContract:
    def test_a_session_completes_a_query_that_does_not_stand_alone(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        add(client, "now", [("user", "When does the pharmacy in Aegina close today?"), ("assistant", "At 20:30.")])
        plan = client.session("now").search("And on Friday?").query_plan
        assert plan.query == "And on Friday?"
        assert {"pharmacy", "Aegina"} <= set(plan.added)
        assert plan.searched == " ".join([plan.query, *plan.added])
        (best,) = client.search(
            "And on Friday?", session_id="now", target_uri="viking://session/island", limit=1
        ).messages
        assert best.seq == 4
        for handle in ({"session": client.session("now")}, {"session_info": client.session("now")}):
            assert client.search("And on Friday?", **handle).query_plan == plan

    def test_a_query_that_stands_alone_is_not_changed(self, client: Any) -> None:
        add(client, "now", PHARMACY)
        plan = client.session("now").search("Which shop sells bread?").query_plan
        assert (plan.searched, plan.added, plan.notes) == ("Which shop sells bread?", [], [])
        assert plan.kinds == ["memory", "resource", "skill", "message", "overview"]

    def test_a_session_that_does_not_exist_changes_nothing(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        result = client.search("And on Friday?", session_id="missing")
        assert result.query_plan.searched == "And on Friday?"
        assert result.query_plan.notes == ["the session missing has no messages that can complete the query"]

    def test_the_session_of_another_user_completes_nothing(self, client: Any, connect_as: Any) -> None:
        add(client, "island", PHARMACY)
        bob = connect_as("acme", "bob", "user")
        missing = bob.search("And on Friday?", session_id="missing", owner="alice")
        theirs = bob.search("And on Friday?", session_id="island", owner="alice")
        assert theirs.query_plan.searched == missing.query_plan.searched == "And on Friday?"
        client.share_session("island", "bob")
        shared = bob.session("island", owner="alice").search("And on Friday?")
        assert "Aegina" in shared.query_plan.added

    def test_the_receipt_says_that_an_entry_is_shortened(self, client: Any) -> None:
        add(client, "long", [("user", "The zebra code is 4711. " + "Other words follow here. " * 4_000)])
        add(client, "short", [("user", "A zebra has stripes.")])
        result = client.search("zebra code", mode="context", max_tokens=5_000)
        details = {entry.uri.rpartition("/")[2]: entry.detail for entry in result.entries}
        assert details == {"long#1": "shortened", "short#1": "full"}
        assert (result.stats.shortened, result.rendered.count('detail="shortened"')) == (1, 1)

    def test_the_query_itself_is_not_found_in_its_session(self, client: Any) -> None:
        add(client, "now", [*PHARMACY, ("user", "Which shop sells bread?")])
        hits = client.session("now").search("Which shop sells bread?").messages
        assert 5 not in [hit.seq for hit in hits]
        assert [hit.seq for hit in client.search("Which shop sells bread?", limit=1).messages] == [5]

    def test_hits_become_a_text_for_a_prompt_with_a_receipt(self, client: Any) -> None:
        for day, (role, text) in enumerate(PHARMACY, 1):
            client.add_message("island", role, text, created_at=datetime(2026, 3, day, 9, tzinfo=UTC))
        result = client.search("pharmacy Aegina bakery bread", mode="context", around=0)
        assert result.rendered.startswith(OPENING)
        assert [entry.created_at.day for entry in result.entries] == sorted(
            entry.created_at.day for entry in result.entries
        )
        assert {entry.uri for entry in result.entries} == {hit.uri for hit in result.messages}
        for entry in result.entries:
            assert f'uri="{entry.uri}" type="message" time="2026-03-0{entry.created_at.day} 09:00"' in result.rendered
            assert entry.text in result.rendered
        stats = result.stats
        assert (stats.returned, stats.dropped, stats.max_tokens) == (len(result.entries), 0, 2_000)
        assert 0 < stats.used_tokens <= 2_000
        assert stats.searched >= stats.candidates >= stats.returned

    def test_a_small_budget_leaves_hits_out_and_names_them(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        result = client.search("pharmacy Aegina bakery bread", mode="context", max_tokens=150, around=0)
        assert result.stats.used_tokens <= 150
        assert result.stats.dropped == len(result.stats.left_out) > 0
        assert {entry.uri for entry in result.entries} | set(result.stats.left_out) == {
            hit.uri for hit in result.messages
        }
        with pytest.raises(InvalidArgumentError, match="max_tokens"):
            client.search("pharmacy", mode="context", max_tokens=0)

    def test_without_the_mode_there_is_no_text(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        result = client.search("pharmacy")
        assert (result.entries, result.rendered, result.stats) == ([], None, None)
        assert not {"entries", "rendered", "stats"} & result.to_dict().keys()

    def test_a_text_for_a_session_does_not_repeat_its_live_messages(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        add(client, "now", [("user", "Is the pharmacy in Aegina far from the bakery?")])
        result = client.session("now").search("pharmacy in Aegina", mode="context")
        assert {entry.uri.split("#")[0].split("/")[-1] for entry in result.entries} == {"island"}
        assert result.stats.excluded >= 1

    def test_a_text_for_a_fork_does_not_repeat_what_it_inherited(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        client.fork_session("island", 2, new_session_id="fork")
        result = client.session("fork").search("pharmacy in Aegina", mode="context", around=0)
        assert {entry.uri.rpartition("/")[2] for entry in result.entries} <= {"island#3", "island#4"}
        assert result.stats.excluded >= 2

    def test_a_recalled_text_is_recognised_in_a_session(self, client: Any) -> None:
        add(client, "island", PHARMACY)
        rendered = client.search("pharmacy", mode="context").rendered
        client.add_message("now", "system", rendered)
        client.add_message("now", "system", "The pharmacy.", message_kind="recalled")
        client.add_message("now", "user", f"{rendered}\n\nWhen does it close?")
        stored = client.get_messages("now").messages
        assert [is_recalled(message) for message in stored] == [True, True, False]
        assert "Aegina" not in client.session("now").search("When does it close?").query_plan.added
