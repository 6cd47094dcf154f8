"""Where an archive may end, for arbitrary conversations."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.archive_boundary import CallEvent, CallSpan, find_call_spans, last_sealable_seq

LAST_SEQ = 12
TOOL_IDS = "abcde"

event_lists = st.lists(
    st.builds(CallEvent, st.integers(1, LAST_SEQ), st.sampled_from(TOOL_IDS), st.booleans()),
    max_size=20,
    unique_by=lambda event: (event.seq, event.tool_id),  # a message has one event of a call
).map(sorted)
seqs = st.integers(0, LAST_SEQ)


def can_end_archive(last: int, events: list[CallEvent], last_user_seq: int) -> bool:
    """Return whether no call has events on both sides of `last`, and no open call is before it."""
    return not any(
        span.first <= last and (span.last > last or (span.last > last_user_seq and not span.is_answered))
        for span in find_call_spans(events)
    )


@given(seqs, event_lists, seqs)
def test_an_archive_ends_at_the_last_message_that_separates_no_call_from_its_result(
    last: int, events: list[CallEvent], last_user_seq: int
) -> None:
    possible = [seq for seq in range(last + 1) if can_end_archive(seq, events, last_user_seq)]
    assert last_sealable_seq(last, events, last_user_seq) == possible[-1]


@given(seqs, event_lists, seqs)
def test_the_result_is_itself_sealable(last: int, events: list[CallEvent], last_user_seq: int) -> None:
    sealable = last_sealable_seq(last, events, last_user_seq)
    assert last_sealable_seq(sealable, events, last_user_seq) == sealable


@given(event_lists)
def test_all_messages_are_sealable_if_the_last_one_is_of_a_user(events: list[CallEvent]) -> None:
    assert last_sealable_seq(LAST_SEQ, events, LAST_SEQ) == LAST_SEQ


@given(event_lists)
def test_a_result_is_never_separated_from_the_event_before_it(events: list[CallEvent]) -> None:
    for last in range(LAST_SEQ + 1):
        if not can_end_archive(last, events, LAST_SEQ):
            continue
        for event in events:
            before = [other for other in events if other.tool_id == event.tool_id and other.seq < event.seq]
            if event.seq > last and not event.is_open and before:
                assert before[-1].seq > last


@given(event_lists)
def test_each_event_of_a_call_is_in_one_span(events: list[CallEvent]) -> None:
    span_count = 0
    for tool_id in TOOL_IDS:
        own_events = [event for event in events if event.tool_id == tool_id]
        spans = find_call_spans(own_events)
        assert [span.first for span in spans] == sorted({span.first for span in spans})
        assert all(sum(span.first <= event.seq <= span.last for span in spans) == 1 for event in own_events)
        assert all(span.is_answered for span in spans[:-1])
        span_count += len(spans)
    assert len(find_call_spans(events)) == span_count


def test_an_id_that_is_used_again_after_its_result_is_another_call() -> None:
    events = [CallEvent(2, "a", is_open=True), CallEvent(3, "a", is_open=False), CallEvent(5, "a", is_open=True)]
    assert find_call_spans(events) == [CallSpan(2, 3, is_answered=True), CallSpan(5, 5, is_answered=False)]
    assert last_sealable_seq(6, events, last_user_seq=1) == 4
