"""Rules that were taken back, replaced or said again."""

# ruff: noqa: RUF001 - the punctuation of Chinese
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.model.summaries import Line
from holdfast.summary.rules.phrases import gated, word_set

MAX_WITHDRAWALS = 100
_ABOUT, _ALLOWS, _REFERRED = "about: ", "allowed: ", "referred: "
"""How the text of a withdrawal begins: what it takes back, what it allows again, or the words that mention a rule."""
_MAX_SUBJECT, _MAX_REFERRED, _ALLOWED_CHARS = 200, 2_000, 80

_STOP = word_set(
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
_HAN_RUN = re.compile(r"[\u3400-\u9fff]+")
_HAN_STOP = re.compile(
    r"以后|今后|凡是|都|要|请|用|不要|必须|一律|不|我|你|的|了|时候|时|回答|吧|也|就|把|可以|再|先|还是|改回|任何|一定|所有|之前|刚才|说|规则|那条|关于"
)
_NEGATIVE = re.compile(
    r"\b(?:never|not|no|don't|dont|mustn't|can't|cannot|nothing|without|hands off|off limits|forbidden"
    r"|prohibited|avoid|hate|dislike"
    r"|out of the question)\b|不要|禁止|严禁|不得|不许|不能|不准|别|切勿|绝不|不允许|讨厌"
)
_PERMITS = re.compile(
    r"\b(?:you|we|they|it|people)(?: (?:may|can|could|are (?:now )?(?:allowed|free) to)|'re (?:allowed"
    r"|free) to)\s(.{1,120}?)\b(?:again|now|after all|from now on)\b"
    r"|\b(?:it's|it is|that's) (?:fine|ok|okay|all right|allowed) to (.{1,80}?) (?:again|now|after all)\b"
)
_RELIEVES = re.compile(
    r"\b(?:don't|do not|needn't) (?:need|have) to (.{1,100}?)(?: any ?more| any longer)\b"
    r"|\byou no longer (?:need|have) to (.{1,100})|\bno need to (.{1,80}?) (?:any ?more|any longer)"
)
_ALLOWED = re.compile(r"\b(?:is|are) (?:allowed|fine|ok|okay|permitted|possible) (?:again|now|after all)\b")
_FORGETS = re.compile(
    r"\b(?:forget|ignore|disregard|scrap|drop|scratch|cancel|never ?mind|take back|withdraw|strike|lift"
    r"|undo) (?:about )?"
    r"(?:everything |all )?(?:what i (?:said|told you|wrote|asked)(?: [a-z]+)? (?:about|on|regarding) ([^,.;]{1,100})"
    r"|(?:my|that|the|this|our) ((?:[a-z0-9-]+ ){0,4}?)(?:rules?|instructions?|preferences?|requests?|limits?|ban"
    r"|restrictions?|requirements?|conditions?|bit|things?|stuff)\b(?: (?:about|on|regarding|with|for"
    r"|of) ([^,.;]{1,100}))?)"
    r"|\b(?:changed|changing) my mind (?:about|on|regarding) ([^,.;]{1,100})"
    r"|\bwhat i said (?:[a-z]+ )?(?:about|on|regarding) ([^,.;]{1,80}?) (?:no longer|doesn't|does not|is|isn't)\b"
)
_ENDS = re.compile(
    r"\b(?:that|this|the|my|our)\s(.{0,80}?)\b(?:no longer|doesn't|does not|don't) (?:apply|applies|hold|holds)\b"
    r"(?: any ?more)?"
    r"|\b(?:that|this|the|my|our)\s(.{0,60}?)\b(?:rule|limit|ban|restriction|requirement|instruction"
    r"|preference|thing)\b(.{0,40}?) (?:is|are) (?:history|gone|off|void|lifted|obsolete|over|cancelled"
    r"|withdrawn|dropped)\b"
)
_NO_LONGER = re.compile(
    r"\b(?:i'm|i am|we're|we are|i|we) (?:no longer (.{1,60})|not (.{1,60}?) (?:any ?more|any longer)\b)"
)
_SCRATCH = re.compile(
    r"\b(?:scratch that|never ?mind that|forget that|strike that|ignore that|undo that|forget it)\b|(?:算了|当我没说)"
)
_CHINESE = re.compile(
    r"(?:忘掉|忘了|忽略|取消|作废|撤销|不用管|不用再管|收回)(?:我)?(?:之前|刚才|前面|上面)?(?:说的|提的|那条)?(?:关于)?(.{1,30}?)(?:的?(?:规则|要求|限制|规定|话|事))?$"
    r"|(.{2,24}?)(?:的?(?:规则|要求|限制|规定))?(?:不再适用|作废了?|取消了|不算了|不用管了|不用了)$"
    r"|(?:可以|允许|能)(?:重新)?(.{2,20}?)了$|不(?:用|需要|必)再(.{2,30})"
)
_THAT_RULE = re.compile(r"^\s*(?:rule|one|instruction|limit|ban|restriction|requirement|preference)?\s*$")
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|and no longer|not|and not|no longer) ([^,.;]{2,60})|而不是([^，。；]{1,20})"
    r"|不再用?([^，。；]{1,20})"
)
_CHANGE = re.compile(
    r"\b(?:from now on|from here on|instead|again|actually|henceforth|going forward|no longer|any ?more"
    r"|change|switch)\b|以后|改|从现在|今后|还是"
)
_SPEAKS = re.compile(r"\b(?:answer|reply|respond|speak|talk|write back)\b|回答|回复|答复|说话|跟我说")
_LANGUAGES = re.compile(
    r"\b(english|german|french|spanish|italian|portuguese|dutch|swedish|norwegian|danish|polish|russian"
    r"|chinese|mandarin|japanese|korean|turkish|arabic|hindi|greek|czech)\b|(中文|英文|英语|法语|德语|日语|日文|韩语"
    r"|西班牙语|俄语)"
)
_LIMIT = re.compile(
    r"\b(?:under|below|above|over|within|than|at most|at least|max|maximum|minimum|limit|budget|exceed|up to"
    r"|until|before|after)\b"
    r"|不超过|不低于|最多|至少|以内|上限|预算"
)
_NUMBER = re.compile(r"\d")
_CONDITIONED = re.compile(r"\b(?:when|whenever|if|unless|except|for|in the|during)\b|如果|(?<!我的)时候|除")
_ALIKE, _COVERED = 0.6, 0.6
"""The share of words by which two rules are about the same thing, and by which a text mentions a rule."""
_FEW, _MIN_STEM, _MAX_COMPARED = 2, 3, 50


