"""What a conversation is about: its words and phrases by weight."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.context.summary.sentences import Sentence

CANDIDATES = 40
_READ = 700
"""Sentences whose words are counted, the weightiest."""

_STOP = frozenset(
    "a about above after again all also am an and any are aren't as at be because been before being below between both but by"
    " can can't cannot could couldn't did didn't do does doesn't doing don't done down during each either else ever every few"
    " first for from further get gets getting give go goes going gonna good got great had has have having he her here hers him"
    " his how i i'd i'll i'm i've if in into is isn't it it's its itself just know last least let let's like look looking lot"
    " made make many may maybe me might more most much must my need needs never new next no not now of off ok okay on once one"
    " only or other our out over own per please put really right run same say see set she should so some something still such"
    " sure take than thank thanks that that's the their them then there there's these they thing things think this those"
    " through to today too try two under until up us use used using very want was way we we'll we're well were what what's"
    " when where which while who why will with without won't work would wouldn't yeah yes yet you you'd you'll you're you've"
    " your yours true false null none error tool status completed ok done hi hello hey yesterday tomorrow always back since"
    " already another find finds check checks checking unusual nothing anything someone everything understood noted fine perfect three four five both second found here's he's she's they're keep back come comes came went gone tell"
    " told said says time day help feel love nice cool awesome amazing wow totally definitely hear glad happy kind big"
    " little bit things stuff got lots started start whole around even actually able across shall whether via within".split()
)
_NEVER_INSIDE = frozenset("的了是在和与我你他她它们这那就也都还把被让给吗呢吧啊哦嗯请您么谁哪")
_NEVER_AT_EDGE = frozenset(
    "不没有很再又会能可从到要为以及或但而且并已将该此其之一两个些什怎如果因所得着过去来做先看说好等每按向于至则比对需想再最上下中里前后时"
)
_RUN = re.compile(rf"[^\W\x00-\x7f{''.join(sorted(_NEVER_INSIDE))}]{{2,}}")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*(?:['\u2019][a-z]+)?|[^\sA-Za-z]", re.ASCII)
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
    said = [index for index, sentence in enumerate(sentences) if sentence.origin in {"said", "shown"} and not sentence.routine]
    said.sort(key=lambda index: -sentences[index].weight)
    for index in sorted(said[:_READ]):
        sentence = sentences[index]
        for phrase in {*_phrases(sentence.text), *_grams(sentence.text)}:
            key = _stem(phrase)
            counts[key] += 1
            places[key].add(sentence.place)
            shown.setdefault(key, phrase)
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
                if gram[0] not in _NEVER_AT_EDGE and gram[-1] not in _NEVER_AT_EDGE:
                    found.append(gram)
    return found


def _stem(phrase: str) -> str:
    """Singular and plural, and any case, are one concept."""
    lower = phrase.lower()
    return lower[:-1] if lower.endswith("s") and not lower.endswith("ss") and len(lower) > 3 else lower  # noqa: PLR2004


def content(words: frozenset[str]) -> frozenset[str]:
    """The words that carry meaning."""
    return words - _STOP
