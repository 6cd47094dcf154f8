"""The literals of a conversation by importance, in as few verbatim lines as hold them."""

import heapq
import math
from collections import Counter
from collections.abc import Iterable

from holdfast.model.summaries import Line
from holdfast.summary.local.concepts import content
from holdfast.text.literals import IMPORTANCE, Literal, literals
from holdfast.text.sentences import Sentence
from holdfast.text.shortening import excerpt, width_of

FACTS = 24
_USER = "User: "
"""Before what a user stated: a reader has to know it from what an assistant did."""
_WIDTH = 190
_CITATION = 40
_NAMED = 4
_DISTINCT = 4
"""The characters from which on a literal that occurs elsewhere is the same."""
_COPIED = frozenset({"url", "email", "path", "money", "ip", "error", "version", "id"})
_LEAST, _ENOUGH = 0.8, 0.15
"""A literal of less importance than that, or than this part of the highest, gets no line of its own."""


def importance(sentences: Iterable[Sentence], values: str) -> dict[str, float]:
    """How much each literal matters: who said it, with which intent, what it is, and how often it returns.

    What is among the `values` of tools is known, and an assistant mostly restates it in other words.
    """
    best: dict[str, float] = {}
    counts: Counter[str] = Counter()
    last: dict[str, int] = {}
    for sentence in sentences:
        if sentence.role == "assistant" and "question" in sentence.cues:
            continue  # it asks for a fact
        for each in sentence.literals:
            if values and _is_restated(each, sentence, values):
                continue
            if last.get(each.key) != sentence.place:
                last[each.key] = sentence.place
                counts[each.key] += 1
            worth = sentence.weight * _worth(each)
            if worth > best.get(each.key, 0.0):
                best[each.key] = worth
    return {key: worth * (1 + 0.25 * min(2.5, math.log2(counts[key]))) for key, worth in best.items()}


def facts(sentences: list[Sentence], worth: dict[str, float], told: set[str], used: set[int]) -> list[Line]:
    """Lines that hold the most important literals not told elsewhere, in the order they were said."""
    if not worth:
        return []
    enough = max(_LEAST, _ENOUGH * max(worth.values()))
    wanted = {text for text, value in worth.items() if value >= enough and text not in told}
    heap = [(-_gain(each, worth, wanted), index) for index, each in enumerate(sentences)]
    heapq.heapify(heap)
    chosen: list[tuple[Sentence, str, float]] = []
    while heap and len(chosen) < FACTS:
        gain, index = heapq.heappop(heap)
        sentence = sentences[index]
        now = -_gain(sentence, worth, wanted)
        if now >= 0:
            continue
        if now > gain and heap and now > heap[0][0]:
            heapq.heappush(heap, (now, index))
            continue
        holds = {each.text for each in sentence.literals if each.key in wanted}
        text = excerpt(sentence.text, holds, _WIDTH)
        shown = {each.key for each in literals(text)} & wanted
        chosen.append((sentence, text, -now))
        wanted -= shown or {each.key for each in sentence.literals}
        heapq.heappush(heap, (now, index))
    top = max((gain for *_, gain in chosen), default=1.0)
    used |= {id(sentence) for sentence, *_ in chosen}
    order = {id(sentence): at for at, sentence in enumerate(sentences)}
    chosen.sort(key=lambda fact: order[id(fact[0])])
    return [
        Line(f"{_USER if sentence.role == 'user' else ''}{text}", sentence.sources, round(gain / top, 3))
        for sentence, text, gain in chosen
    ]


def _is_restated(literal: Literal, sentence: Sentence, values: str) -> bool:
    if sentence.role == "assistant" and literal.kind not in _COPIED:
        return True
    bare = literal.key.strip("$€£¥")
    return len(bare) >= _DISTINCT and bare in values


def _worth(literal: Literal) -> float:
    worth = IMPORTANCE[literal.kind]
    if literal.kind == "number" and len(literal.text) == 1:
        worth *= 0.4
    return worth


def _gain(sentence: Sentence, worth: dict[str, float], wanted: set[str]) -> float:
    """What a line would add for its length. Squared, so that one that matters outweighs several that do not."""
    gain = sum(worth[key] ** 2 for key in {each.key for each in sentence.literals} if key in wanted)
    if not gain:
        return 0.0
    if len(content(sentence.words)) < _NAMED and all(each.kind == "name" for each in sentence.literals):
        return 0.0  # "Thanks, Maria!"
    telling = min(1.0, (1 + len(content(sentence.words))) / 5)
    cost = math.pow(_CITATION + min(_WIDTH, width_of(sentence.text)), 0.6)
    return telling * gain * (0.5 + 0.1 * sentence.weight) / cost