class Subject(NamedTuple):
    """What a rule is about, for comparing it with others."""

    words: frozenset[str]
    plain: frozenset[str]
    """Its words without numbers, if the rule is a limit; else none."""
    negative: bool
    restricts: bool
    language: bool
    """Whether it names a language to answer in."""
    conditioned: bool
    gives_up: list[frozenset[str]]
    """What it explicitly puts something else in the place of."""


@lru_cache(maxsize=4_096)
def subject(text: str) -> Subject:
    lower = text.lower().replace("’", "'")
    words = content_words(lower)
    instead = _INSTEAD.finditer(lower) if _CHANGE.search(lower) else ()
    negative = bool(_NEGATIVE.search(lower))
    return Subject(
        words=words,
        plain=frozenset(word for word in words if not _NUMBER.search(word)) if _LIMIT.search(lower) else frozenset(),
        negative=negative,
        restricts=negative or "only" in lower or "只" in lower,
        language=bool(_SPEAKS.search(lower) and _LANGUAGES.search(lower)),
        conditioned=bool(_CONDITIONED.search(lower)),
        gives_up=[given for each in instead if (given := content_words(" ".join(filter(None, each.groups()))))],
    )


def content_words(lower: str) -> frozenset[str]:
    """The words that say what a text is about, in their short form; of Chinese, pairs of signs.

    >>> sorted(content_words("never deploy on fridays"))
    ['deploy', 'friday']
    """
    words = {_stem(word) for word in _WORD.findall(lower) if word not in _STOP and not _HAN_RUN.search(word)}
    for run in _HAN_RUN.findall(lower):
        for piece in _HAN_STOP.split(run):
            words |= {piece[at : at + 2] for at in range(max(1, len(piece) - 1))} if piece else set()
    return frozenset(words)


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)].removesuffix("e")
    return word.removesuffix("e") if len(word) > _MIN_STEM else word


_GATED = (
    gated(
        "forget ignore disregard scrap drop scratch cancel nevermind mind back withdraw strike lift undo skip said",
        _FORGETS,
    ),
    gated(
        "apply applies hold holds count counts matter matters history gone off void lifted obsolete over"
        " cancelled withdrawn dropped",
        _ENDS,
    ),
    gated("again now after", _PERMITS),
    gated("more anymore longer", _RELIEVES),
    gated("longer anymore more", _NO_LONGER),
)
_GATE = word_set("").union(*(each.gate for each in _GATED))


