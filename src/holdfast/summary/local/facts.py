"""Facts: the most important literals of a conversation, in as few verbatim lines as possible.

A literal is a text that a summary must copy exactly, such as an id, a path or an amount. See `text/literals`.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable

from holdfast.model.summaries import Line
from holdfast.summary.local.concepts import content_words
from holdfast.summary.sections import FACTS
from holdfast.text.literals import IMPORTANCE, Literal, find_literals
from holdfast.text.sentences import Sentence
from holdfast.text.shortening import excerpt, weighted_width

_USER_PREFIX = "User: "
"""Marks statements of users, so that a reader can distinguish them from actions of the assistant."""
_MAX_WIDTH = 190
"""The maximum width of a line's text."""
_CITATION_WIDTH = 40
"""The approximate width of the citation that follows the text."""
_MIN_WORDS_IF_ONLY_NAMES = 4
"""A sentence whose literals are all names needs this many words to be a fact."""
_MIN_MATCH_CHARS = 4
"""A shorter literal, such as 12, may occur in the values of tool results by chance."""
_ASSISTANT_KINDS = frozenset({"url", "email", "path", "money", "ip", "error", "version", "id"})
"""Kinds of literals that are facts even in the words of the assistant. It cannot put them in other words."""
_MIN_IMPORTANCE, _MIN_IMPORTANCE_SHARE = 0.8, 0.15
"""A literal needs this importance, and this share of the highest one, to get a line of its own."""


def literal_importance(sentences: Iterable[Sentence], values: str) -> dict[str, float]:
    """Return the importance of each literal by its key: from its sentence's weight, its kind and its frequency.

    `values` has the lines of tool results that the summary shows. If there are any, literals that occur in them are
    skipped, and so are most literals of the assistant, which usually restates what a tool returned.
    """
    best: dict[str, float] = {}
    message_counts: Counter[str] = Counter()
    last_message: dict[str, int] = {}
    for sentence in sentences:
        if sentence.role == "assistant" and "question" in sentence.cues:
            continue  # the assistant asks for a fact: "Is it port 5433?"
        for literal in sentence.literals:
            if values and _is_restated(literal, sentence, values):
                continue
            if last_message.get(literal.key) != sentence.message_index:
                last_message[literal.key] = sentence.message_index
                message_counts[literal.key] += 1
            importance = sentence.weight * _kind_importance(literal)
            if importance > best.get(literal.key, 0.0):
                best[literal.key] = importance
    return {key: importance * (1 + 0.25 * min(2.5, math.log2(message_counts[key]))) for key, importance in best.items()}


def select_facts(
    sentences: list[Sentence], importance: dict[str, float], shown: set[str], used: set[int]
) -> list[Line]:
    """Return lines with the most important literals, in the order of their sentences.

    `shown` has the keys of literals in other sections, which are skipped. The ids of the chosen sentences are added to
    `used`.
    """
    if not importance:
        return []
    min_importance = max(_MIN_IMPORTANCE, _MIN_IMPORTANCE_SHARE * max(importance.values()))
    wanted = {key for key, value in importance.items() if value >= min_importance and key not in shown}
    heap = [(-_gain(sentence, importance, wanted), index) for index, sentence in enumerate(sentences)]
    heapq.heapify(heap)
    chosen: list[tuple[Sentence, str, float]] = []
    while heap and len(chosen) < FACTS.max_lines:
        negated_gain, index = heapq.heappop(heap)
        sentence = sentences[index]
        gain = _gain(sentence, importance, wanted)
        if gain <= 0:
            continue
        # The gain has decreased since the sentence was put on the heap if other lines show its literals.
        if gain < -negated_gain and heap and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, index))
            continue
        wanted_texts = {literal.text for literal in sentence.literals if literal.key in wanted}
        text = excerpt(sentence.text, wanted_texts, _MAX_WIDTH)
        shown_keys = {literal.key for literal in find_literals(text)} & wanted
        chosen.append((sentence, text, gain))
        wanted -= shown_keys or {literal.key for literal in sentence.literals}
        heapq.heappush(heap, (-gain, index))  # the literals that its excerpt does not show may need another line
    max_gain = max((gain for *_, gain in chosen), default=1.0)
    used |= {id(sentence) for sentence, *_ in chosen}
    order = {id(sentence): at for at, sentence in enumerate(sentences)}
    chosen.sort(key=lambda fact: order[id(fact[0])])
    return [
        Line(f"{_USER_PREFIX if sentence.role == 'user' else ''}{text}", sentence.sources, round(gain / max_gain, 3))
        for sentence, text, gain in chosen
    ]


def _is_restated(literal: Literal, sentence: Sentence, values: str) -> bool:
    """Whether a literal probably restates a tool result."""
    if sentence.role == "assistant" and literal.kind not in _ASSISTANT_KINDS:
        return True
    without_currency = literal.key.strip("$€£¥")
    return len(without_currency) >= _MIN_MATCH_CHARS and without_currency in values


def _kind_importance(literal: Literal) -> float:
    importance = IMPORTANCE[literal.kind]
    if literal.kind == "number" and len(literal.text) == 1:
        importance *= 0.4
    return importance


def _gain(sentence: Sentence, importance: dict[str, float], wanted: set[str]) -> float:
    """Return the gain of a line per length. Squares let one important literal outweigh several minor ones."""
    keys = {literal.key for literal in sentence.literals}
    # The sum of `fsum` does not depend on the order of the set, which differs between processes.
    gain = math.fsum(importance[key] ** 2 for key in keys if key in wanted)
    if not gain:
        return 0.0
    word_count = len(content_words(sentence.words))
    if word_count < _MIN_WORDS_IF_ONLY_NAMES and all(literal.kind == "name" for literal in sentence.literals):
        return 0.0  # "Thanks, Maria!"
    clarity = min(1.0, (1 + word_count) / 5)
    cost = math.pow(_CITATION_WIDTH + min(_MAX_WIDTH, weighted_width(sentence.text)), 0.6)
    return clarity * gain * (0.5 + 0.1 * sentence.weight) / cost
