"""What a model is shown of a session, for every budget; and how an overview rolls on."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.config import Settings
from holdfast.context.tool_outputs import MAX_CHARS, put_back
from holdfast.context.window import Overview, View, assemble
from holdfast.model.archives import Run, SessionContext
from holdfast.model.messages import Message
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.text import tokens

WORDS = ["the order ", "id=4417 ", "shipped\n", "kx9-ZZ ", "总金额 "]
MARK = re.compile(r"\n?\[\.\.\. ([0-9,]+) more characters: (tr_[0-9]+) \.\.\.\]")
STATES = st.sampled_from(["pending", "failed", "cancelled"])
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map("".join)


class Case(msgspec.Struct, frozen=True):
    view: View
    outputs: dict[str, str]

    def assemble(self, budget: int) -> SessionContext:
        return assemble(self.view, budget, self.outputs.__getitem__)


def message(seq: int, role: Any, parts: list[Part]) -> Message:
    return Message(f"m{seq}", role, parts, datetime(2026, 1, 1, tzinfo=UTC), seq, tokens.of_parts(parts))


def output_part(outputs: dict[str, str], text: str, preview: int = 40) -> ToolPart:
    name = f"tr_{len(outputs)}"
    outputs[name] = text
    part = ToolPart(tool_name="t", tool_output=text[:preview])
    return msgspec.structs.replace(part, tool_result_id=name, tool_output_chars=len(text))


@st.composite
def cases(draw: Any) -> Case:
    outputs: dict[str, str] = {}
    everything: list[Message] = []
    for seq in range(1, 1 + draw(st.integers(0, 8))):
        large = draw(st.none() | st.integers(41, 600))
        text = TextPart(draw(TEXTS) or "ok")
        parts: list[Part] = (
            [text] if large is None else [text, output_part(outputs, ((draw(TEXTS) or "x") * large)[:large])]
        )
        everything.append(message(seq, draw(st.sampled_from(["user", "tool", "system"])), parts))
    ends = sorted(draw(st.lists(st.integers(0, len(everything)), max_size=3)))
    runs, first = [], 1
    for number, last in enumerate([*ends, len(everything)]):
        if first <= last:
            state: Any = draw(STATES) if last < len(everything) else "live"
            spent = sum(it.tokens for it in everything[first - 1 : last])
            runs.append(Run(None if state == "live" else number + 1, state, first, last, spent))
        first = last + 1
    sealed = message(0, "system", [TextPart("Be brief.")])
    systems = [it for it in [sealed, *everything] if it.role == "system"]
    own, more = draw(TEXTS) or "own", draw(TEXTS)
    counts = [tokens.estimate(own), tokens.estimate(own + more)]
    overview = Overview(9, -9, -5, 0, own, counts[0], own + more, counts[1])
    view = View(
        runs=runs,
        messages=everything,
        system=draw(st.sampled_from([None, systems[-1]])) if systems[-1] is sealed else systems[-1],
        overview=draw(st.none() | st.just(overview)),
        total_archives=9,
        failed_archives=sum(piece.state == "failed" for piece in runs),
        counted_by=draw(st.sampled_from(["estimate", "o200k_base"])),
    )
    return Case(view, outputs)


BUDGETS = st.integers(0, 2_000)
tokens.counter("o200k_base")("")  # reads its vocabulary, which takes a while


@given(cases(), BUDGETS)
def test_a_receipt_adds_up_and_accounts_for_everything(case: Case, budget: int) -> None:
    view, context = case.view, case.assemble(budget)
    receipt, stats = context.receipt, context.stats
    assert context.estimated_tokens == receipt.spent == sum(line.tokens for line in receipt.included)
    assert context.estimated_tokens == stats.active_tokens + stats.archive_tokens
    shown = context.messages if context.system_message is None else [context.system_message, *context.messages]
    assert stats.active_tokens == sum(it.tokens for it in shown)
    forms = [] if view.overview is None else {view.overview.text, view.overview.rolling}
    overviews = [line for line in receipt.left_out if "overview" in line.what]
    if context.latest_archive_overview:
        assert (stats.included_archives, stats.dropped_archives) == (1, 0)
    else:
        assert len(overviews) == len(forms)
        assert stats.dropped_archives == int(view.overview is not None)
    named = [line.tool_result_id for line in [*receipt.included, *receipt.left_out] if line.what == "tool_output"]
    assert sorted(map(str, named)) == sorted(case.outputs)


@given(cases(), BUDGETS)
def test_every_message_is_shown_and_the_latest_system_message_once_and_apart(case: Case, budget: int) -> None:
    view, context = case.view, case.assemble(budget)
    seq = None if view.system is None else view.system.seq
    assert (None if context.system_message is None else context.system_message.seq) == seq
    assert [it.seq for it in context.messages] == [it.seq for it in view.messages if it.seq != seq]
    assert [it.text for it in context.messages] == [it.text for it in view.messages if it.seq != seq]


@given(cases(), BUDGETS)
def test_what_is_spent_and_what_is_reserved_fit_the_budget_or_only_messages_are_shown(case: Case, budget: int) -> None:
    context = case.assemble(budget)
    receipt = context.receipt
    chosen = [line for line in receipt.included if line.what in {"overview", "rolling_overview", "tool_output"}]
    assert receipt.spent + receipt.reserved <= budget or not chosen
    if case.view.counted_by == "estimate" and context.latest_archive_overview:
        (line,) = [line for line in chosen if line.what != "tool_output"]
        assert line.tokens + line.reserved >= tokens.upper_bound(context.latest_archive_overview)
    if case.view.counted_by != "estimate":
        assert tokens.counter(case.view.counted_by)(context.latest_archive_overview) <= max(0, budget)


@given(cases(), BUDGETS)
def test_an_output_is_whole_or_a_preview_that_says_what_is_missing(case: Case, budget: int) -> None:
    context = case.assemble(budget)
    left_out = {line.tool_result_id: line for line in context.receipt.left_out}
    shown = context.messages if context.system_message is None else [context.system_message, *context.messages]
    for part in [part for it in shown for part in it.parts if isinstance(part, ToolPart)]:
        whole = case.outputs[part.tool_result_id]
        assert part.is_preview == (part.tool_output != whole)
        assert part.is_preview == (part.tool_result_id in left_out)
        if part.is_preview:
            mark = MARK.search(part.tool_output)
            assert mark
            kept = part.tool_output[: -len(mark[0])] + (
                "\n" if whole[len(part.tool_output) - len(mark[0])] == "\n" else ""
            )
            assert whole.startswith(kept)
            assert int(mark[1].replace(",", "")) == len(whole) - len(kept)
            assert mark[2] == part.tool_result_id
            assert part.tool_result_id in left_out[part.tool_result_id].why


@given(cases(), BUDGETS, st.integers(0, 1_000))
def test_a_larger_budget_never_shows_less(case: Case, budget: int, more: int) -> None:
    small, large = case.assemble(budget), case.assemble(budget + more)
    assert len(small.latest_archive_overview) <= len(large.latest_archive_overview)
    assert small.stats.included_archives <= large.stats.included_archives


def with_output(text: str, overview: Overview | None = None) -> Case:
    outputs: dict[str, str] = {}
    only = message(1, "tool", [output_part(outputs, text, 1_000)])
    view = View(
        runs=[Run(None, "live", 1, 1, only.tokens)],
        messages=[only],
        system=None,
        overview=overview,
        total_archives=0,
        failed_archives=0,
        counted_by="estimate",
    )
    return Case(view, outputs)


def test_the_overview_comes_before_whole_outputs() -> None:
    rules = "Never restart billing. " * 10
    case = with_output("order shipped " * 700, Overview(1, 1, 1, 9, rules, 40, rules, 40))
    rich = case.assemble(100_000)
    assert rich.messages[0].parts[0]["tool_output"] == case.outputs["tr_0"]
    poor = case.assemble(rich.receipt.spent)
    assert poor.messages[0].parts[0]["tool_output"] != case.outputs["tr_0"]
    assert poor.latest_archive_overview == rules


def test_an_output_that_cannot_fit_is_not_even_read() -> None:
    for text, budget in (("order shipped " * 2_000, 2_000), ("x" * (MAX_CHARS + 1), 100_000_000)):
        view = with_output(text).view
        context = assemble(view, budget, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
        (line,) = context.receipt.left_out
        assert line.tokens > 2_000


def test_a_preview_ends_at_a_border_of_words() -> None:
    (shown,) = with_output("onomatopoeia " * 1_000).assemble(0).messages
    text, _ = shown.parts[0]["tool_output"].split("\n")
    assert text.split() == ["onomatopoeia"] * 76


def test_outputs_are_put_back_within_bounds_for_a_summary() -> None:
    outputs: dict[str, str] = {}
    sizes = [1_500, 5_000, 2_000, 1_400]
    said = [message(seq, "tool", [output_part(outputs, "ab " * size, 1_000)]) for seq, size in enumerate(sizes, 1)]
    filled = put_back(said, outputs.__getitem__, per_output=9_000, in_all=11_000)
    assert [not it.parts[0].is_preview for it in filled] == [True, False, True, False]  # type: ignore[union-attr]
    assert all(MARK.search(it.parts[0]["tool_output"]) for it in filled if it.parts[0].is_preview)  # type: ignore[union-attr]
    assert [it.tokens for it in filled] == [it.tokens for it in said]


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