def may_withdraw(words: frozenset[str], lower: str) -> bool:
    """Whether the patterns are worth trying: most sentences have none of their words."""
    return not words.isdisjoint(_GATE) or not lower.isascii()


def withdrawal_of(lower: str, words: frozenset[str], before: str) -> str | None:
    """What a sentence in small letters takes back, as the text of a withdrawal, or None.

    `before` is what was said last: "that rule no longer applies" is about a rule that was mentioned there.
    """
    lower = lower.rstrip(" .!。！")
    patterns = [pattern for gate, pattern in _GATED if not words.isdisjoint(gate)]
    for pattern in patterns if lower.isascii() else [*patterns, _CHINESE]:
        found = pattern.search(lower)
        if found is None:
            continue
        about = " ".join(each for each in found.groups() if each and not _THAT_RULE.match(each))
        if content_words(about):
            permits = pattern is _PERMITS or (pattern is _CHINESE and found[3])
            about = lower if pattern is _CHINESE and found[3] else about
            return f"{_ALLOWS if permits else _ABOUT}{about[:_MAX_SUBJECT].strip()}"
        if pattern in (_FORGETS, _ENDS):
            return f"{_REFERRED}{' '.join(sorted(content_words(before.lower())))[:_MAX_REFERRED]}"
    allowed = _ALLOWED.search(lower)
    about = lower[max(0, allowed.start() - _ALLOWED_CHARS) : allowed.start()] if allowed else ""
    return f"{_ALLOWS}{about.strip()}" if content_words(about) else None


def takes_back_last(sentence: str) -> bool:
    """Whether it takes back what was said immediately before: "scratch that"."""
    return bool(_SCRATCH.search(sentence.lower()))


def settle(rules: Sequence[Line], withdrawals: Sequence[Line]) -> list[Line]:
    """The rules that hold, of an ordered list (oldest first) and of withdrawals that are newer than all of them.

    A rule said again counts in its newest wording and place. A newer rule replaces an older one by explicit words
    ("instead of tabs"), by the language to answer in, by another number in the same words, or by demanding the opposite
    of the same thing. Where it is not certain, both stay.
    """
    subjects = [subject(line.text) for line in rules]
    dropped: set[int] = set()
    seen: dict[str, list[int]] = {}
    for newer, about in enumerate(subjects):
        older = {each for word in about.words for each in seen.get(word, ())} | set(seen.get("", ()))
        if about.language:
            seen.setdefault("", []).append(newer)
        dropped |= {each for each in older if each not in dropped and _replaces(about, subjects[each])}
        for word in about.words:
            sharing = seen.setdefault(word, [])
            sharing.append(newer)
            del sharing[:-_MAX_COMPARED]
    for line in withdrawals:
        dropped |= _withdrawn(line.text, subjects, dropped)
    return [line for number, line in enumerate(rules) if number not in dropped]


def _withdrawn(text: str, subjects: Sequence[Subject], dropped: set[int]) -> set[int]:
    left = [number for number in range(len(subjects)) if number not in dropped]
    if text.startswith(_REFERRED):
        mentioned = frozenset(text.removeprefix(_REFERRED).split())
        covered = [(len(subjects[each].words & mentioned) / max(1, len(subjects[each].words)), each) for each in left]
        best = max(covered, default=(0.0, -1))
        return {best[1]} if best[0] >= _COVERED else set()
    if text.startswith(_ALLOWS):  # to allow something lifts a ban only if it names all that the ban is about
        allowed = content_words(text.removeprefix(_ALLOWS))
        bans = [each for each in left if subjects[each].restricts and subjects[each].words]
        return {each for each in bans if subjects[each].words <= allowed}
    wanted = content_words(text.removeprefix(_ABOUT))
    least = len(wanted) if len(wanted) <= _FEW else _ALIKE * len(wanted)
    return {each for each in left if wanted and len(wanted & subjects[each].words) >= least}


def _replaces(newer: Subject, older: Subject) -> bool:
    if newer.language and older.language:
        return newer.conditioned == older.conditioned
    if newer.words == older.words:
        return bool(newer.words)
    if not older.negative and any(given_up <= older.words for given_up in newer.gives_up):
        return True
    shared = len(newer.words & older.words)
    if shared < _FEW:
        return False
    if newer.negative != older.negative:
        contained = shared == min(len(newer.words), len(older.words))
        return contained and shared / len(newer.words | older.words) >= _ALIKE
    numbered = newer.plain != newer.words and older.plain != older.words
    return numbered and newer.plain == older.plain and len(newer.plain) >= _FEW
