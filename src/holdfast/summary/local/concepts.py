"""Concepts of a conversation: its most important words and phrases."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.text.sentences import Sentence

MAX_CANDIDATES = 40
_MAX_SENTENCES = 700
"""How many sentences are read: those with the highest weight."""

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
# Chinese function words, such as 的 ("of") and 我 ("I"). A concept contains none of them.
_NEVER_IN_CONCEPT = frozenset("的了是在和与我你他她它们这那就也都还把被让给吗呢吧啊哦嗯请您么谁哪")
_CHINESE_STOP_WORDS = """
    必须 可以 没有 已经 需要 一下 时候 问题 情况 因此 目前 现在 今天 明天 开始 进行 使用 单号 然后 或者 觉得 知道 查看
"""
_CHINESE_STOP = frozenset(_CHINESE_STOP_WORDS.split())
# Chinese characters with which no concept begins or ends, such as 不 ("not") and 再 ("again").
_NEVER_AT_EDGE = frozenset(
    "不没有很再又会能可从到要为以及或但而且并已将该此其之一两个些什怎如果因所得着过去来做先看说好等每按向于至则比对需想再最上下中里前后时"
)
# All scripts other than ASCII, so the ranges of `text.scripts` do not apply.
_NON_ASCII_RUN = re.compile(rf"[^\W\x00-\x7f{''.join(sorted(_NEVER_IN_CONCEPT))}]{{2,}}")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*(?:['\u2019][a-z]+)?|[^\sA-Za-z]", re.ASCII)
_LITERAL_KINDS = frozenset({"path", "url", "email", "id", "date", "ip", "version"})
"""Literals that are not concepts and contain none."""
_MIN_GRAM_CHARS, _MAX_GRAM_CHARS = 2, 6
"""The length of a possible word in a script without spaces."""
_MAX_PHRASE_WORDS = 3
_LONG_CONVERSATION = 10
"""From this many messages a concept must occur twice. A short conversation repeats little."""


class Concept(NamedTuple):
    text: str
    weight: float
    sentence_index: int
    """The sentence with the highest weight that contains it."""


def find_concepts(sentences: Sequence[Sentence]) -> list[Concept]:
    """Return the words and phrases with the highest weight: frequent, in several messages, but not in all of them."""
    counts: Counter[str] = Counter()
    messages_by_key: defaultdict[str, set[int]] = defaultdict(set)
    spellings: dict[str, str] = {}
    best_sentence: dict[str, int] = {}
    prose = [
        index
        for index, sentence in enumerate(sentences)
        if sentence.origin in {"prose", "image"} and not sentence.is_routine
    ]
    prose.sort(key=lambda index: -sentences[index].weight)
    phrases_by_sentence: dict[int, list[tuple[str, str]]] = {}
    for index in sorted(prose[:_MAX_SENTENCES]):
        text = _without_literals(sentences[index])
        phrases = sorted({*_phrases(text), *_grams(text)})
        keys = list(map(_stem, phrases))
        counts.update(keys)
        phrases_by_sentence[index] = list(zip(phrases, keys, strict=True))
    message_count = 1 + len({sentence.message_index for sentence in sentences})
    min_count = 1 if message_count < _LONG_CONVERSATION else 2
    for index, keyed_phrases in phrases_by_sentence.items():
        sentence = sentences[index]
        for phrase, key in keyed_phrases:
            if counts[key] < min_count:  # most phrases of a long conversation; the rest of the loop is slow
                continue
            messages_by_key[key].add(sentence.message_index)
            if phrase.islower() or key not in spellings:
                spellings[key] = phrase
            if key not in best_sentence or sentence.weight > sentences[best_sentence[key]].weight:
                best_sentence[key] = index
    concepts = [
        Concept(spellings[key], _weight(key, count, len(messages_by_key[key]), message_count), best_sentence[key])
        for key, count in counts.items()
        if count >= min_count
    ]
    concepts.sort(key=lambda concept: (-concept.weight, concept.text))
    return _drop_overlapping(concepts[: 4 * MAX_CANDIDATES], counts)[:MAX_CANDIDATES]


def _without_literals(sentence: Sentence) -> str:
    """Return the text without paths, addresses and ids, because their parts are not concepts."""
    text = sentence.text
    for literal in reversed(sentence.literals):
        if literal.kind in _LITERAL_KINDS:
            text = f"{text[: literal.start]}.{text[literal.end :]}"
    return text


def _weight(key: str, count: int, messages_with_key: int, message_count: int) -> float:
    length = math.sqrt(1 + key.count(" ")) if key.isascii() else math.sqrt(len(key) / _MIN_GRAM_CHARS)
    rarity = math.log(1 + message_count / messages_with_key)
    return round(math.sqrt(count * messages_with_key) * rarity * length, 4)


def _drop_overlapping(concepts: list[Concept], counts: Counter[str]) -> list[Concept]:
    """Drop concepts that overlap with one of higher weight, or that occur mostly inside a longer one."""
    all_keys = [_stem(concept.text) for concept in concepts]
    joined_keys = "\n".join(all_keys)
    kept: list[Concept] = []
    kept_keys: list[str] = []
    for concept in concepts:
        key = _stem(concept.text)
        can_be_contained = joined_keys.count(key) > 1  # one occurrence is the key itself
        if can_be_contained and any(
            key != other and key in other and counts[other] >= counts[key] * 0.8 for other in all_keys
        ):
            continue
        if any(key in other or other in key for other in kept_keys):
            continue
        if not key.isascii() and any(_share_pair(key, other) for other in kept_keys):
            continue
        kept.append(concept)
        kept_keys.append(key)
    return kept


def _share_pair(one: str, other: str) -> bool:
    """Return whether two runs of characters have two adjacent ones in common, so that they are parts of one word."""
    return any(one[at : at + 2] in other for at in range(len(one) - 1))


def _phrases(text: str) -> list[str]:
    """Return the words of a text that are not stop words, and phrases of adjacent ones."""
    phrases: list[str] = []
    run: list[str] = []
    for token in [*_TOKEN.findall(text), ""]:
        lower = token.lower()
        if len(lower) > 2 and lower.replace("\u2019", "'") not in _STOP:  # noqa: PLR2004 - "a", "of", punctuation
            run.append(token)
        elif run:
            phrases += run
            for size in range(2, min(len(run), _MAX_PHRASE_WORDS) + 1):
                phrases += [" ".join(run[at : at + size]) for at in range(len(run) - size + 1)]
            run = []
    return phrases


def _grams(text: str) -> list[str]:
    """Return the short runs of characters that can be words in a script without spaces."""
    if text.isascii():
        return []
    grams: list[str] = []
    for run in _NON_ASCII_RUN.findall(text):
        for size in range(_MIN_GRAM_CHARS, _MAX_GRAM_CHARS + 1):
            for at in range(len(run) - size + 1):
                gram = run[at : at + size]
                if gram[0] not in _NEVER_AT_EDGE and gram[-1] not in _NEVER_AT_EDGE and gram not in _CHINESE_STOP:
                    grams.append(gram)
    return grams


def _stem(phrase: str) -> str:
    """Return the key of a phrase: lower case, singular."""
    lower = phrase.lower()
    return lower[:-1] if lower.endswith("s") and not lower.endswith("ss") and len(lower) > 3 else lower  # noqa: PLR2004


def content_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words without English stop words."""
    return words - _STOP
