"""Detects withdrawals of rules, and removes rules that were withdrawn, replaced or repeated.

The comment beside a pattern is a text that it matches.
"""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.model.summaries import Line
from holdfast.summary.rules.phrases import triggered, word_set
from holdfast.text.scripts import HAN_AND_HEXAGRAMS

MAX_WITHDRAWALS = 100
_ABOUT_PREFIX, _ALLOWED_PREFIX, _REFERRED_PREFIX = "about: ", "allowed: ", "referred: "
"""What follows in the text of a withdrawal: its subject, what is allowed again, or words that mention the rule."""
_MAX_SUBJECT_CHARS, _MAX_REFERRED_CHARS, _MAX_ALLOWED_CHARS = 200, 2_000, 80

_STOP_WORDS = word_set(
    """a an the and or but of to in on at for with by from as is are be been was were i we you me us my our your it its
    this that these those do does did don't dont not no never always only must mustn't should shall may can
    can't cannot will would i'd we'd i'm we're i've please any every each all everything anything nothing ever
    again if when whenever than then so just also now time here there what which who have has had want use
    prefer like rather really very much more most over instead rule rules said about thing what's you'd you're
    forward future default onwards going point today keep make let them they their one two into out up off hate
    love avoid fan big am don't won't longer anymore still need allowed earlier previous old last former first
    above before"""
)
_WORD = re.compile(r"[^\W_]+(?:['.,-][^\W_]+)*")
_HAN_RUN = re.compile(f"[{HAN_AND_HEXAGRAMS}]+")
_HAN_STOP_WORDS = re.compile(
    r"以后|今后|凡是|都|要|请|用|不要|必须|一律|不|我|你|的|了|时候|时|回答|吧|也|就|把|可以|再|先|还是|改回|任何|一定|所有|之前|刚才|说|规则|那条|关于"
)
_NEGATIVE = re.compile(  # "never"
    r"\b(?:never|not|no|don't|dont|mustn't|can't|cannot|nothing|without|hands off|off limits|forbidden"
    r"|prohibited|avoid|hate|dislike"
    r"|out of the question)\b|不要|禁止|严禁|不得|不许|不能|不准|别|切勿|绝不|不允许|讨厌"
)
_PERMISSION = re.compile(  # "you may use tabs again"
    r"\b(?:you|we|they|it|people)(?: (?:may|can|could|are (?:now )?(?:allowed|free) to)|'re (?:allowed"
    r"|free) to)\s(.{1,120}?)\b(?:again|now|after all|from now on)\b"
    r"|\b(?:it's|it is|that's) (?:fine|ok|okay|all right|allowed) to (.{1,80}?) (?:again|now|after all)\b"
)
_RELIEF = re.compile(  # "you don't have to sign them any more"
    r"\b(?:don't|do not|needn't) (?:need|have) to (.{1,100}?)(?: any ?more| any longer)\b"
    r"|\byou no longer (?:need|have) to (.{1,100})|\bno need to (.{1,80}?) (?:any ?more|any longer)"
)
_ALLOWED = re.compile(
    r"\b(?:is|are) (?:allowed|fine|ok|okay|permitted|possible) (?:again|now|after all)\b"
)  # "tabs are fine again"
_REVOCATION = re.compile(  # "forget my rule about tabs"
    r"\b(?:forget|ignore|disregard|scrap|drop|scratch|cancel|never ?mind|take back|withdraw|strike|lift"
    r"|undo) (?:about )?"
    r"(?:everything |all )?(?:what i (?:said|told you|wrote|asked)(?: [a-z]+)? (?:about|on|regarding) ([^,.;]{1,100})"
    r"|(?:my|that|the|this|our) ((?:[a-z0-9-]+ ){0,4}?)(?:rules?|instructions?|preferences?|requests?|limits?|ban"
    r"|restrictions?|requirements?|conditions?|bit|things?|stuff)\b(?: (?:about|on|regarding|with|for"
    r"|of) ([^,.;]{1,100}))?)"
    r"|\b(?:changed|changing) my mind (?:about|on|regarding) ([^,.;]{1,100})"
    r"|\bwhat i said (?:[a-z]+ )?(?:about|on|regarding) ([^,.;]{1,80}?) (?:no longer|doesn't|does not|is|isn't)\b"
)
_END_OF_RULE = re.compile(  # "the limit no longer applies"
    r"\b(?:that|this|the|my|our)\s(.{0,80}?)\b(?:no longer|doesn't|does not|don't) (?:apply|applies|hold|holds)\b"
    r"(?: any ?more)?"
    r"|\b(?:that|this|the|my|our)\s(.{0,60}?)\b(?:rule|limit|ban|restriction|requirement|instruction"
    r"|preference|thing)\b(.{0,40}?) (?:is|are) (?:history|gone|off|void|lifted|obsolete|over|cancelled"
    r"|withdrawn|dropped)\b"
)
_NO_LONGER = re.compile(  # "I'm no longer vegan"
    r"\b(?:i'm|i am|we're|we are|i|we) (?:no longer (.{1,60})|not (.{1,60}?) (?:any ?more|any longer)\b)"
)
_SCRATCH = re.compile(  # "scratch that"
    r"\b(?:scratch that|never ?mind that|forget that|strike that|ignore that|undo that|forget it)\b|(?:算了|当我没说)"
)
_CHINESE = re.compile(
    r"(?:忘掉|忘了|忽略|取消|作废|撤销|不用管|不用再管|收回)(?:我)?(?:之前|刚才|前面|上面)?(?:说的|提的|那条)?(?:关于)?(.{1,30}?)(?:的?(?:规则|要求|限制|规定|话|事))?$"
    r"|(.{2,24}?)(?:的?(?:规则|要求|限制|规定))?(?:不再适用|作废了?|取消了|不算了|不用管了|不用了)$"
    r"|(?:可以|允许|能)(?:重新)?(.{2,20}?)了$|不(?:用|需要|必)再(.{2,30})"
)
_CHINESE_NOT_NEEDED = re.compile("不(?:用|需要|必)再")
_MAX_CHINESE_CHARS = 50
"""Each form of `_CHINESE` reaches the end of the sentence, so it begins among the last characters, except for one."""
_THAT_RULE = word_set("rule one instruction limit ban restriction requirement preference")
_REPLACEMENT = re.compile(  # "spaces instead of tabs"
    r"\b(?:instead of|rather than|and no longer|not|and not|no longer) ([^,.;]{2,60})|而不是([^，。；]{1,20})"
    r"|不再用?([^，。；]{1,20})"
)
_CHANGE_WORDS = re.compile(  # "from now on"
    r"\b(?:from now on|from here on|instead|again|actually|henceforth|going forward|no longer|any ?more"
    r"|change|switch)\b|以后|改|从现在|今后|还是"
)
_ANSWERING = re.compile(r"\b(?:answer|reply|respond|speak|talk|write back)\b|回答|回复|答复|说话|跟我说")  # "reply"
_LANGUAGES = re.compile(
    r"\b(english|german|french|spanish|italian|portuguese|dutch|swedish|norwegian|danish|polish|russian"
    r"|chinese|mandarin|japanese|korean|turkish|arabic|hindi|greek|czech)\b|(中文|英文|英语|法语|德语|日语|日文|韩语"
    r"|西班牙语|俄语)"
)
_LIMIT = re.compile(  # "at most"
    r"\b(?:under|below|above|over|within|than|at most|at least|max|maximum|minimum|limit|budget|exceed|up to"
    r"|until|before|after)\b"
    r"|不超过|不低于|最多|至少|以内|上限|预算"
)
_NUMBER = re.compile(r"\d")
_CONDITION = re.compile(r"\b(?:when|whenever|if|unless|except|for|in the|during)\b|如果|(?<!我的)时候|除")  # "unless"
_MIN_OVERLAP, _MIN_COVERAGE = 0.6, 0.6
"""The share of common words from which two rules have the same subject, and from which a text mentions a rule."""
_MIN_SHARED_WORDS, _MIN_STEM_CHARS, _MAX_COMPARED = 2, 3, 50


