"""Where an archive may end, for every conversation there can be."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.archive_boundary import Call, Span, last_sealable_seq, spans

LENGTH = 12
TOOLS = "abcde"

calls_of_a_conversation = st.lists(
    st.builds(Call, st.integers(1, LENGTH), st.sampled_from(TOOLS), st.booleans()),
    max_size=20,
    unique_by=lambda call: (call.seq, call.tool_id),  # a message says one thing of a call
).map(sorted)
places = st.integers(0, LENGTH)


def is_whole(last: int, calls: list[Call], turn: int) -> bool:
    """Whether no call is on both sides of the border, and none that still runs is before it."""
    return not any(
        span.first <= last and (span.last > last or (span.last > turn and not span.is_answered))
        for span in spans(calls)
    )


@given(places, calls_of_a_conversation, places)
def test_no_call_is_separated_from_its_result_and_the_border_is_the_last_one_possible(
    last: int, calls: list[Call], turn: int
) -> None:
    possible = [place for place in range(last + 1) if is_whole(place, calls, turn)]
    assert last_sealable_seq(last, calls, turn) == possible[-1]


@given(places, calls_of_a_conversation, places)
def test_a_border_that_was_found_stays_where_it_is(last: int, calls: list[Call], turn: int) -> None:
    found = last_sealable_seq(last, calls, turn)
    assert last_sealable_seq(found, calls, turn) == found


@given(calls_of_a_conversation)
def test_behind_the_user_nothing_runs_and_a_border_is_where_it_was_asked_for(calls: list[Call]) -> None:
    assert last_sealable_seq(LENGTH, calls, LENGTH) == LENGTH


@given(calls_of_a_conversation)
def test_an_answer_is_never_apart_from_the_call_before_it(calls: list[Call]) -> None:
    for border in range(LENGTH + 1):
        if not is_whole(border, calls, LENGTH):
            continue
        for call in calls:
            before = [it for it in calls if it.tool_id == call.tool_id and it.seq < call.seq]
            if call.seq > border and not call.is_open and before:
                assert before[-1].seq > border


@given(calls_of_a_conversation)
def test_each_mention_of_a_call_belongs_to_one_span(calls: list[Call]) -> None:
    for tool_id in TOOLS:
        own = [call for call in calls if call.tool_id == tool_id]
        found = spans(own)
        assert [span.first for span in found] == sorted({span.first for span in found})
        assert all(sum(span.first <= call.seq <= span.last for span in found) == 1 for call in own)
        assert all(span.is_answered for span in found[:-1])
    assert len(spans(calls)) == sum(len(spans([it for it in calls if it.tool_id == tool_id])) for tool_id in TOOLS)


def test_an_id_that_is_used_again_after_an_answer_is_another_call() -> None:
    calls = [Call(2, "a", is_open=True), Call(3, "a", is_open=False), Call(5, "a", is_open=True)]
    assert spans(calls) == [Span(2, 3, is_answered=True), Span(5, 5, is_answered=False)]
    assert last_sealable_seq(6, calls, turn=1) == 4
