"""Finds the clauses of standing rules and preferences in an English sentence."""

import re
from itertools import pairwise

from holdfast.summary.rules import english_patterns as patterns
from holdfast.summary.rules import preferences, sentence_context, statements
from holdfast.summary.rules.splitting import MAX_CLAUSE_CHARS, Clause, Segment, Sentence, has_quote

_MAX_CONTINUATION_WORDS = 4
"""A segment of up to this many words usually continues the rule before it."""
_MAX_FRAGMENT_WORDS = 8
"""The maximum length of a request such as "free cancellation only"."""
_PLEASE_CHARS = len(", please")
_PREMISE_STARTS = (
    "i ",
    "i'm ",
    "i've ",
    "we ",
    "we're ",
    "my ",
    "our ",
    "given ",
    "since i",
    "as i",
    "considering ",
    "seeing ",
)
"""Beginnings of a segment after a question that states its reason, and may be a rule: "since I'm vegan"."""
_REPEATED_WORDS = frozenset({"each", "every", "always", "whenever", "before"})
"""Words of an action that is repeated. Without them, "let me know" is asked once."""
_SPEAKER_STARTS = ("i ", "i'", "we ", "we'", "my ", "our ")
_CONJUNCTIONS = (" and ", " but ")
_MAX_GAP_CHARS = 6
"""The maximum length of the text between two clauses that are merged."""
_OWN_WORD_STARTS = ("i ", "i'", "we ", "we'", "my ", "our ", "please ")
_COMMAND_PATTERNS = (
    patterns.STOP_DOING,
    patterns.HOW_TO_TREAT_ME,
    patterns.KEEP_IN_MIND,
    patterns.NO_FILLER,
    patterns.TONE,
    patterns.CONTENT_ORDER,
    patterns.YOUR_ANSWERS,
    patterns.ANYTHING_YOU_DO,
)


def announces_rules(sentence: Sentence) -> bool:
    """Return whether the sentence introduces a list of rules."""
    return sentence.text.endswith(":") and bool(patterns.RULE_LIST_HEADING.search(sentence.lower))


def find_clauses(sentence: Sentence, *, announced: bool) -> list[Clause]:
    """Return the rules and preferences of a sentence, as positions in its text.

    `announced` means that the sentence is an item of a list of rules. It is then a rule as a whole.
    """
    if not announced and sentence.words.isdisjoint(patterns.TRIGGER_WORDS):
        return []
    if sentence_context.ONE_TIME_ORDER.match(sentence.lower) and not patterns.LASTING.search(sentence.lower):
        return []
    limit = _question_index(sentence) if sentence.is_question else len(sentence.segments)
    segments = sentence.segments[:limit] + [
        segment
        for segment in sentence.segments[limit + 1 :]
        if sentence.lower.startswith(_PREMISE_STARTS, statements.content_start(sentence, segment))
    ]
    if announced and segments and not sentence.is_question:
        return [Clause(segments[0].start, _limit_end(sentence.lower, segments[0].start, segments[-1].end))]
    found: list[Clause] = []
    is_reported = False
    for number, segment in enumerate(segments):
        if found and segment.start < found[-1].end:
            continue
        border = sentence.lower[segments[number - 1].end : segment.start] if number else ""
        is_reported = is_reported and "so" not in border
        is_own = sentence.lower.startswith(_OWN_WORD_STARTS, statements.content_start(sentence, segment))
        if is_reported and not is_own and not sentence.lower.startswith("so ", segment.start):
            continue
        is_reported = is_reported or (
            not sentence.words.isdisjoint(sentence_context.REPORTING_WORDS)
            and bool(sentence_context.REPORTED_BY_OTHERS.search(sentence.lower, segment.start, segment.end))
        )
        span = _rule_span(sentence, segments, number) or statements.find_marked_rule(sentence, segments, number)
        if span is None:
            continue
        clause = _extend_clause(sentence, segments, number, *span)
        text = sentence.lower[clause.start : clause.end]
        if not _quotes_others(text) and (not patterns.ONLY_NOW.search(text) or text.startswith("only ")):
            found.append(clause)
    return _merge_adjacent(sentence.lower, found)