class Subject(NamedTuple):
    """The subject of a rule, for comparison with other rules."""

    words: frozenset[str]
    limit_words: frozenset[str]
    """The words without numbers, if the rule is a limit. Otherwise empty."""
    is_negative: bool
    is_restriction: bool
    is_answer_language: bool
    """Whether the rule names the language of answers."""
    has_condition: bool
    replaced: list[frozenset[str]]
    """The words of each thing that the rule replaces explicitly: "spaces instead of tabs"."""


@lru_cache(maxsize=4_096)
def parse_subject(text: str) -> Subject:
    lower = text.lower().replace("’", "'")
    words = content_words(lower)
    replacements = _REPLACEMENT.finditer(lower) if _CHANGE_WORDS.search(lower) else ()
    is_negative = bool(_NEGATIVE.search(lower))
    is_limit = _LIMIT.search(lower) is not None
    return Subject(
        words=words,
        limit_words=frozenset(word for word in words if is_limit and not _NUMBER.search(word)),
        is_negative=is_negative,
        is_restriction=is_negative or "only" in lower or "只" in lower,
        is_answer_language=bool(_ANSWERING.search(lower) and _LANGUAGES.search(lower)),
        has_condition=bool(_CONDITION.search(lower)),
        replaced=[old for each in replacements if (old := content_words(" ".join(filter(None, each.groups()))))],
    )


