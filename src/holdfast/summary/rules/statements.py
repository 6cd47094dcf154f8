"""Finds statements that hold in general in an English sentence: preferences, judgements, facts, obligations."""

import re
from functools import lru_cache
from typing import NamedTuple

from holdfast.summary.rules import english_patterns as patterns
from holdfast.summary.rules import judgements, obligations, preferences, sentence_context
from holdfast.summary.rules.splitting import Segment, Sentence

_MIN_SPACES, _MIN_WORDS = 3, 2
"""A preference that ends the segment has at least so many spaces, and a rule that other words mark so many words."""
_SUBORDINATING = (
    *("would ", "could ", " if ", "whether ", " than ", " as ", " what ", " how ", " one ", " why "),
    *(" when ", " whenever ", " where ", " while ", " until ", " before ", " after ", " once ", " who "),
)
"""Text before a statement that makes it a part of another statement."""
_NO_OBLIGATION_SUBJECTS = frozenset(
    {"i", "we", "you", "they", "he", "she", "do", "there", "this", "that", "my", "one", "how", "what"}
)
"""First words of a sentence with "has to" or "have to" that is about the current task, such as "I have to go"."""


class _Candidates(NamedTuple):
    """The patterns that can match a sentence, by its words."""

    first_person: list[re.Pattern[str]]
    subjectless: list[re.Pattern[str]]
    about_me: list[re.Pattern[str]]
    personal_facts: list[re.Pattern[str]]
    obligations: list[re.Pattern[str]]


@lru_cache(maxsize=16)
def _candidates(words: frozenset[str]) -> _Candidates:
    return _Candidates(*patterns.PATTERN_INDEX.find_candidates(words))


def content_start(sentence: Sentence, segment: Segment) -> int:
    """Return where the content of a segment begins, after words such as "and please"."""
    lead = patterns.LEADING_WORDS.match(sentence.lower, segment.start, segment.end)
    return lead.end() if lead else segment.start


def content_span(sentence: Sentence, segment: Segment) -> tuple[int, int]:
    return content_start(sentence, segment), segment.end


def find_preference(sentence: Sentence, segment: Segment) -> tuple[int, int] | None:
    """Find what the speaker likes, wants or does as a habit."""
    if sentence.words.isdisjoint(preferences.SPEAKER_WORDS):
        return None
    starts = _statement_starts(sentence.lower, segment)
    spans = [
        span
        for pattern in _candidates(sentence.words).first_person
        for at in starts
        if (found := pattern.match(sentence.lower, at, segment.end))
        and (span := _preference_span(sentence.lower, segment, found))
    ]
    if not spans:
        return None
    start, end = min(spans)
    scope = sentence_context.LEADING_SCOPE.match(sentence.lower, content_start(sentence, segment), start)
    return (scope.start() if scope and scope.end() == start else start), end


def _statement_starts(lower: str, segment: Segment) -> list[int]:
    """Return where a statement of the speaker may begin. Matching only there is much faster than searching."""
    return [found.start() for found in preferences.FIRST_WORDS.finditer(lower, segment.start, segment.end)]


