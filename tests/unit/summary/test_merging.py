"""Merging of summaries: combined, folded into earlier ones, and rendered together."""

from collections.abc import Sequence

import msgspec

from conversations.messages import as_messages, hash_vectors
from conversations.script import assistant, user
from holdfast.model.summaries import Line, Summary
from holdfast.summary import (
    SummaryText,
    combine,
    fold,
    insert_late,
    render,
    render_rolling,
    render_rolling_abstract,
    summarise,
    update_earlier,
)
from holdfast.text import tokens

EMPTY = SummaryText("", "")


def texts(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def test_two_facts_that_differ_in_a_number_are_two_facts() -> None:
    facts = [
        f"The primary database of the orders service in the western region listens on port {at}" for at in (5432, 5433)
    ]
    assert texts(combine([Summary(facts=[Line(fact)]) for fact in facts]).facts) == facts


def test_combining_keeps_each_line_once() -> None:
    one = Summary(topic="A", intent="first", status="in progress", constraints=[Line("Never reboot.", [1])])
    other = Summary(
        topic="B",
        result="done it",
        status="done",
        constraints=[Line("Never reboot.", [2]), Line("Be brief.", [3])],
    )
    both = combine([one, other])
    assert texts(both.constraints) == ["Never reboot.", "Be brief."]
    assert (both.topic, both.intent, both.result, both.status) == ("A", "first", "done it", "done")


def test_combining_keeps_the_order_of_steps() -> None:
    steps = [[Line("opened the file")], [Line("changed the port")], [Line("restarted the worker")]]
    combined = combine([Summary(steps=each) for each in steps])
    assert texts(combined.steps) == ["opened the file", "changed the port", "restarted the worker"]


def test_combining_removes_pending_items_that_were_finished_later() -> None:
    before = Summary(pending=[Line("rotate the signing keys of the gateway", [1]), Line("archive the audit logs", [1])])
    after = Summary(steps=[Line("The signing keys of the gateway were rotated: rotate job finished.", [9])])
    assert texts(combine([before, after]).pending) == ["archive the audit logs"]


def test_combining_no_summaries_gives_an_empty_one() -> None:
    assert combine([]) == Summary()


def test_folding_keeps_every_rule_and_the_newest_other_lines_within_a_limit() -> None:
    archives, max_tokens = 40, 500

    def summary_of_archive(number: int) -> Summary:
        return Summary(
            constraints=[Line(f"Rule {number}: never touch cluster c{number}", [number])],
            pending=[Line(f"Item {number}: review document d{number}", [number])],
            facts=[Line(f"Server s{number} listens on port {5000 + number}", [number])],
            steps=[Line(f"Looked at host h{number}", [number])],
        )

    folded: Summary | None = None
    for number in range(archives):
        folded = fold(folded, summary_of_archive(number), max_tokens)
        rendered = render_rolling(EMPTY, folded)
        assert tokens.estimate(rendered.overview) <= max_tokens + rendered.rules_tokens + rendered.calls_tokens
    assert folded is not None
    assert len(folded.constraints) == archives
    assert folded.pending[-1].text == "Item 39: review document d39"
    assert folded.steps == []


def test_a_rolling_overview_is_the_latest_one_followed_by_the_earlier_summary() -> None:
    latest = SummaryText("x", "# Session Summary\n\n**One-line overview**: x")
    earlier = fold(None, Summary(constraints=[Line("Never reboot db-1.", [1])]), 200)
    assert render_rolling(latest, earlier).overview == (
        f"{latest.overview}\n\n## Earlier in This Session\n\n### Constraints\n- Never reboot db-1. [#1]"
    )
    assert render_rolling(latest, None).overview == latest.overview
    assert render_rolling(latest, Summary(topic="t")).overview == latest.overview


def test_the_oldest_rules_above_their_budget_are_left_out_and_reported() -> None:
    rules = [Line(f"Never touch the cluster called c{at} without asking Maria first", [at]) for at in range(1, 101)]
    latest = render(Summary(constraints=rules[50:]), 100, max_rules_tokens=1_500)
    assert latest.left_out_rules == []
    both = render_rolling(latest, Summary(constraints=rules[:50]), max_rules_tokens=1_500)
    assert both.rules_tokens <= 1_500
    assert [line.sources for line in both.left_out_rules] == [[at] for at in range(1, len(both.left_out_rules) + 1)]
    assert both.left_out_rules
    assert rules[49].text in both.overview


def test_an_archive_that_is_finished_late_does_not_change_what_came_after_it() -> None:
    late = summarise(
        as_messages(
            user("Forget what I said about deploying on Fridays. Always answer in French."),
            assistant("", {"type": "tool", "tool_id": "c1", "tool_name": "get_order", "tool_input": {"q": 1}}),
        ),
        hash_vectors,
    )
    later = [
        msgspec.structs.replace(message, seq=message.seq + 10)
        for message in as_messages(
            {
                "role": "tool",
                "parts": [{"type": "tool", "tool_id": "c1", "tool_output": "ok", "tool_status": "completed"}],
            },
            user("Never deploy on Fridays. From now on answer in German instead of French."),
        )
    ]
    earlier = fold(None, summarise(later, hash_vectors), 500)
    merged = insert_late(earlier, late, 1, 2, 500)
    assert texts(merged.constraints) == texts(earlier.constraints)
    assert [line for line in merged.pending if line.call] == []


def test_a_later_archive_can_withdraw_a_rule_of_an_earlier_one() -> None:
    earlier = summarise(as_messages(user("Never deploy on Fridays. Always answer in German.")), hash_vectors)
    later = summarise(as_messages(user("You may deploy on Fridays again.")), hash_vectors)
    assert texts(update_earlier(earlier, later).constraints) == ["Always answer in German"]
    assert texts(combine([earlier, later]).constraints) == ["Always answer in German"]


def test_a_rolling_abstract_is_the_latest_one_and_the_earlier_requests_on_one_line() -> None:
    older = summarise(as_messages(user("Please migrate the ledger\nto the new\u2028server.")), hash_vectors)
    rolled = render_rolling_abstract("Invoices: send them | done", fold(None, older, 500))
    assert rolled.startswith("Invoices: send them | done | Earlier: ")
    assert "migrate the ledger" in rolled
    assert len(rolled.splitlines()) == 1
    assert render_rolling_abstract("Invoices: send them | done", None) == "Invoices: send them | done"