def _merge_adjacent(lower: str, clauses: list[Clause]) -> list[Clause]:
    """Merge clauses in which the speaker continues the same thought: "I'm not into X, I'd take Y any day"."""
    merged: list[Clause] = []
    for clause in clauses:
        if (
            merged
            and clause.start - merged[-1].end <= _MAX_GAP_CHARS
            and clause.end - merged[-1].start <= MAX_CLAUSE_CHARS
            and lower.startswith(_SPEAKER_STARTS, clause.start)
            and sentence_context.CLAUSE_GAP.fullmatch(lower, merged[-1].end, clause.start)
        ):
            merged[-1] = Clause(merged[-1].start, clause.end)
            continue
        merged.append(clause)
    return merged


def _quotes_others(text: str) -> bool:
    """Return whether the text quotes other people. Words that are to be used do not count: 'signed "Kind regards"'."""
    return has_quote(text) and not sentence_context.WORDS_TO_USE.search(text)


def _question_index(sentence: Sentence) -> int:
    """Return the index of the segment with which the question begins."""
    for number, segment in enumerate(sentence.segments):
        if patterns.QUESTION_START.match(sentence.lower, statements.content_start(sentence, segment), segment.end):
            return number
    last = sentence.segments[-1] if sentence.segments else Segment(0, 0)
    if sentence.lower[last.start : last.end].strip() in patterns.QUESTION_TAGS:
        return len(sentence.segments) - 1
    if len(sentence.segments) == 1 and patterns.CLAUSE_END.search(sentence.lower, last.start, last.end):
        return 1
    return len(sentence.segments) - 1


def _rule_span(sentence: Sentence, segments: list[Segment], number: int) -> tuple[int, int] | None:
    """Return where the rule of a segment begins, and where the words end by which it was recognised."""
    lower, segment = sentence.lower, segments[number]
    start = statements.content_start(sentence, segment)
    word = lower[start : start + 24].partition(" ")[0].strip("*")
    if word == "my" and (found := preferences.MY_RULE_IS_TO.match(lower, start)):
        return start, found.end()
    can_be_command = word in patterns.COMMAND_FIRST_WORDS or "nothing" in sentence.words
    return (
        (_command_span(lower, start, segment.end) if can_be_command else None)
        or statements.find_preference(sentence, segment)
        or statements.find_judgement(sentence, start, segment)
        or statements.find_obligation(sentence, start, segment)
        or _instruction_span(sentence, segments, number, start, word)
    )


def _command_span(lower: str, start: int, end: int) -> tuple[int, int] | None:
    """Find a command that is a rule by its own words: "never ...", "do not ...", "hands off ..."."""
    if patterns.ENCOURAGEMENT.search(lower, start, end):
        return None
    if always := patterns.ALWAYS_OR_NEVER.match(lower, start, end):
        verb = always[1]
        is_inflected = (verb.endswith("s") and verb not in patterns.BASE_VERBS_IN_S) or verb.endswith(("ed", "ing"))
        if verb not in patterns.NO_COMMAND_AFTER_ALWAYS and not is_inflected:
            return start, always.end()
    ban = patterns.DO_NOT.match(lower, start, end)
    if ban and (ban[1] not in patterns.NO_BAN_VERBS or patterns.EXPLICIT_BAN.match(lower, ban.start(1), end)):
        return start, ban.end()
    for pattern in _COMMAND_PATTERNS:
        if found := pattern.match(lower, start, end):
            return start, found.end()
    for pattern in (
        patterns.NO_PLURAL,
        patterns.ONLY_VERB,
        patterns.SCOPED_NO,
        patterns.NOTHING_THAT,
        patterns.HANDS_OFF,
        patterns.KEEP_WITHIN,
        patterns.AT_MOST,
        patterns.EVERYTHING_IN,
    ):
        if found := pattern.match(lower, start, end):
            if pattern in (
                patterns.ONLY_VERB,
                patterns.EVERYTHING_IN,
                patterns.NOTHING_THAT,
            ) and patterns.FINITE_VERB.search(_before_condition(lower[found.end() : end])):
                continue
            return start, found.end()
    return None


