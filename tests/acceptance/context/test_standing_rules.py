"""Standing rules and preferences stay in the context of a session after any number of commits."""

from functools import partial
from pathlib import Path

import pytest

import holdfast
from conversations.standing import STANDING
from conversations.standing.measuring import PIECE_COUNTS, commit_in_pieces, measure_kept_rules, rules_in_overview


@pytest.mark.parametrize("pieces", PIECE_COUNTS)
def test_rules_and_preferences_are_kept_word_for_word_for_any_number_of_commits(pieces: int, tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        kept = measure_kept_rules(STANDING, pieces, partial(commit_in_pieces, client))
    assert kept.expected >= 60
    assert kept.kept >= 57, kept.missed
    assert len(kept.false) <= 6, kept.false
    assert kept.longest <= 200


def test_the_receipt_names_rules_that_do_not_fit_and_expand_returns_them(tmp_path: Path) -> None:
    settings = holdfast.Settings(rules_tokens=100)
    rules = [f"Never deploy the service called {name} on a Friday" for name in NAMES]
    with holdfast.connect(tmp_path, settings=settings) as client:
        session = client.session("s")
        for rule in rules:
            session.add_message("user", f"{rule}.")
            session.add_message("assistant", "I will keep to that, and go on with the report about the quarter.")
            client.wait_for_task(str(session.commit().task_id))
        context = session.context()
        shown = rules_in_overview(context.latest_archive_overview)
        assert 0 < len(shown) < len(rules)
        assert rules[-1] in shown
        (line,) = [line for line in context.receipt.left_out if line.what == "rules"]
        ref = line.why.split("expand '")[1].split("'")[0]
        expanded = {message.text.rstrip(".") for message in session.expand(ref).messages}
        assert set(rules) - set(shown) <= expanded


def test_a_withdrawn_rule_disappears_from_the_context_of_later_commits(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        session = client.session("s")
        for text in (
            "Always answer in German. Never deploy on Fridays.",
            "You may deploy on Fridays again.",
            "Thanks.",
        ):
            session.add_message("user", text)
            session.add_message("assistant", "All right.")
            client.wait_for_task(str(session.commit().task_id))
        overview = session.context().latest_archive_overview
    assert "Always answer in German" in overview
    assert "Never deploy on Fridays" not in overview


NAMES = ("anchor", "beacon", "cedar", "delta", "ember", "falcon", "garnet", "harbor", "indigo", "juniper", "kestrel")
