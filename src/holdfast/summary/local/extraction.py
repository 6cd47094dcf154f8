"""Summaries without a model: every line is a sentence, a value or a rule from the messages."""

from collections.abc import Callable, Sequence

from holdfast.model.messages import Message
from holdfast.model.summaries import Line, Summary
from holdfast.summary.large_archives import limit_reading
from holdfast.summary.local import facts, selection
from holdfast.summary.local.concepts import Concept, find_concepts
from holdfast.summary.local.ranking import Embed, SentenceVectors
from holdfast.summary.local.reading import detect_language, read_sentences
from holdfast.summary.local.selection import Selection
from holdfast.summary.rules import extract_rules
from holdfast.summary.sections import CONCEPTS, STATUS
from holdfast.summary.tools.pairing import ToolCall, pair_calls
from holdfast.summary.tools.values import value_lines
from holdfast.text.literals import find_literals
from holdfast.text.sentences import Sentence, split_sentences
from holdfast.text.shortening import shorten, weighted_width

_TOPIC_CONCEPTS = 3
_MAX_INTENT_WIDTH, _MAX_RESULT_WIDTH = 130, 130
_MIN_VALUES_TOKENS, _VALUES_SHARE = 60, 0.22
"""Tokens of values, at least and as a share of the conversation, above which their minor fields are left out."""
_CLOSING_MESSAGES = 3
"""How many of the last messages decide the status."""


def extract_summary(
    messages: Sequence[Message], embed: Embed, yield_cpu: Callable[[], None], earlier_open_calls: Sequence[Line]
) -> Summary:
    """Summarise messages. The same messages and vectors give the same summary."""
    calls = pair_calls(messages, yield_cpu, earlier_open_calls)
    messages = limit_reading(messages)
    read_calls = _calls_to_read(calls, messages)
    with_parts = [message for message in messages if message.parts]
    language = detect_language(with_parts)
    sentences = read_sentences(messages, read_calls, yield_cpu)
    values = _values(read_calls, messages, yield_cpu)
    if not sentences and not values:
        return Summary(language=language)
    candidates = find_concepts(sentences)
    vectors = SentenceVectors(sentences, [concept.text for concept in candidates], embed, yield_cpu)
    chosen = Selection(sentences, vectors, last_index=len(messages) - 1)
    importance = facts.literal_importance(sentences, "\n".join(line.text for line in values))
    rules = extract_rules(with_parts, yield_cpu)
    chosen.mark_rules([*rules.rules, *rules.dropped])
    # The order matters: a sentence that one section uses is not available to the next one.
    decisions = selection.select_decisions(chosen)
    pending = [*selection.open_call_lines(calls, messages), *selection.select_pending(chosen)]
    requests = selection.select_requests(chosen)
    result = selection.select_result(chosen)
    texts = [line.text for line in (*rules.rules, *decisions, *pending, *requests, *values)]
    texts += [shorten(result.text, selection.MAX_STEP_WIDTH)] if result else []
    shown = {literal.key for text in texts for literal in find_literals(text)}
    fact_lines = facts.select_facts(sentences, importance, shown, chosen.used)
    steps = selection.select_steps(chosen, result)
    concepts = _concept_lines(candidates, vectors, sentences)
    intent = next((line.text for line in (*requests, *steps, *values, *fact_lines)), "")
    return Summary(
        language=language,
        topic=("、" if language == "zh" else ", ").join(line.text for line in concepts[:_TOPIC_CONCEPTS]),
        intent=_shorten_to_sentences(intent, _MAX_INTENT_WIDTH),
        result=shorten(result.text if result else "", _MAX_RESULT_WIDTH),
        status=STATUS[language][_status(chosen, pending)],
        steps=steps,
        requests=requests,
        concepts=concepts,
        decisions=decisions,
        constraints=rules.rules,
        withdrawals=rules.withdrawals,
        facts=fact_lines,
        values=values,
        pending=pending,
        answered_calls=_answered_earlier_calls(calls),
    )


def extract_verbatim(
    messages: Sequence[Message], yield_cpu: Callable[[], None], earlier_open_calls: Sequence[Line]
) -> Summary:
    """Extract only rules, values and open calls."""
    calls = pair_calls(messages, yield_cpu, earlier_open_calls)
    messages = limit_reading(messages)
    with_parts = [message for message in messages if message.parts]
    rules = extract_rules(with_parts, yield_cpu)
    return Summary(
        language=detect_language(with_parts),
        constraints=rules.rules,
        withdrawals=rules.withdrawals,
        values=_values(_calls_to_read(calls, messages), messages, yield_cpu),
        pending=selection.open_call_lines(calls, messages),
        answered_calls=_answered_earlier_calls(calls),
    )


def _calls_to_read(calls: Sequence[ToolCall], messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls that are made by messages with parts."""
    return [call for call in calls if messages[call.message_index].parts]


def _values(calls: Sequence[ToolCall], messages: Sequence[Message], yield_cpu: Callable[[], None]) -> list[Line]:
    tokens = sum(message.tokens for message in messages)
    return value_lines(calls, messages, max(_MIN_VALUES_TOKENS, round(_VALUES_SHARE * tokens)), yield_cpu)


def _answered_earlier_calls(calls: Sequence[ToolCall]) -> list[str]:
    """Return the keys of the calls made before these messages whose results are among them."""
    return [call.answered_key for call in calls if not call.is_made_here]


def _shorten_to_sentences(text: str, width: int) -> str:
    """Return as many complete sentences as fit `width`, or the beginning of the first if it does not fit."""
    shortened = ""
    for piece in split_sentences(text):
        longer = f"{shortened} {piece.text}".strip()
        if weighted_width(longer) > width:
            break
        shortened = longer
    return shortened or shorten(text, width)


def _concept_lines(
    candidates: Sequence[Concept], vectors: SentenceVectors, sentences: Sequence[Sentence]
) -> list[Line]:
    weighed = sorted(
        (
            (concept, concept.weight * (0.5 + centrality))
            for concept, centrality in zip(candidates, vectors.concept_centrality, strict=True)
        ),
        key=lambda pair: (-pair[1], pair[0].text),
    )[: CONCEPTS.max_lines]
    max_weight = weighed[0][1] or 1.0 if weighed else 1.0
    return [
        Line(concept.text, sentences[concept.sentence_index].sources, round(weight / max_weight, 3))
        for concept, weight in weighed
    ]


def _status(chosen: Selection, pending: Sequence[Line]) -> str:
    """Return a key of `STATUS`, derived from the last messages."""
    closing = [
        sentence for sentence in chosen.sentences if sentence.message_index > chosen.last_index - _CLOSING_MESSAGES
    ]
    if any("blocked" in sentence.cues and sentence.origin == "prose" for sentence in closing):
        return "blocked"
    unanswered = selection.unanswered_requests(chosen)
    if unanswered:
        return "has_questions" if any("question" in sentence.cues for sentence in unanswered) else "in_progress"
    final = [sentence for sentence in closing if sentence.message_index == chosen.last_index]
    if any(sentence.origin == "failed_call" for sentence in final):
        return "blocked"
    has_result = any("result" in sentence.cues and sentence.origin == "prose" for sentence in closing)
    return "done" if has_result and not pending else "in_progress"
