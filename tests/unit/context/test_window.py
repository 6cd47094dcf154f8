"""The context of a session for arbitrary budgets, and the growth of its rolling overview."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.config import Settings
from holdfast.context.tool_outputs import MAX_RESTORED_CHARS, restore_within_chars
from holdfast.context.window import MAX_COUNTED_TWICE, ContextInput, Overview, assemble
from holdfast.model.archives import MessageRange, SessionContext
from holdfast.model.messages import Message
from holdfast.model.parts import Part, TextPart, ToolPart
from holdfast.text import tokens

WORDS = ["the order ", "id=4417 ", "shipped\n", "kx9-ZZ ", "总金额 "]
MARK = re.compile(r"\n?\[\.\.\. ([0-9,]+) more characters: (tr_[0-9]+) \.\.\.\]")
STATES = st.sampled_from(["pending", "failed", "cancelled"])
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map("".join)


class Case(msgspec.Struct, frozen=True):
    """A stored session, and its complete tool outputs by id."""

    stored: ContextInput
    outputs: dict[str, str]

    def assemble(self, budget: int) -> SessionContext:
        return assemble(self.stored, budget, self.outputs.__getitem__).context


def message(seq: int, role: Any, parts: list[Part]) -> Message:
    return Message(f"m{seq}", role, parts, datetime(2026, 1, 1, tzinfo=UTC), seq, tokens.count_parts(parts))


def output_part(outputs: dict[str, str], text: str, preview_chars: int = 40) -> ToolPart:
    """Return a part with a preview of `text`, and add the complete text to `outputs`."""
    result_id = f"tr_{len(outputs)}"
    outputs[result_id] = text
    part = ToolPart(tool_name="t", tool_output=text[:preview_chars])
    return msgspec.structs.replace(part, tool_result_id=result_id, tool_output_chars=len(text))


@st.composite
def cases(draw: Any) -> Case:
    outputs: dict[str, str] = {}
    messages: list[Message] = []
    for seq in range(1, 1 + draw(st.integers(0, 8))):
        output_chars = draw(st.none() | st.integers(41, 600))
        parts: list[Part] = [TextPart(draw(TEXTS) or "ok")]
        if output_chars is not None:
            parts.append(output_part(outputs, ((draw(TEXTS) or "x") * output_chars)[:output_chars]))
        messages.append(message(seq, draw(st.sampled_from(["user", "tool", "system"])), parts))
    ends = sorted(draw(st.lists(st.integers(0, len(messages)), max_size=3)))
    ranges, first = [], 1
    for number, last in enumerate([*ends, len(messages)]):
        if first <= last:
            state: Any = draw(STATES) if last < len(messages) else "live"
            spent = sum(each.tokens for each in messages[first - 1 : last])
            ranges.append(MessageRange(None if state == "live" else number + 1, state, first, last, spent))
        first = last + 1
    archived = message(0, "system", [TextPart("Be brief.")])
    latest_system = [each for each in [archived, *messages] if each.role == "system"][-1]
    text, more = draw(TEXTS) or "own", draw(TEXTS)
    overview = Overview(
        archive_number=9,
        first_done_seq=-9,
        first_seq=-5,
        last_seq=0,
        text=text,
        tokens=tokens.estimate(text),
        rolling_text=text + more,
        rolling_tokens=tokens.estimate(text + more),
    )
    stored = ContextInput(
        ranges=ranges,
        messages=messages,
        system_message=draw(st.sampled_from([None, archived])) if latest_system is archived else latest_system,
        overview=draw(st.none() | st.just(overview)),
        total_archives=9,
        failed_archives=sum(each.state == "failed" for each in ranges),
        counted_by=draw(st.sampled_from(["estimate", "o200k_base"])),
    )
    return Case(stored, outputs)


BUDGETS = st.integers(0, 2_000)
tokens.counter("o200k_base")("")  # loads the vocabulary, which is too slow for the deadline of an example


def all_messages(context: SessionContext) -> list[Message]:
    return context.messages if context.system_message is None else [context.system_message, *context.messages]


@given(cases(), BUDGETS)
def test_a_receipt_adds_up_and_accounts_for_everything(case: Case, budget: int) -> None:
    stored, context = case.stored, case.assemble(budget)
    receipt, stats = context.receipt, context.stats
    assert context.estimated_tokens == receipt.spent == sum(line.tokens for line in receipt.included)
    assert context.estimated_tokens == stats.active_tokens + stats.archive_tokens
    assert stats.active_tokens == sum(each.tokens for each in all_messages(context))
    overviews = set() if stored.overview is None else {stored.overview.text, stored.overview.rolling_text}
    left_out_overviews = [line for line in receipt.left_out if "overview" in line.what]
    if context.latest_archive_overview:
        assert (stats.included_archives, stats.dropped_archives) == (1, 0)
    else:
        assert len(left_out_overviews) == len(overviews)
        assert stats.dropped_archives == int(stored.overview is not None)
    result_ids = [line.tool_result_id for line in [*receipt.included, *receipt.left_out] if line.what == "tool_output"]
    assert sorted(map(str, result_ids)) == sorted(case.outputs)


@given(cases(), BUDGETS)
def test_every_message_is_included_and_the_latest_system_message_is_separate(case: Case, budget: int) -> None:
    stored, context = case.stored, case.assemble(budget)
    seq = None if stored.system_message is None else stored.system_message.seq
    assert (None if context.system_message is None else context.system_message.seq) == seq
    others = [each for each in stored.messages if each.seq != seq]
    assert [each.seq for each in context.messages] == [each.seq for each in others]
    assert [each.text for each in context.messages] == [each.text for each in others]


@given(cases(), BUDGETS)
def test_spent_and_reserved_tokens_fit_the_budget_unless_only_messages_are_included(case: Case, budget: int) -> None:
    context = case.assemble(budget)
    receipt = context.receipt
    optional = [line for line in receipt.included if line.what in {"overview", "rolling_overview", "tool_output"}]
    assert receipt.spent + receipt.reserved <= budget or not optional
    if case.stored.counted_by == "estimate" and context.latest_archive_overview:
        (line,) = [line for line in optional if line.what != "tool_output"]
        assert line.tokens + line.reserved >= tokens.upper_bound(context.latest_archive_overview)
    if case.stored.counted_by != "estimate":
        assert tokens.counter(case.stored.counted_by)(context.latest_archive_overview) <= max(0, budget)


@given(cases(), BUDGETS)
def test_an_output_is_complete_or_a_preview_that_states_how_much_is_missing(case: Case, budget: int) -> None:
    context = case.assemble(budget)
    left_out = {line.tool_result_id: line for line in context.receipt.left_out}
    parts = [part for each in all_messages(context) for part in each.parts if isinstance(part, ToolPart)]
    for part in parts:
        output = case.outputs[part.tool_result_id]
        assert part.is_preview == (part.tool_output != output)
        assert part.is_preview == (part.tool_result_id in left_out)
        if part.is_preview:
            mark = MARK.search(part.tool_output)
            assert mark
            mark_start = len(part.tool_output) - len(mark[0])
            preview = part.tool_output[:mark_start] + ("\n" if output[mark_start] == "\n" else "")
            assert output.startswith(preview)
            assert int(mark[1].replace(",", "")) == len(output) - len(preview)
            assert mark[2] == part.tool_result_id
            assert part.tool_result_id in left_out[part.tool_result_id].why


@given(cases(), BUDGETS, st.integers(0, 1_000))
def test_a_larger_budget_never_includes_less(case: Case, budget: int, more: int) -> None:
    small, large = case.assemble(budget), case.assemble(budget + more)
    assert len(small.latest_archive_overview) <= len(large.latest_archive_overview)
    assert small.stats.included_archives <= large.stats.included_archives


def case_with_output(text: str, overview: Overview | None = None) -> Case:
    outputs: dict[str, str] = {}
    only_message = message(1, "tool", [output_part(outputs, text, 1_000)])
    stored = ContextInput(
        ranges=[MessageRange(None, "live", 1, 1, only_message.tokens)],
        messages=[only_message],
        system_message=None,
        overview=overview,
        total_archives=0,
        failed_archives=0,
        counted_by="estimate",
    )
    return Case(stored, outputs)


def test_the_overview_takes_precedence_over_complete_outputs() -> None:
    rules = "Never restart billing. " * 10
    case = case_with_output("order shipped " * 700, Overview(1, 1, 1, 9, rules, 40, rules, 40))
    large = case.assemble(100_000)
    assert large.messages[0].parts[0]["tool_output"] == case.outputs["tr_0"]
    small = case.assemble(large.receipt.spent)
    assert small.messages[0].parts[0]["tool_output"] != case.outputs["tr_0"]
    assert small.latest_archive_overview == rules


def test_an_output_that_cannot_fit_is_not_read() -> None:
    for text, budget in (("order shipped " * 2_000, 2_000), ("x" * (MAX_RESTORED_CHARS + 1), 100_000_000)):
        stored = case_with_output(text).stored
        # Reading an output would raise ZeroDivisionError.
        context = assemble(stored, budget, lambda _: 1 / 0).context  # type: ignore[arg-type, return-value]
        (line,) = context.receipt.left_out
        assert line.tokens > 2_000


def test_a_preview_ends_with_a_complete_word() -> None:
    (shown,) = case_with_output("onomatopoeia " * 1_000).assemble(0).messages
    text, _ = shown.parts[0]["tool_output"].split("\n")
    assert text.split() == ["onomatopoeia"] * (1_000 // len("onomatopoeia "))


def test_outputs_are_restored_within_limits_for_a_summary() -> None:
    outputs: dict[str, str] = {}
    sizes = [1_500, 5_000, 2_000, 1_400]
    stored = [message(seq, "tool", [output_part(outputs, "ab " * size, 1_000)]) for seq, size in enumerate(sizes, 1)]
    restored = restore_within_chars(stored, outputs.__getitem__, max_chars_per_output=9_000, max_chars=11_000)
    parts = [each.parts[0] for each in restored]
    assert [not part.is_preview for part in parts] == [True, False, True, False]  # type: ignore[union-attr]
    assert all(MARK.search(part["tool_output"]) for part in parts if part.is_preview)  # type: ignore[union-attr]
    assert [each.tokens for each in restored] == [each.tokens for each in stored]


def test_the_rolling_overview_of_a_session_stays_within_its_limit_for_any_number_of_archives(tmp_path: Path) -> None:
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
            assert f"cluster {number}" in context.latest_archive_overview.lower()


def test_messages_that_are_too_large_to_be_counted_twice_reserve_as_much_again() -> None:
    size = MAX_COUNTED_TWICE + 1
    large = msgspec.structs.replace(message(1, "user", [TextPart("ok")]), tokens=size)
    outputs: dict[str, str] = {}
    with_output = message(2, "user", [output_part(outputs, "word " * 200)])
    stored = ContextInput(
        ranges=[MessageRange(None, "live", 1, 2, size + with_output.tokens)],
        messages=[large, with_output],
        system_message=None,
        overview=None,
        total_archives=0,
        failed_archives=0,
        counted_by="estimate",
    )
    receipt = Case(stored, outputs).assemble(size * 3 // 2).receipt
    assert receipt.reserved == receipt.spent
    assert [line.what for line in receipt.left_out] == ["tool_output"]
    roomy = Case(stored, outputs).assemble(3 * size).receipt
    assert [line.what for line in roomy.included] == ["live", "tool_output"]
