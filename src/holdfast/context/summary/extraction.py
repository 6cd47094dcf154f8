"""A summary from the messages themselves: no model, every line something that was said."""

from collections.abc import Callable, Sequence

from holdfast.context.summary import choosing, facts
from holdfast.context.summary.choosing import Choice
from holdfast.context.summary.concepts import Concept, candidates
from holdfast.context.summary.literals import literals
from holdfast.context.summary.ranking import Embed, Space
from holdfast.context.summary.reading import language_of, read
from holdfast.context.summary.sentences import Sentence, split
from holdfast.context.summary.shortening import shorten, width_of
from holdfast.model.messages import Message
from holdfast.model.summaries import Language, Line, Summary

CONCEPTS = 8
_TOPIC = 3
_INTENT_WIDTH, _RESULT_WIDTH = 130, 130
_CLOSING = 3
"""The last messages decide how it stands."""

_STATUS: dict[Language, dict[str, str]] = {
    "en": {"done": "done", "open": "in progress", "blocked": "blocked", "asked": "open questions"},
    "zh": {"done": "已完成", "open": "进行中", "blocked": "受阻", "asked": "有待答复"},
}


def extract(messages: Sequence[Message], embed: Embed, breathe: Callable[[], None]) -> Summary:
    """The summary of a stretch of messages. The same messages and vectors give the same summary."""
    language = language_of(messages)
    sentences = read(messages, breathe)
    if not sentences:
        return Summary(language=language)
    about = candidates(sentences)
    space = Space(sentences, [concept.text for concept in about], embed, breathe)
    choice = Choice(sentences, space, last=len(messages) - 1)
    worth = facts.importance(sentences)
    rules = choosing.constraints(choice)
    decided = choosing.decisions(choice)
    opened = choosing.pending(choice)
    wanted = choosing.requests(choice)
    told = {each.key for line in (*rules, *decided, *opened, *wanted) for each in literals(line.text)}
    known = facts.facts(sentences, worth, told, choice.used)
    done = choosing.steps(choice)
    concepts = _concepts(about, space, sentences)
    intent = wanted[0].text if wanted else (done[0].text if done else sentences[0].text)
    return Summary(
        language=language,
        topic=("、" if language == "zh" else ", ").join(line.text for line in concepts[:_TOPIC]),
        intent=_whole(intent, _INTENT_WIDTH),
        result=shorten(choosing.best_result(choice, intent), _RESULT_WIDTH),
        status=_STATUS[language][_status(choice, opened)],
        steps=done,
        requests=wanted,
        concepts=concepts,
        decisions=decided,
        constraints=rules,
        facts=known,
        pending=opened,
    )


def rules_of(messages: Sequence[Message], breathe: Callable[[], None]) -> list[Line]:
    """The constraints alone, without vectors."""
    sentences = read(messages, breathe)
    return choosing.constraints(Choice(sentences, Space(sentences, [], None, breathe), last=len(messages) - 1))


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
    return [Line(concept.text, [sentences[concept.place].id], round(weight / top, 3)) for concept, weight in weighed]


def _status(choice: Choice, opened: Sequence[Line]) -> str:
    closing = [each for each in choice.sentences if each.place > choice.last - _CLOSING]
    if any("blocked" in each.cues and each.origin == "said" for each in closing):
        return "blocked"
    left = choosing.unanswered(choice)
    if left:
        return "asked" if any("question" in each.cues for each in left) else "open"
    final = [each for each in closing if each.place == choice.last]
    if any(each.origin == "failure" for each in final):
        return "blocked"
    finished = any("result" in each.cues and each.origin == "said" for each in closing)
    return "done" if finished and not opened else "open"