def _before_condition(text: str) -> str:
    """Return the part of a fragment before a condition. A verb of the condition does not make it a full sentence."""
    cut = re.search(r"\b(?:if|when|that|which|after|before|you|until|unless)\b", text)
    return text[: cut.start()] if cut else text


def _instruction_span(
    sentence: Sentence, segments: list[Segment], number: int, start: int, word: str
) -> tuple[int, int] | None:
    """Find a request that holds beyond the current task, by a time, a condition, or a word such as "every"."""
    if word not in patterns.IMPERATIVE_VERBS and sentence.words.isdisjoint(patterns.INSTRUCTION_WORDS):
        return None
    lower, segment = sentence.lower, segments[number]
    if patterns.ANSWER_LANGUAGE.match(lower, start, segment.end):
        return start, segment.end
    marker = patterns.LASTING.match(lower, start, segment.end)
    if marker and not marker.group().endswith(("you", "we", " i", "whenever")):
        rest = lower[marker.end() : segment.end].lstrip(" *")
        for adverb in ("please ", "always ", "never ", "please "):
            rest = rest.removeprefix(adverb)
        word = rest.partition(" ")[0]
    if word in patterns.IMPERATIVE_VERBS:
        return _imperative_span(sentence, segments, number, start, word)
    return _conditional_span(sentence, segments, number, start, word) or _fragment_span(
        sentence, segments, number, start
    )


def _imperative_span(
    sentence: Sentence, segments: list[Segment], number: int, start: int, word: str
) -> tuple[int, int] | None:
    lower, segment = sentence.lower, segments[number]
    if lower.startswith("let me know", start) and sentence.words.isdisjoint(_REPEATED_WORDS):
        return None
    whole, first_word = (start, segment.end), (start, start + len(word))
    is_one_off = word in patterns.ONE_OFF_VERBS and "time" not in lower[start : segment.end]
    if patterns.BUT_NOT.search(lower, *whole) or (patterns.LASTING.search(lower, *whole) and not is_one_off):
        return whole
    if patterns.EACH_OR_ALWAYS.search(lower, *whole) and not is_one_off and word != "run":
        return whole
    if patterns.BEFORE_ACTING.search(lower, *whole) or patterns.ALL_OUTPUTS.search(lower, *whole):
        return whole
    if number and patterns.GENERIC_CONDITION.match(lower, *statements.content_span(sentence, segments[number - 1])):
        return first_word
    following = segments[number + 1 : number + 4]
    return (
        first_word
        if any(patterns.LASTING.match(lower, *statements.content_span(sentence, each)) for each in following)
        else None
    )


def _conditional_span(
    sentence: Sentence, segments: list[Segment], number: int, start: int, word: str
) -> tuple[int, int] | None:
    """Find an action that a general condition demands, after a comma or without one."""
    lower, segment = sentence.lower, segments[number]
    if number and word not in patterns.NO_COMMAND_AFTER_CONDITION:
        before = statements.content_span(sentence, segments[number - 1])
        condition = patterns.FUTURE_CONDITION.match(lower, *before)
        if condition and (_may_be_command(word) or " you " in condition.group() + " "):
            return start, start + len(word)
    condition = patterns.GENERIC_CONDITION.match(lower, start, segment.end)
    if condition and _has_command(lower[condition.end() : segment.end].split()):
        return start, segment.end
    if patterns.EXPLICITLY_LASTING.search(lower, start, segment.end) and _may_be_command(word):
        return start, segment.end
    return None


