"""Where the clause of a standing rule or preference begins and ends in an English sentence."""

import re
from itertools import pairwise
from typing import NamedTuple

from holdfast.summary.rules import english_patterns as patterns
from holdfast.summary.rules import preferences, sentence_context, statements
from holdfast.summary.rules.clauses import Segment, Sentence, quoted

MAX_CLAUSE = 200
_MAX_TAIL_WORDS, _MAX_FRAGMENT_WORDS = 4, 8
_PLEASE = len(", please")
_PREMISES = (
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
_EACH = frozenset({"each", "every", "always", "whenever", "before"})
_CONTINUES = ("i ", "i'", "we ", "we'", "my ", "our ")
_COORDINATED = (" and ", " but ")
_MAX_GAP = 6
_OWN_WORDS = ("i ", "i'", "we ", "we'", "my ", "our ", "please ")
_BY_THEIR_WORDS = (
    patterns.STOP,
    patterns.PERSONAL,
    patterns.IN_MIND,
    patterns.FILLER,
    patterns.MANNER,
    patterns.ORDERING,
    patterns.WITH_ME,
    patterns.ANY_YOU,
)


class Clause(NamedTuple):
    start: int
    end: int


def announces(sentence: Sentence) -> bool:
    """Whether a list of rules follows."""
    return sentence.text.endswith(":") and bool(patterns.ANNOUNCES.search(sentence.lower))


def clauses(sentence: Sentence, *, announced: bool) -> list[Clause]:
    """The rules and preferences in a sentence, as places in its text."""
    if not announced and sentence.words.isdisjoint(patterns.GATE):
        return []
    if sentence_context.TASK.match(sentence.lower) and not patterns.STANDING.search(sentence.lower):
        return []
    limit = _question(sentence) if sentence.asks else len(sentence.segments)
    segments = sentence.segments[:limit] + [
        segment
        for segment in sentence.segments[limit + 1 :]
        if sentence.lower.startswith(_PREMISES, statements.head_of(sentence, segment))
    ]
    if announced and segments and not sentence.asks:
        return [Clause(segments[0].start, _within(sentence.lower, segments[0].start, segments[-1].end))]
    found: list[Clause] = []
    reported = False
    for number, segment in enumerate(segments):
        if found and segment.start < found[-1].end:
            continue
        after = sentence.lower[segments[number - 1].end : segment.start] if number else ""
        reported = reported and "so" not in after
        own = sentence.lower.startswith(_OWN_WORDS, statements.head_of(sentence, segment))
        if reported and not own and not sentence.lower.startswith("so ", segment.start):
            continue
        reported = reported or (
            not sentence.words.isdisjoint(sentence_context.REPORTING)
            and bool(sentence_context.REPORTS.search(sentence.lower, segment.start, segment.end))
        )
        span = _span(sentence, segments, number, segment) or statements.marked(sentence, segments, number)
        if span is None:
            continue
        clause = _grow(sentence, segments, number, *span)
        text = sentence.lower[clause.start : clause.end]
        if not _quotes(text) and (not patterns.PRESENT.search(text) or text.startswith("only ")):
            found.append(clause)
    return _joined(sentence.lower, found)


def _joined(lower: str, clauses: list[Clause]) -> list[Clause]:
    """Clauses in which the speaker goes on about the same: "I'm not into X, I'd take Y any day" is one."""
    joined: list[Clause] = []
    for clause in clauses:
        if (
            joined
            and clause.start - joined[-1].end <= _MAX_GAP
            and clause.end - joined[-1].start <= MAX_CLAUSE
            and lower.startswith(_CONTINUES, clause.start)
            and sentence_context.GAP.fullmatch(lower, joined[-1].end, clause.start)
        ):
            joined[-1] = Clause(joined[-1].start, clause.end)
            continue
        joined.append(clause)
    return joined


def _quotes(text: str) -> bool:
    """Whether words of others are quoted, other than the few that are to be used: 'signed "Kind regards"'."""
    return quoted(text) and not sentence_context.MENTIONS.search(text)


def _question(sentence: Sentence) -> int:
    """The number of the segment with which the question begins."""
    for number, segment in enumerate(sentence.segments):
        if patterns.ASKS.match(sentence.lower, statements.head_of(sentence, segment), segment.end):
            return number
    last = sentence.segments[-1] if sentence.segments else Segment(0, 0)
    if sentence.lower[last.start : last.end].strip() in patterns.TAGS:
        return len(sentence.segments) - 1
    if len(sentence.segments) == 1 and patterns.RIGHT.search(sentence.lower, last.start, last.end):
        return 1
    return len(sentence.segments) - 1


def _span(sentence: Sentence, segments: list[Segment], number: int, segment: Segment) -> tuple[int, int] | None:
    """Where the rule of a segment begins, and where the words end by which it was recognised."""
    lower = sentence.lower
    head = statements.head_of(sentence, segment)
    word = lower[head : head + 24].partition(" ")[0].strip("*")
    if word == "my" and (way := preferences.MY_WAY.match(lower, head)):
        return head, way.end()
    commands = word in patterns.COMMAND_HEADS or "nothing" in sentence.words
    return (
        (_command(lower, head, segment.end) if commands else None)
        or statements.preference(sentence, segment)
        or statements.judgement(sentence, head, segment)
        or statements.duty(sentence, head, segment)
        or _instruction(sentence, segments, number, head, word)
    )


def _command(lower: str, head: int, end: int) -> tuple[int, int] | None:
    """A command that stands by its own words: "never ...", "do not ...", "hands off ..."."""
    if patterns.ENCOURAGES.search(lower, head, end):
        return None
    if always := patterns.ALWAYS.match(lower, head, end):
        verb = always[1]
        inflected = (verb.endswith("s") and verb not in patterns.BASE_IN_S) or verb.endswith(("ed", "ing"))
        if verb not in patterns.NOT_ALWAYS and not inflected:
            return head, always.end()
    negated = patterns.DO_NOT.match(lower, head, end)
    if negated and (negated[1] not in patterns.TALK or patterns.FIRM.match(lower, negated.start(1), end)):
        return head, negated.end()
    for pattern in _BY_THEIR_WORDS:
        if found := pattern.match(lower, head, end):
            return head, found.end()
    for pattern in (
        patterns.BARE_NO,
        patterns.ONLY,
        patterns.NO,
        patterns.NOTHING,
        patterns.HANDS_OFF,
        patterns.KEEP,
        patterns.AT_MOST,
        patterns.UNIVERSAL,
    ):
        if found := pattern.match(lower, head, end):
            if pattern in (
                patterns.ONLY,
                patterns.UNIVERSAL,
                patterns.NOTHING,
            ) and patterns.FINITE.search(_first_words(lower[found.end() : end])):
                continue
            return head, found.end()
    return None


def _first_words(text: str) -> str:
    """What a fragment says before a condition, where a verb is no verb of its own."""
    cut = re.search(r"\b(?:if|when|that|which|after|before|you|until|unless)\b", text)
    return text[: cut.start()] if cut else text


def _instruction(
    sentence: Sentence, segments: list[Segment], number: int, head: int, word: str
) -> tuple[int, int] | None:
    """A request that holds beyond the present: by a time, a condition, or a word such as "every"."""
    if word not in patterns.IMPERATIVES and sentence.words.isdisjoint(patterns.INSTRUCTING):
        return None
    lower, segment = sentence.lower, segments[number]
    if patterns.LANGUAGE.match(lower, head, segment.end):
        return head, segment.end
    marker = patterns.STANDING.match(lower, head, segment.end)
    if marker and not marker.group().endswith(("you", "we", " i", "whenever")):
        rest = lower[marker.end() : segment.end].lstrip(" *")
        for before in ("please ", "always ", "never ", "please "):
            rest = rest.removeprefix(before)
        word = rest.partition(" ")[0]
    if word in patterns.IMPERATIVES:
        return _imperative(sentence, segments, number, head, word)
    return _conditional(sentence, segments, number, head, word) or _fragment(sentence, segments, number, head)


def _imperative(
    sentence: Sentence, segments: list[Segment], number: int, head: int, word: str
) -> tuple[int, int] | None:
    lower, segment = sentence.lower, segments[number]
    if lower.startswith("let me know", head) and sentence.words.isdisjoint(_EACH):
        return None
    whole, begun = (head, segment.end), (head, head + len(word))
    once = word in patterns.ONE_OFF and "time" not in lower[head : segment.end]
    if patterns.CONTRAST.search(lower, *whole) or (patterns.STANDING.search(lower, *whole) and not once):
        return whole
    if patterns.EACH.search(lower, *whole) and not once and word != "run":
        return whole
    if patterns.BEFORE.search(lower, *whole) or patterns.OUTPUT.search(lower, *whole):
        return whole
    if number and patterns.GENERIC_CONDITION.match(lower, *statements.body_of(sentence, segments[number - 1])):
        return begun
    following = segments[number + 1 : number + 4]
    return (
        begun
        if any(patterns.STANDING.match(lower, *statements.body_of(sentence, each)) for each in following)
        else None
    )


def _conditional(
    sentence: Sentence, segments: list[Segment], number: int, head: int, word: str
) -> tuple[int, int] | None:
    """What is to be done whenever something happens: after a comma, or in the same breath."""
    lower, segment = sentence.lower, segments[number]
    if number and word not in patterns.NO_COMMAND_AFTER_CONDITION:
        before = statements.body_of(sentence, segments[number - 1])
        condition = patterns.FUTURE_CONDITION.match(lower, *before)
        if condition and (_commands(word) or " you " in condition.group() + " "):
            return head, head + len(word)
    condition = patterns.GENERIC_CONDITION.match(lower, head, segment.end)
    if condition and _commanded(lower[condition.end() : segment.end].split()):
        return head, segment.end
    if patterns.STRONG.search(lower, head, segment.end) and _commands(word):
        return head, segment.end
    return None


def _fragment(sentence: Sentence, segments: list[Segment], number: int, head: int) -> tuple[int, int] | None:
    """Words without a verb: "prices in euros please", "free cancellation only"."""
    lower, segment = sentence.lower, segments[number]
    text = lower[head : segment.end]
    if sentence.asks or " " not in text.strip() or patterns.FINITE.search(text):
        return None
    if patterns.FORMAT.match(lower[head : segment.end + _PLEASE]):
        return head, segment.end
    only = text.rstrip(" .!").endswith(" only")
    if only and len(text.split()) <= _MAX_FRAGMENT_WORDS:
        return head, segment.end
    polite = "please" in text or lower[segment.end : segment.end + _PLEASE].strip(" ,.!") == "please"
    following = segments[number + 1 : number + 4]
    later = lower[segment.start : following[-1].end if following else segment.end]
    return (head, segment.end) if polite and (only or patterns.STANDING.search(later)) else None


def _commands(word: str) -> bool:
    """Whether a word at the head of a clause may be a command: no word of the closed classes, no inflected form."""
    return (
        word.isalpha()
        and word not in patterns.CLOSED
        and not word.endswith(("ing", "ed", "ly"))
        and (not word.endswith("s") or word in patterns.BASE_IN_S)
    )


def _commanded(words: list[str]) -> bool:
    """Whether a command follows a condition without a comma: "if there are two papers choose the open one"."""
    return any(
        word in patterns.IMPERATIVES and before.isalpha() and before not in patterns.CLOSED
        for before, word in pairwise(words[:-1])
    )


def _grow(sentence: Sentence, segments: list[Segment], number: int, start: int, cue_end: int) -> Clause:
    """From the recognised words to the clause: with its condition before and its exceptions after."""
    lower = sentence.lower
    at_head = start <= statements.head_of(sentence, segments[number])
    first = number
    number = max(at for at, each in enumerate(segments) if each.start < cue_end or at == number)
    segment = segments[number]
    cut = patterns.RIGHT.search(lower, min(cue_end, segment.end), segment.end)
    if cut and lower.startswith(_COORDINATED, cut.start()):
        rest = Segment(cut.start() + len(" and "), segment.end)
        cut = None if statements.preference(sentence, rest) or statements.judgement(sentence, rest.start, rest) else cut
    end = cut.start() if cut else segment.end
    if not cut:
        for following in segments[number + 1 :]:
            text = lower[following.start : following.end]
            short = len(text.split()) <= _MAX_TAIL_WORDS and not patterns.NO_TAIL.match(text.lstrip(" *\"'"))
            if not (short or patterns.TAIL.match(text)) or quoted(text) or following.end - start > MAX_CLAUSE:
                break
            cut = patterns.RIGHT.search(lower, following.start + 1, following.end)
            end = cut.start() if cut else following.end
            if cut:
                break
    if at_head:
        for before in reversed(segments[:first]):
            head = statements.head_of(sentence, before)
            if (
                not patterns.CONDITION.match(lower, head, before.end)
                or end - head > MAX_CLAUSE
                or quoted(lower[head : before.end])
            ):
                break
            start = head
    return Clause(start, _within(lower, start, end))


def _within(lower: str, start: int, end: int) -> int:
    """The end of a clause of at most 200 characters, cut where a clause or at least a word ends."""
    while end > start and lower[end - 1] in " ,;:.!*(-":
        end -= 1
    if end - start <= MAX_CLAUSE:
        return end
    reach = start + MAX_CLAUSE
    for marks in ((", ", "; ", " - ", ": "), (" if ", " when ", " unless ", " but ", " and ", " or "), (" ",)):
        at = max(lower.rfind(mark, start + MAX_CLAUSE // 4, reach) for mark in marks)
        if at > 0:
            return at
    return reach
