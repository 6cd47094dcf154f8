"""What a conversation is about: its words and phrases by weight."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.text.sentences import Sentence

CANDIDATES = 40
_READ = 700
"""Sentences whose words are counted, the weightiest."""

_STOP_WORDS = """
    agree agreed yep
    a able about above across actually after again all already also always am amazing an and another any anything
    are aren't around as at awesome back be because been before being below between big bit both but by came can
    can't cannot check checking checks come comes completed cool could couldn't day definitely did didn't do does
    doesn't doing don't done down during each either else error even ever every everything false feel few find finds
    fine first five for found four from further get gets getting give glad go goes going gone gonna good got great
    had happy has have having he he's hear hello help her here here's hers hey hi him his how i i'd i'll i'm i've if
    in into is isn't it it's its itself just keep kind know last least let let's like little look looking lot lots
    love made make many may maybe me might more most much must my need needs never new next nice no none not noted
    nothing now null of off ok okay on once one only or other our out over own per perfect please put really right
    run said same say says second see set shall she she's should since so some someone something start started
    status still stuff such sure take tell than thank thanks that that's the their them then there there's these
    they they're thing things think this those three through time to today told tomorrow too tool totally true try
    two under understood until unusual up us use used using very via want was way we we'll we're well went were what
    what's when where whether which while who whole why will with within without won't work would wouldn't wow yeah
    yes yesterday yet you you'd you'll you're you've your yours
"""
_STOP = frozenset(_STOP_WORDS.split())
_NEVER_INSIDE = frozenset("的了是在和与我你他她它们这那就也都还把被让给吗呢吧啊哦嗯请您么谁哪")
_STOP_HAN_WORDS = """
    必须 可以 没有 已经 需要 一下 时候 问题 情况 因此 目前 现在 今天 明天 开始 进行 使用 单号 然后 或者 觉得 知道 查看
"""
_STOP_HAN = frozenset(_STOP_HAN_WORDS.split())
_NEVER_AT_EDGE = frozenset(
    "不没有很再又会能可从到要为以及或但而且并已将该此其之一两个些什怎如果因所得着过去来做先看说好等每按向于至则比对需想再最上下中里前后时"
)
_RUN = re.compile(rf"[^\W\x00-\x7f{''.join(sorted(_NEVER_INSIDE))}]{{2,}}")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*(?:['\u2019][a-z]+)?|[^\sA-Za-z]", re.ASCII)
_LITERAL_KINDS = frozenset({"path", "url", "email", "id", "date", "ip", "version"})
_SHORT, _LONG = 2, 6
_PHRASE = 3
_HAN_NEEDED = 2


class Concept(NamedTuple):
    text: str
    weight: float
    place: int
    """The index of the sentence that shows it best."""


def candidates(sentences: Sequence[Sentence]) -> list[Concept]:
    """The heaviest words and phrases: said often, in several messages, but not in all of them."""
    counts: Counter[str] = Counter()
    places: defaultdict[str, set[int]] = defaultdict(set)
    shown: dict[str, str] = {}
    best: dict[str, int] = {}
    said = [
        index
        for index, sentence in enumerate(sentences)
        if sentence.origin in {"said", "shown"} and not sentence.routine
    ]
    said.sort(key=lambda index: -sentences[index].weight)
    for index in sorted(said[:_READ]):
        sentence = sentences[index]
        plain = _without_literals(sentence)
        for phrase in sorted({*_phrases(plain), *_grams(plain)}):
            key = _stem(phrase)
            counts[key] += 1
            places[key].add(sentence.place)
            if phrase.islower() or key not in shown:
                shown[key] = phrase
            if key not in best or sentence.weight > sentences[best[key]].weight:
                best[key] = index
    messages = 1 + len({sentence.place for sentence in sentences})
    weighed = [
        Concept(shown[key], _weight(key, count, len(places[key]), messages), best[key])
        for key, count in counts.items()
        if count > 1 or messages < 10  # noqa: PLR2004 - in a short talk nothing is said twice
    ]
    weighed.sort(key=lambda concept: (-concept.weight, concept.text))
    return _distinct(weighed[: 4 * CANDIDATES], counts)[:CANDIDATES]


def _without_literals(sentence: Sentence) -> str:
    """The text without paths, addresses and ids, whose parts are no concepts."""
    text = sentence.text
    for each in reversed(sentence.literals):
        if each.kind in _LITERAL_KINDS:
            text = f"{text[: each.start]}.{text[each.end :]}"
    return text


def _weight(key: str, count: int, spread: int, messages: int) -> float:
    long = math.sqrt(1 + key.count(" ")) if key.isascii() else math.sqrt(len(key) / _SHORT)
    rarity = math.log(1 + messages / spread)
    return round(math.sqrt(count * spread) * rarity * long, 4)


def _distinct(weighed: list[Concept], counts: Counter[str]) -> list[Concept]:
    """Without those that are part of a heavier one, or that only ever occur inside a longer one."""
    known = [_stem(concept.text) for concept in weighed]
    kept: list[Concept] = []
    keys: list[str] = []
    for concept in weighed:
        key = _stem(concept.text)
        if any(key != other and key in other and counts[other] >= counts[key] * 0.8 for other in known):
            continue
        if any(key in other or other in key for other in keys):
            continue
        if not key.isascii() and any(_overlap(key, other) for other in keys):
            continue
        kept.append(concept)
        keys.append(key)
    return kept


def _overlap(one: str, other: str) -> bool:
    """Whether two runs of signs are shifted views of the same words."""
    return any(one[at : at + 2] in other for at in range(len(one) - 1))


def _phrases(text: str) -> list[str]:
    found: list[str] = []
    run: list[str] = []
    for token in [*_TOKEN.findall(text), ""]:
        plain = token.lower()
        if len(plain) > 2 and plain.replace("\u2019", "'") not in _STOP:  # noqa: PLR2004 - "a", "of", a sign
            run.append(token)
        elif run:
            found += run
            for size in range(2, min(len(run), _PHRASE) + 1):
                found += [" ".join(run[at : at + size]) for at in range(len(run) - size + 1)]
            run = []
    return found


def _grams(text: str) -> list[str]:
    if text.isascii():
        return []
    found: list[str] = []
    for run in _RUN.findall(text):
        for size in range(_SHORT, _LONG + 1):
            for at in range(len(run) - size + 1):
                gram = run[at : at + size]
                if gram[0] not in _NEVER_AT_EDGE and gram[-1] not in _NEVER_AT_EDGE and gram not in _STOP_HAN:
                    found.append(gram)
    return found


def _stem(phrase: str) -> str:
    """Singular and plural, and any case, are one concept."""
    lower = phrase.lower()
    return lower[:-1] if lower.endswith("s") and not lower.endswith("ss") and len(lower) > 3 else lower  # noqa: PLR2004


def content(words: frozenset[str]) -> frozenset[str]:
    """The words that carry meaning."""
    return words - _STOP