def _fragment_span(sentence: Sentence, segments: list[Segment], number: int, start: int) -> tuple[int, int] | None:
    """Find a request without a verb: "prices in euros please", "free cancellation only"."""
    lower, segment = sentence.lower, segments[number]
    text = lower[start : segment.end]
    if sentence.is_question or " " not in text.strip() or patterns.FINITE_VERB.search(text):
        return None
    if patterns.FORMAT_REQUEST.match(lower[start : segment.end + _PLEASE_CHARS]):
        return start, segment.end
    ends_with_only = text.rstrip(" .!").endswith(" only")
    if ends_with_only and len(text.split()) <= _MAX_FRAGMENT_WORDS:
        return start, segment.end
    has_please = "please" in text or lower[segment.end : segment.end + _PLEASE_CHARS].strip(" ,.!") == "please"
    following = segments[number + 1 : number + 4]
    context = lower[segment.start : following[-1].end if following else segment.end]
    return (start, segment.end) if has_please and (ends_with_only or patterns.LASTING.search(context)) else None


def _may_be_command(word: str) -> bool:
    """Return whether the first word of a clause can be a command: no function word and no inflected form."""
    return (
        word.isalpha()
        and word not in patterns.FUNCTION_WORDS
        and not word.endswith(("ing", "ed", "ly"))
        and (not word.endswith("s") or word in patterns.BASE_VERBS_IN_S)
    )


def _has_command(words: list[str]) -> bool:
    """Return whether a command follows a condition without a comma: "if there are two papers choose the open one"."""
    return any(
        word in patterns.IMPERATIVE_VERBS and before.isalpha() and before not in patterns.FUNCTION_WORDS
        for before, word in pairwise(words[:-1])
    )


def _extend_clause(sentence: Sentence, segments: list[Segment], number: int, start: int, cue_end: int) -> Clause:
    """Extend the recognised words to the whole clause, with the condition before it and the exceptions after it."""
    lower = sentence.lower
    starts_segment = start <= statements.content_start(sentence, segments[number])
    first = number
    number = max(at for at, each in enumerate(segments) if each.start < cue_end or at == number)
    segment = segments[number]
    cut = patterns.CLAUSE_END.search(lower, min(cue_end, segment.end), segment.end)
    if cut and lower.startswith(_CONJUNCTIONS, cut.start()):
        rest = Segment(cut.start() + len(" and "), segment.end)
        if statements.find_preference(sentence, rest) or statements.find_judgement(sentence, rest.start, rest):
            cut = None
    end = cut.start() if cut else segment.end
    if not cut:
        for following in segments[number + 1 :]:
            text = lower[following.start : following.end]
            if not _continues_rule(text) or has_quote(text) or following.end - start > MAX_CLAUSE_CHARS:
                break
            cut = patterns.CLAUSE_END.search(lower, following.start + 1, following.end)
            end = cut.start() if cut else following.end
            if cut:
                break
    if starts_segment:
        for preceding in reversed(segments[:first]):
            condition_start = statements.content_start(sentence, preceding)
            if (
                not patterns.CONDITION.match(lower, condition_start, preceding.end)
                or end - condition_start > MAX_CLAUSE_CHARS
                or has_quote(lower[condition_start : preceding.end])
            ):
                break
            start = condition_start
    return Clause(start, _limit_end(lower, start, end))


def _continues_rule(text: str) -> bool:
    """Return whether a segment belongs to the rule before it, such as a short phrase or an exception."""
    is_short = len(text.split()) <= _MAX_CONTINUATION_WORDS
    if is_short and not patterns.NO_CONTINUATION.match(text.lstrip(" *\"'")):
        return True
    return patterns.CONTINUATION.match(text) is not None


def _limit_end(lower: str, start: int, end: int) -> int:
    """Return the end of a clause of at most 200 characters, cut at the end of a phrase or at least of a word."""
    while end > start and lower[end - 1] in " ,;:.!*(-":
        end -= 1
    if end - start <= MAX_CLAUSE_CHARS:
        return end
    limit = start + MAX_CLAUSE_CHARS
    for marks in ((", ", "; ", " - ", ": "), (" if ", " when ", " unless ", " but ", " and ", " or "), (" ",)):
        at = max(lower.rfind(mark, start + MAX_CLAUSE_CHARS // 4, limit) for mark in marks)
        if at > 0:
            return at
    return limit