def content_words(lower: str) -> frozenset[str]:
    """Return the stems of the words that state the subject of a text; for Chinese, pairs of characters.

    >>> sorted(content_words("never deploy on fridays"))
    ['deploy', 'friday']
    """
    words = {_stem(word) for word in _WORD.findall(lower) if word not in _STOP_WORDS and not _HAN_RUN.search(word)}
    for run in _HAN_RUN.findall(lower):
        for piece in _HAN_STOP_WORDS.split(run):
            words |= {piece[at : at + 2] for at in range(max(1, len(piece) - 1))} if piece else set()
    return frozenset(words)


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM_CHARS:
            return word[: -len(ending)].removesuffix("e")
    return word.removesuffix("e") if len(word) > _MIN_STEM_CHARS else word


_TRIGGERED_PATTERNS = (
    triggered(
        "forget ignore disregard scrap drop scratch cancel nevermind mind back withdraw strike lift undo skip said",
        _REVOCATION,
    ),
    triggered(
        "apply applies hold holds count counts matter matters history gone off void lifted obsolete over"
        " cancelled withdrawn dropped",
        _END_OF_RULE,
    ),
    triggered("again now after", _PERMISSION),
    triggered("more anymore longer", _RELIEF),
    triggered("longer anymore more", _NO_LONGER),
)
_TRIGGER_WORDS = word_set("").union(*(each.triggers for each in _TRIGGERED_PATTERNS))


def may_withdraw(words: frozenset[str], lower: str) -> bool:
    """Return whether a sentence can be a withdrawal, by its words. It is cheap, and most sentences cannot."""
    return not words.isdisjoint(_TRIGGER_WORDS) or not lower.isascii()


def parse_withdrawal(lower: str, words: frozenset[str], preceding: str) -> str | None:
    """Return the text of a withdrawal for a sentence in lower case, or None if it withdraws nothing.

    `preceding` is the text before the sentence. "That rule no longer applies" refers to a rule mentioned there.
    """
    lower = lower.rstrip(" .!。！")
    patterns = [pattern for triggers, pattern in _TRIGGERED_PATTERNS if not words.isdisjoint(triggers)]
    for pattern in patterns if lower.isascii() else [*patterns, _CHINESE]:
        found = pattern.search(lower) if pattern is not _CHINESE else _search_chinese(lower)
        if found is None:
            continue
        about = " ".join(each for each in found.groups() if each and each.strip() and each.strip() not in _THAT_RULE)
        if content_words(about):
            is_chinese_permission = pattern is _CHINESE and found[3]
            prefix = _ALLOWED_PREFIX if pattern is _PERMISSION or is_chinese_permission else _ABOUT_PREFIX
            about = lower if is_chinese_permission else about
            return f"{prefix}{about[:_MAX_SUBJECT_CHARS].strip()}"
        if pattern in (_REVOCATION, _END_OF_RULE):
            return f"{_REFERRED_PREFIX}{' '.join(sorted(content_words(preceding.lower())))[:_MAX_REFERRED_CHARS]}"
    allowed = _ALLOWED.search(lower)
    about = lower[max(0, allowed.start() - _MAX_ALLOWED_CHARS) : allowed.start()] if allowed else ""
    return f"{_ALLOWED_PREFIX}{about.strip()}" if content_words(about) else None


