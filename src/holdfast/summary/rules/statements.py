"""The statements of an English sentence that hold: preferences, judgements, facts, duties."""

import re
from functools import lru_cache
from typing import NamedTuple

from holdfast.summary.rules import english_patterns as patterns
from holdfast.summary.rules import judgements, obligations, preferences
from holdfast.summary.rules import sentence_context as around
from holdfast.summary.rules.clauses import Segment, Sentence

_MIN_GAPS, _MIN_WORDS = 3, 2
_WOULD = ("would ", "could ", " if ", "whether ", " than ", " as ", " what ", " how ", " one ", " why ")
_SUBORDINATED = (
    *_WOULD,
    " when ",
    " whenever ",
    " where ",
    " while ",
    " until ",
    " before ",
    " after ",
    " once ",
    " who ",
)
_NO_DUTY = frozenset({"i", "we", "you", "they", "he", "she", "do", "there", "this", "that", "my", "one", "how", "what"})


class _Opened(NamedTuple):
    """The patterns that the words of a sentence allow."""

    first_person: list[re.Pattern[str]]
    elliptic: list[re.Pattern[str]]
    about_me: list[re.Pattern[str]]
    facts: list[re.Pattern[str]]
    obligations: list[re.Pattern[str]]


@lru_cache(maxsize=16)
def _opened(words: frozenset[str]) -> _Opened:
    return _Opened(*patterns.GATES.opened(words))


def head_of(sentence: Sentence, segment: Segment) -> int:
    """Where a segment begins after words such as "and please"."""
    lead = patterns.LEAD.match(sentence.lower, segment.start, segment.end)
    return lead.end() if lead else segment.start


def body_of(sentence: Sentence, segment: Segment) -> tuple[int, int]:
    return head_of(sentence, segment), segment.end


def preference(sentence: Sentence, segment: Segment) -> tuple[int, int] | None:
    """What the speaker likes, wants or does as a habit."""
    if sentence.words.isdisjoint(preferences.SELF):
        return None
    starts = _starts(sentence.lower, segment)
    places = [
        place
        for pattern in _opened(sentence.words).first_person
        for at in starts
        if (found := pattern.match(sentence.lower, at, segment.end))
        and (place := _stated(sentence.lower, segment, found))
    ]
    if not places:
        return None
    start, end = min(places)
    scope = around.SCOPE.match(sentence.lower, head_of(sentence, segment), start)
    return (scope.start() if scope and scope.end() == start else start), end


def _starts(lower: str, segment: Segment) -> list[int]:
    """Where a statement of the speaker may begin; trying patterns only there is much faster than a search."""
    return [found.start() for found in preferences.STARTS.finditer(lower, segment.start, segment.end)]


def _stated(lower: str, segment: Segment, found: re.Match[str]) -> tuple[int, int] | None:
    """Where a preference is stated, unless it is about the thing at hand or somebody else's."""
    start, words = found.start(), found.group()
    rest = lower[found.end() : segment.end].lstrip(" *")
    unwanted = words.endswith(("not want", "n't want", "nt want"))
    if (
        (unwanted and not preferences.WANT_TALK.match(lower, start, segment.end))
        or (preferences.PRESENT_CHOICE.match(rest) and not preferences.HABITUAL.search(words))
        or preferences.PREFERENCE_TALK.match(rest)
        or (not rest.strip(" .!?*") and words.count(" ") < _MIN_GAPS)
        or lower.endswith(_SUBORDINATED, 0, start)
        or patterns.REPORTED.search(lower, segment.start, start)
    ):
        return None
    return start, start + len(words.rstrip())


def judgement(sentence: Sentence, head: int, segment: Segment) -> tuple[int, int] | None:
    """What suits or annoys the speaker, and facts that bind them: "mornings suit me best", "I have asthma"."""
    lower = sentence.lower
    for pattern in _opened(sentence.words).elliptic:
        if found := pattern.match(lower, head, segment.end):
            return found.span()
    if found := judgements.FOR_ME.match(lower, head, sentence.segments[-1].end):
        return head, min(found.end(), segment.end)
    if found := judgements.IT_WHEN.match(lower, head, segment.end):
        return found.span()
    return fact(sentence, head, segment) or _effect(sentence, head, segment)


