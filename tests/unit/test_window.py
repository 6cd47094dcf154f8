"""What a model is shown of a session, for every budget; and how an overview rolls on."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.config import Settings
from holdfast.context.window import Overview, View, assemble
from holdfast.model import Run

TOKENS = st.integers(0, 500)
STATES = st.sampled_from(["pending", "failed", "cancelled"])


@st.composite
def views(draw: Any) -> View:
    archives = [Run(n + 1, draw(STATES), 10 * n + 1, 10 * n + 10, draw(TOKENS)) for n in range(draw(st.integers(0, 3)))]
    live = [Run(None, "live", 1_000, 1_010, draw(TOKENS))] if draw(st.booleans()) else []
    own, more = draw(TOKENS), draw(TOKENS)
    text = draw(st.sampled_from(["own", "own and more"]))
    overview = Overview(9, 1, 900, 999, "own", own, text, own if text == "own" else own + more)
    return View(
        runs=[*archives, *live],
        messages=[],
        overview=draw(st.none() | st.just(overview)),
        total_archives=9,
        failed_archives=sum(piece.state == "failed" for piece in archives),
        counted_by="estimate",
    )


@given(views(), st.integers(0, 3_000))
def test_a_receipt_adds_up_and_accounts_for_everything(view: View, budget: int) -> None:
    context = assemble(view, budget)
    receipt, stats = context.receipt, context.stats
    assert context.estimated_tokens == receipt.spent == sum(line.tokens for line in receipt.included)
    assert context.estimated_tokens == stats.active_tokens + stats.archive_tokens
    assert len(receipt.included) >= len(view.runs)
    forms = [] if view.overview is None else {view.overview.text, view.overview.rolling}
    if context.latest_archive_overview:
        assert (stats.included_archives, stats.dropped_archives) == (1, 0)
    else:
        assert len(receipt.left_out) == len(forms)
        assert stats.dropped_archives == int(view.overview is not None)


@given(views(), st.integers(0, 3_000))
def test_messages_are_always_whole_and_an_overview_is_whole_or_missing(view: View, budget: int) -> None:
    context = assemble(view, budget)
    active = sum(piece.tokens for piece in view.runs)
    assert context.stats.active_tokens == active
    assert context.estimated_tokens <= max(budget, active)
    if view.overview is None:
        assert context.latest_archive_overview == ""
        return
    room = budget - active
    best = [
        text
        for text, tokens in (
            (view.overview.rolling, view.overview.rolling_tokens),
            (view.overview.text, view.overview.tokens),
        )
        if tokens <= room
    ]
    assert context.latest_archive_overview == (best[0] if best else "")


@given(views(), st.integers(0, 3_000), st.integers(0, 1_000))
def test_a_larger_budget_never_shows_less(view: View, budget: int, more: int) -> None:
    small, large = assemble(view, budget), assemble(view, budget + more)
    assert small.estimated_tokens <= large.estimated_tokens
    assert len(small.latest_archive_overview) <= len(large.latest_archive_overview)


def test_the_overview_of_a_session_stays_within_its_bound_however_many_archives_there_are(tmp_path: Path) -> None:
    settings = Settings(overview_tokens=400, earlier_tokens=300)
    rule = "You must never restart the billing service on a Friday."
    with holdfast.connect(tmp_path, settings=settings) as client:
        client.add_message("s", "user", rule)
        for number in range(1, 31):
            words = " ".join(f"host-{number}-{place}.example.com needs patch {place * number}," for place in range(40))
            client.add_message("s", "user", f"Please upgrade cluster {number}: {words} and report back.")
            client.add_message(
                "s", "assistant", f"Cluster {number} is upgraded to 4.{number}.0; all nodes are healthy."
            )
            task_id = client.commit_session("s").task_id
            assert task_id
            assert client.wait_for_task(task_id).status == "completed"
            context = client.get_session_context("s")
            assert context.estimated_tokens <= settings.overview_tokens + settings.earlier_tokens + 50
            assert "never restart the billing service on a Friday" in context.latest_archive_overview
            assert f"luster {number}" in context.latest_archive_overview