def _search_chinese(lower: str) -> re.Match[str] | None:
    """Search for `_CHINESE` only where it can begin. From every position it would take long."""
    not_needed = _CHINESE_NOT_NEEDED.search(lower)
    start = max(0, len(lower) - _MAX_CHINESE_CHARS)
    return _CHINESE.search(lower, start if not_needed is None else min(start, not_needed.start()))


def withdraws_previous(sentence: str) -> bool:
    """Return whether a sentence withdraws the rules of the sentence before it: "scratch that"."""
    return bool(_SCRATCH.search(sentence.lower()))


def active_rules(rules: Sequence[Line], withdrawals: Sequence[Line]) -> list[Line]:
    """Return the rules that still hold. `rules` are ordered from old to new; all `withdrawals` are newer.

    A repeated rule is kept in its newest wording and position. A newer rule replaces an older one by explicit words
    ("instead of tabs"), by another language of answers, by another number in the same words, or by demanding the
    opposite about the same subject. In case of doubt both are kept.
    """
    subjects = [parse_subject(line.text) for line in rules]
    dropped: set[int] = set()
    seen: dict[str, list[int]] = {}
    for index, subject in enumerate(subjects):
        older = {each for word in subject.words for each in seen.get(word, ())} | set(seen.get("", ()))
        if subject.is_answer_language:
            seen.setdefault("", []).append(index)
        dropped |= {each for each in older if each not in dropped and _replaces(subject, subjects[each])}
        for word in subject.words:
            with_word = seen.setdefault(word, [])
            with_word.append(index)
            del with_word[:-_MAX_COMPARED]
    for line in withdrawals:
        dropped |= _find_withdrawn(line.text, subjects, dropped)
    return [line for index, line in enumerate(rules) if index not in dropped]


def _find_withdrawn(text: str, subjects: Sequence[Subject], dropped: set[int]) -> set[int]:
    """Return the indexes of the rules that a withdrawal removes."""
    remaining = [index for index in range(len(subjects)) if index not in dropped]
    if text.startswith(_REFERRED_PREFIX):
        mentioned = frozenset(text.removeprefix(_REFERRED_PREFIX).split())
        coverage = [
            (len(subjects[each].words & mentioned) / max(1, len(subjects[each].words)), each) for each in remaining
        ]
        best = max(coverage, default=(0.0, -1))
        return {best[1]} if best[0] >= _MIN_COVERAGE else set()
    if text.startswith(_ALLOWED_PREFIX):  # a permission lifts a ban only if it names the whole subject of the ban
        allowed = content_words(text.removeprefix(_ALLOWED_PREFIX))
        bans = [each for each in remaining if subjects[each].is_restriction and subjects[each].words]
        return {each for each in bans if subjects[each].words <= allowed}
    withdrawn = content_words(text.removeprefix(_ABOUT_PREFIX))
    min_shared = len(withdrawn) if len(withdrawn) <= _MIN_SHARED_WORDS else _MIN_OVERLAP * len(withdrawn)
    return {each for each in remaining if withdrawn and len(withdrawn & subjects[each].words) >= min_shared}


def _replaces(newer: Subject, older: Subject) -> bool:
    if newer.is_answer_language and older.is_answer_language:
        return newer.has_condition == older.has_condition
    if newer.words == older.words:
        return bool(newer.words)
    if not older.is_negative and any(replaced <= older.words for replaced in newer.replaced):
        return True
    shared = len(newer.words & older.words)
    if shared < _MIN_SHARED_WORDS:
        return False
    if newer.is_negative != older.is_negative:
        is_contained = shared == min(len(newer.words), len(older.words))
        return is_contained and shared / len(newer.words | older.words) >= _MIN_OVERLAP
    have_numbers = newer.limit_words != newer.words and older.limit_words != older.words
    return have_numbers and newer.limit_words == older.limit_words and len(newer.limit_words) >= _MIN_SHARED_WORDS