def fact(sentence: Sentence, head: int, segment: Segment) -> tuple[int, int] | None:
    lower, facts = sentence.lower, _opened(sentence.words).facts
    starts = [head, *_starts(lower, segment)] if facts else []
    for pattern in facts:
        found = next((match for at in starts if (match := pattern.match(lower, at, segment.end))), None)
        if (
            found
            and not patterns.REPORTED.search(lower, segment.start, found.start())
            and not lower.endswith(_SUBORDINATED, 0, found.start())
        ):
            return found.span()
    return None


def _effect(sentence: Sentence, head: int, segment: Segment) -> tuple[int, int] | None:
    """What a thing in general does to the speaker."""
    lower = sentence.lower
    if judgements.DEFINITE.match(lower, head, segment.end):
        return None
    for pattern in _opened(sentence.words).about_me:
        found = pattern.search(lower, head, segment.end)
        if found and found.start() > head and not patterns.REPORTED.search(lower, segment.start, found.start()):
            return head, found.end()
    return None


def marked(sentence: Sentence, segments: list[Segment], number: int) -> tuple[int, int] | None:
    """A statement in the present that is called a rule before or after it: "..., that's just how we are"."""
    if len(segments) == 1:
        return None
    lower, segment = sentence.lower, segments[number]
    head = head_of(sentence, segment)
    before = number and around.PREFIX.match(lower, *body_of(sentence, segments[number - 1]))
    after = number + 1 < len(segments) and around.SUFFIX.match(lower, *body_of(sentence, segments[number + 1]))
    text = lower[head : segment.end]
    if not (before or after) or len(text.split()) < _MIN_WORDS or around.NARRATES.search(text):
        return None
    return head, segments[number + 1].end if after else segment.end


def duty(sentence: Sentence, head: int, segment: Segment) -> tuple[int, int] | None:
    """A statement that binds: "the hotel must have ...", "... is off limits", an allergy."""
    lower = sentence.lower
    for pattern in _opened(sentence.words).obligations:
        if pattern in obligations.FROM_HEAD:
            within = pattern.search(lower[head : segment.end])
            span = (head + within.start(), head + within.end()) if within else None
        else:
            find = pattern.match if pattern in obligations.AT_HEAD else pattern.search
            within = find(lower, head, segment.end)
            span = within.span() if within else None
        if (
            span is None
            or obligations.AT_HAND.match(lower, head, segment.end)
            or (sentence.asks and obligations.QUERIES.match(lower, *body_of(sentence, sentence.segments[-1])))
            or patterns.REPORTED.search(lower, segment.start, span[0])
            or obligations.PAST.search(lower, segment.start, span[1])
        ):
            continue
        if pattern is obligations.MUST and (
            obligations.NOT_MUST.match(lower, span[0], segment.end)
            or obligations.MUST_SUBJECT.search(lower, head, segment.end)
        ):
            continue
        first = lower[head:].partition(" ")[0]
        if pattern is obligations.EVERY_HAS_TO and first in _NO_DUTY:
            continue
        if first == "it" and pattern is obligations.EVERY_HAS_TO and not obligations.IT_RUNS.match(lower, head):
            continue
        if first.startswith(("i'", "we'", "you'")) and pattern is obligations.EVERY_HAS_TO:
            continue
        if first in {"it", "they", "that", "this", "these"} and pattern in (
            obligations.BARRED,
            obligations.CONVENTION,
        ):
            continue
        if patterns.ASKS.match(lower, head, segment.end) and first not in {"may", "must"}:
            continue
        inner = lower.rfind(" but ", head, span[0])
        return (inner + 5 if inner > head else head), span[1]
    return None