def _preference_span(lower: str, segment: Segment, found: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of a matched preference, or None if it is about the current task or another person."""
    start, words = found.start(), found.group()
    rest = lower[found.end() : segment.end].lstrip(" *")
    is_aversion = words.endswith(("not want", "n't want", "nt want"))
    if (
        (is_aversion and not preferences.GENERAL_AVERSION.match(lower, start, segment.end))
        or (preferences.CURRENT_CHOICE.match(rest) and not preferences.HABIT.search(words))
        or preferences.NO_GENERAL_OBJECT.match(rest)
        or (not rest.strip(" .!?*") and words.count(" ") < _MIN_SPACES)
        or lower.endswith(_SUBORDINATING, 0, start)
        or patterns.REPORTED_SPEECH.search(lower, segment.start, start)
    ):
        return None
    return start, start + len(words.rstrip())


def find_judgement(sentence: Sentence, start: int, segment: Segment) -> tuple[int, int] | None:
    """Find what suits or annoys the speaker, and personal facts: "mornings suit me best", "I have asthma"."""
    lower = sentence.lower
    for pattern in _candidates(sentence.words).subjectless:
        if found := pattern.match(lower, start, segment.end):
            return found.span()
    if found := judgements.FOR_ME.match(lower, start, sentence.segments[-1].end):
        return start, min(found.end(), segment.end)
    if found := judgements.IT_WHEN.match(lower, start, segment.end):
        return found.span()
    return _find_fact(sentence, start, segment) or _find_effect(sentence, start, segment)


def _find_fact(sentence: Sentence, start: int, segment: Segment) -> tuple[int, int] | None:
    lower, candidates = sentence.lower, _candidates(sentence.words).personal_facts
    starts = [start, *_statement_starts(lower, segment)] if candidates else []
    for pattern in candidates:
        found = next((match for at in starts if (match := pattern.match(lower, at, segment.end))), None)
        if (
            found
            and not patterns.REPORTED_SPEECH.search(lower, segment.start, found.start())
            and not lower.endswith(_SUBORDINATING, 0, found.start())
        ):
            return found.span()
    return None


def _find_effect(sentence: Sentence, start: int, segment: Segment) -> tuple[int, int] | None:
    """Find the effect of something in general on the speaker."""
    lower = sentence.lower
    if judgements.SPECIFIC_SUBJECT.match(lower, start, segment.end):
        return None
    for pattern in _candidates(sentence.words).about_me:
        found = pattern.search(lower, start, segment.end)
        if found and found.start() > start and not patterns.REPORTED_SPEECH.search(lower, segment.start, found.start()):
            return start, found.end()
    return None


def find_marked_rule(sentence: Sentence, segments: list[Segment], number: int) -> tuple[int, int] | None:
    """Find a statement that words before or after it mark as a rule: "..., that's just how we are"."""
    if len(segments) == 1:
        return None
    lower, segment = sentence.lower, segments[number]
    start = content_start(sentence, segment)
    preceding = segments[number - 1] if number else None
    following = segments[number + 1] if number + 1 < len(segments) else None
    prefix = preceding and sentence_context.RULE_PREFIX.match(lower, *content_span(sentence, preceding))
    suffix = following and sentence_context.RULE_SUFFIX.match(lower, *content_span(sentence, following))
    text = lower[start : segment.end]
    if not (prefix or suffix) or len(text.split()) < _MIN_WORDS or sentence_context.NARRATION.search(text):
        return None
    return start, following.end if following and suffix else segment.end


def find_obligation(sentence: Sentence, start: int, segment: Segment) -> tuple[int, int] | None:
    """Find a statement that binds: "the hotel must have ...", "... is off limits", an allergy."""
    lower = sentence.lower
    for pattern in _candidates(sentence.words).obligations:
        span = _match_obligation(pattern, lower, start, segment.end)
        if span is None or not _is_obligation(pattern, sentence, segment, start, span):
            continue
        but = lower.rfind(" but ", start, span[0])
        return (but + len(" but ") if but > start else start), span[1]
    return None


def _match_obligation(pattern: re.Pattern[str], lower: str, start: int, end: int) -> tuple[int, int] | None:
    if pattern in obligations.ANCHORED_PATTERNS:
        found = pattern.search(lower[start:end])
        return (start + found.start(), start + found.end()) if found else None
    find = pattern.match if pattern in obligations.MATCHED_AT_START else pattern.search
    found = find(lower, start, end)
    return found.span() if found else None


def _is_obligation(
    pattern: re.Pattern[str], sentence: Sentence, segment: Segment, start: int, span: tuple[int, int]
) -> bool:
    """Return False for statements about the current task, the past, guesses, questions and reports of others."""
    lower, end = sentence.lower, segment.end
    first_word = lower[start:].partition(" ")[0]
    if (
        obligations.CURRENT_TASK.match(lower, start, end)
        or (sentence.is_question and _asks_confirmation(sentence))
        or patterns.REPORTED_SPEECH.search(lower, segment.start, span[0])
        or obligations.PAST_TENSE.search(lower, segment.start, span[1])
        or (patterns.QUESTION_START.match(lower, start, end) and first_word not in {"may", "must"})
    ):
        return False
    if pattern is obligations.MUST:
        is_guess = obligations.MUST_AS_GUESS.match(lower, span[0], end)
        return not is_guess and not obligations.MUST_WITHOUT_RULE.search(lower, start, end)
    if pattern is obligations.HAS_TO:
        if first_word in _NO_OBLIGATION_SUBJECTS or first_word.startswith(("i'", "we'", "you'")):
            return False
        return first_word != "it" or obligations.IT_HAS_TO_RUN.match(lower, start) is not None
    if pattern in (obligations.FORBIDDEN_OR_REQUIRED, obligations.CONVENTION):
        return first_word not in {"it", "they", "that", "this", "these"}
    return True


def _asks_confirmation(sentence: Sentence) -> bool:
    span = content_span(sentence, sentence.segments[-1])
    return obligations.CONFIRMATION_QUESTION.match(sentence.lower, *span) is not None
