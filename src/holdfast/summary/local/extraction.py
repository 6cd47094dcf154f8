"""A summary from the messages themselves: no model, every line something that was said."""

from collections.abc import Callable, Sequence

from holdfast.model.messages import Message
from holdfast.model.summaries import Language, Line, Summary
from holdfast.summary.local import facts, selection
from holdfast.summary.local.concepts import Concept, candidates
from holdfast.summary.local.ranking import Embed, Space
from holdfast.summary.local.reading import language_of, read
from holdfast.summary.local.selection import Choice
from holdfast.summary.rules import standing
from holdfast.summary.tools.pairing import ToolCall, pair
from holdfast.summary.tools.values import value_lines
from holdfast.text.literals import literals
from holdfast.text.sentences import Sentence, split
from holdfast.text.shortening import shorten, width_of

CONCEPTS = 8
_TOPIC = 3
_INTENT_WIDTH, _RESULT_WIDTH = 130, 130
_MIN_VALUES, _VALUES_SHARE = 60, 0.22
"""The tokens, and the part of all, that values may take before they are cut to what is asked for most."""
_CLOSING = 3
"""The last messages decide how it stands."""

_STATUS: dict[Language, dict[str, str]] = {
    "en": {"done": "done", "open": "in progress", "blocked": "blocked", "asked": "open questions"},
    "zh": {"done": "已完成", "open": "进行中", "blocked": "受阻", "asked": "有待答复"},
}


def extract(
    messages: Sequence[Message], embed: Embed, yield_cpu: Callable[[], None], waiting: Sequence[Line]
) -> Summary:
    """The summary of a stretch of messages. The same messages and vectors give the same summary."""
    language = language_of(messages)
    calls = pair(messages, yield_cpu, waiting)
    sentences = read(messages, calls, yield_cpu)
    values = _values(calls, messages, yield_cpu)
    if not sentences and not values:
        return Summary(language=language)
    about = candidates(sentences)
    space = Space(sentences, [concept.text for concept in about], embed, yield_cpu)
    choice = Choice(sentences, space, last=len(messages) - 1)
    worth = facts.importance(sentences, "\n".join(line.text for line in values))
    rules = standing(messages, yield_cpu)
    choice.use([*rules.rules, *rules.dropped])
    decided = selection.decisions(choice)
    opened = [*selection.open_calls(calls, messages), *selection.pending(choice)]
    wanted = selection.requests(choice)
    result = selection.outcome(choice)
    texts = [line.text for line in (*rules.rules, *decided, *opened, *wanted, *values)]
    texts += [shorten(result.text, selection.STEP_WIDTH)] if result else []
    shown = {each.key for text in texts for each in literals(text)}
    known = facts.facts(sentences, worth, shown, choice.used)
    done = selection.steps(choice, result)
    concepts = _concepts(about, space, sentences)
    intent = next((line.text for line in (*wanted, *done, *values, *known)), "")
    return Summary(
        language=language,
        topic=("、" if language == "zh" else ", ").join(line.text for line in concepts[:_TOPIC]),
        intent=_whole(intent, _INTENT_WIDTH),
        result=shorten(result.text if result else "", _RESULT_WIDTH),
        status=_STATUS[language][_status(choice, opened)],
        steps=done,
        requests=wanted,
        concepts=concepts,
        decisions=decided,
        constraints=rules.rules,
        withdrawals=rules.withdrawals,
        facts=known,
        values=values,
        pending=opened,
        answered_calls=_answered(calls),
    )


def verbatim(messages: Sequence[Message], yield_cpu: Callable[[], None], waiting: Sequence[Line]) -> Summary:
    """What no model may change or forget: rules, values and calls without a result."""
    calls = pair(messages, yield_cpu, waiting)
    rules = standing(messages, yield_cpu)
    return Summary(
        language=language_of(messages),
        constraints=rules.rules,
        withdrawals=rules.withdrawals,
        values=_values(calls, messages, yield_cpu),
        pending=selection.open_calls(calls, messages),
        answered_calls=_answered(calls),
    )


def _values(calls: Sequence[ToolCall], messages: Sequence[Message], yield_cpu: Callable[[], None]) -> list[Line]:
    size = sum(message.tokens for message in messages)
    return value_lines(calls, messages, max(_MIN_VALUES, round(_VALUES_SHARE * size)), yield_cpu)


def _answered(calls: Sequence[ToolCall]) -> list[str]:
    """The calls of an earlier stretch that got their result in this one."""
    return [call.answers for call in calls if not call.is_made_here]


def _whole(text: str, width: int) -> str:
    """As many whole sentences as the width holds; of the first at least its beginning."""
    told = ""
    for piece in split(text):
        longer = f"{told} {piece.text}".strip()
        if width_of(longer) > width:
            break
        told = longer
    return told or shorten(text, width)


def _concepts(about: Sequence[Concept], space: Space, sentences: Sequence[Sentence]) -> list[Line]:
    weighed = sorted(
        ((concept, concept.weight * (0.5 + near)) for concept, near in zip(about, space.others, strict=True)),
        key=lambda pair: (-pair[1], pair[0].text),
    )[:CONCEPTS]
    top = weighed[0][1] or 1.0 if weighed else 1.0
    return [Line(concept.text, sentences[concept.place].sources, round(weight / top, 3)) for concept, weight in weighed]


def _status(choice: Choice, opened: Sequence[Line]) -> str:
    closing = [each for each in choice.sentences if each.place > choice.last - _CLOSING]
    if any("blocked" in each.cues and each.origin == "said" for each in closing):
        return "blocked"
    left = selection.unanswered(choice)
    if left:
        return "asked" if any("question" in each.cues for each in left) else "open"
    final = [each for each in closing if each.place == choice.last]
    if any(each.origin == "failure" for each in final):
        return "blocked"
    finished = any("result" in each.cues and each.origin == "said" for each in closing)
    return "done" if finished and not opened else "open"
