"""Selection of the sentences that become the lines of a summary, section by section."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.model.messages import Message
from holdfast.model.summaries import Line
from holdfast.summary.local.concepts import content_words
from holdfast.summary.local.ranking import SentenceVectors, select_diverse
from holdfast.summary.sections import DECISIONS, PENDING, REQUESTS, STEPS
from holdfast.summary.tools.call_sentences import format_open_call
from holdfast.summary.tools.pairing import ToolCall
from holdfast.text.sentences import Sentence
from holdfast.text.shortening import shorten, weighted_width

_MAX_LEAD_WIDTH, _MAX_WIDTH, MAX_STEP_WIDTH = 240, 190, 150
"""The maximum width of the first request, of other lines, and of a step."""
_LEAD_WEIGHT = 1.3
"""The weight of the first request and of the result, relative to the best line of their sections."""
_MAX_SOURCES = 3
_MIN_RULE_SHARE = 0.6
"""Share of a sentence that a rule must be to replace it."""
_MIN_RESOLVED_SHARE = 0.55
"""Share of the words of a pending item that a result must have to resolve it."""
_MIN_WORDS, _MIN_DECISION_WORDS, _MIN_PENDING_WORDS = 3, 2, 2
_OFFERS_HELP = re.compile(
    r"anything else|any other question|how can i (?:help|assist)|还有(?:什么|其他)|还需要.{0,6}吗", re.IGNORECASE
)
_ASKS_FOR_INPUT = re.compile(
    r"let me know|feel free|happy to (?:help|assist)|please (?:provide|share|confirm)|请(?:您)?(?:提供|告诉我)",
    re.IGNORECASE,
)
"""Phrases of an assistant that asks for input. An answer to them is not a pending task."""
_NOT_A_STEP = re.compile(
    r"(?:let me|i'll|i will|i am going to|looking|checking|searching|reading|understood|noted|sorry|thank|hello|hi\b"
    r"|(?:i am|i'm|i'd be) (?:happy|glad|sorry|here|ready|able)|i can (?:help|assist)"
    r"|to (?:assist|help|proceed|book|begin|start)\b"
    r"|(?:you're|you are) welcome|of course|certainly|sure\b|great\b|here (?:is|are)|feel free|if you|should you|please"
    r"|could you|would you|may i|have a |my apologies|i apologi|i understand|absolutely"
    r"|我先|让我|我来|我会|好的|查看|查询|检查|正在|明白|您好|你好|非常|抱歉|请问|请您|很高兴|感谢|祝您|如果您|如有)",
    re.IGNORECASE,
)
"""Beginnings of greetings, offers of help, polite phrases and announcements. None of them reports an action."""
# Chinese punctuation. No space follows it.
_WIDE_ENDS = ("。", "\uff01", "\uff1f", "\uff1b")
_MAX_CALLS_PER_TOOL, _MAX_CALLS = 2, 5
"""How many tool calls may be steps."""
MAX_OPEN_CALLS = 500
_OPEN_CALL_WEIGHT = 1.2
"""The weight of an open call: higher than of any other pending item."""
_MIN_STEP_SHARE = 0.3
"""A step with less than this share of the best step's weight is dropped."""


@dataclass(slots=True)
class Selection:
    """The sentences of a conversation, and those that are already used, so that no sentence is shown twice."""

    sentences: list[Sentence]
    vectors: SentenceVectors
    last_index: int
    """The index of the last message."""
    used: set[int] = field(default_factory=set)
    """The `id()` of each sentence that is used."""
    rules: set[int] = field(default_factory=set)
    """The `id()` of each sentence that is shown as a rule."""
    by_text: dict[str, list[Sentence]] = field(default_factory=dict)
    order: dict[int, int] = field(default_factory=dict)
    """The position of each sentence by its `id()`."""

    def __post_init__(self) -> None:
        for position, sentence in enumerate(self.sentences):
            self.by_text.setdefault(sentence.text, []).append(sentence)
            self.order[id(sentence)] = position

    def unused(self) -> list[Sentence]:
        return [sentence for sentence in self.sentences if id(sentence) not in self.used]

    def mark_rules(self, rules: Sequence[Line]) -> None:
        """Mark the sentences that consist mostly of a rule as used. A question around a rule stays unused."""
        texts: dict[int, list[str]] = {}
        for seq, text in {(line.sources[0], line.text) for line in rules if line.sources}:
            texts.setdefault(seq, []).append(text)
        for sentence in self.sentences:
            rule_texts = texts.get(sentence.sources[0], ()) if sentence.role == "user" else ()
            if any(text in sentence.text and len(text) >= _MIN_RULE_SHARE * len(sentence.text) for text in rule_texts):
                self.rules.add(id(sentence))
        self.used |= self.rules

    def to_lines(self, chosen: Sequence[tuple[Sentence, float]], width: int) -> list[Line]:
        """Mark sentences as used and return them as lines in their order.

        A line also cites the messages that repeat its sentence. If many sentences differ only in literals, a line
        of theirs shows how many there are.
        """
        max_weight = max((weight for _, weight in chosen), default=1.0) or 1.0
        lines: list[Line] = []
        for sentence, weight in sorted(chosen, key=lambda pair: self.order[id(pair[0])]):
            self.used.add(id(sentence))
            sources = list(sentence.sources)
            for other in self.by_text[sentence.text]:
                self.used.add(id(other))
                if len(sources) < _MAX_SOURCES:
                    sources += [seq for seq in other.sources if seq not in sources]
            text = shorten(sentence.text, width)
            if sentence.occurrences > 1:
                text = f"{text} (×{sentence.occurrences})"  # noqa: RUF001 - a multiplication sign, not an x
            lines.append(Line(text, sources, round(weight / max_weight, 3)))
        return lines

    def recency(self, sentence: Sentence) -> float:
        return sentence.message_index / self.last_index if self.last_index else 1.0


def is_meaningful(sentence: Sentence, min_words: int = _MIN_WORDS) -> bool:
    """Return whether a sentence is clear without its context: "Yes, do that." is not."""
    has_literal = any(literal.kind != "name" for literal in sentence.literals)
    return len(content_words(sentence.words)) >= min_words - has_literal


def select_decisions(selection: Selection) -> list[Line]:
    candidates = [
        (
            sentence,
            (1.0 + 0.4 * (sentence.role == "user") + 0.3 * bool(sentence.literals)) * (0.6 + 0.4 * sentence.centrality),
        )
        for sentence in selection.unused()
        if "decision" in sentence.cues
        and sentence.origin == "prose"
        and sentence.role in {"user", "assistant"}
        and not sentence.is_common
        and not (sentence.role == "assistant" and "request" in sentence.cues)
        and is_meaningful(sentence, _MIN_DECISION_WORDS)
    ]
    return selection.to_lines(select_diverse(candidates, DECISIONS.max_lines, selection.vectors), _MAX_WIDTH)


def select_requests(selection: Selection) -> list[Line]:
    """Return the sentences of the first meaningful request as one line, then the most central other requests."""
    by_user = [
        sentence
        for sentence in selection.sentences
        if sentence.role == "user" and sentence.origin == "prose" and not sentence.is_routine
    ]
    by_user = [sentence for sentence in by_user if id(sentence) not in selection.rules] or by_user
    first = next((sentence for sentence in by_user if is_meaningful(sentence, _MIN_DECISION_WORDS)), None)
    if first is None:
        return selection.to_lines([(sentence, 1.0) for sentence in by_user[:1]], _MAX_WIDTH)
    opening = [
        sentence
        for sentence in by_user
        if sentence.message_index == first.message_index and (is_meaningful(sentence) or "request" in sentence.cues)
    ]
    # A rule is shown as a rule. Only a request that is itself a rule is shown as both.
    opening = [sentence for sentence in opening if id(sentence) not in selection.used] or [first]
    requests = [sentence for sentence in by_user if "request" in sentence.cues and is_meaningful(sentence)]
    lead = _fit_sentences(opening, _MAX_LEAD_WIDTH)
    selection.used |= {id(sentence) for sentence in lead}
    candidates = [
        (
            sentence,
            (0.5 + 0.5 * sentence.centrality)
            * (1.0 if "question" not in sentence.cues else 0.8)
            * _length_weight(sentence),
        )
        for sentence in requests
        if id(sentence) not in selection.used
    ]
    text = "".join(_with_space(shorten(sentence.text, _MAX_LEAD_WIDTH)) for sentence in lead).strip()
    others = select_diverse(candidates, REQUESTS.max_lines - 1, selection.vectors)
    return [Line(text, first.sources, _LEAD_WEIGHT), *selection.to_lines(others, _MAX_WIDTH)]


def _with_space(text: str) -> str:
    return text if text.endswith(_WIDE_ENDS) else f"{text} "


def _fit_sentences(sentences: Sequence[Sentence], width: int) -> list[Sentence]:
    """Return the first request, and as many of the other sentences from the first on as fit `width` with it."""
    request = next((sentence for sentence in sentences if "request" in sentence.cues), sentences[0])
    left = width - weighted_width(request.text)
    chosen = [request]
    for sentence in sentences:
        if sentence is not request and weighted_width(sentence.text) < left:
            left -= weighted_width(sentence.text)
            chosen.append(sentence)
    return [sentence for sentence in sentences if sentence in chosen]


def open_call_lines(calls: Sequence[ToolCall], messages: Sequence[Message]) -> list[Line]:
    """Return a line for each open call, the newest ones if there are very many. An agent repeats a forgotten call."""
    open_calls = [call for call in calls if call.is_open][-MAX_OPEN_CALLS:]
    return [
        Line(format_open_call(call), [messages[call.message_index].seq], _OPEN_CALL_WEIGHT, call.key)
        for call in open_calls
    ]


def select_pending(selection: Selection) -> list[Line]:
    """Return the open items that no later result resolves, and the requests of the last message."""
    candidates: list[tuple[Sentence, float]] = []
    results = [
        sentence
        for sentence in selection.sentences
        if "result" in sentence.cues and sentence.origin in {"prose", "call"} and sentence.role != "user"
    ]
    for sentence in selection.unused():
        if "pending" not in sentence.cues or sentence.origin != "prose":
            continue
        if sentence.role == "assistant" and (
            _OFFERS_HELP.search(sentence.text) or _ASKS_FOR_INPUT.search(sentence.text)
        ):
            continue
        if is_meaningful(sentence, _MIN_PENDING_WORDS) and not _is_request(sentence):
            is_done = any(
                later.message_index > sentence.message_index and resolves(later.words, sentence.words)
                for later in results
            )
            if not is_done:
                weight = 0.4 + 0.6 * selection.recency(sentence) + 0.2 * (sentence.role == "user")
                candidates.append((sentence, weight))
    candidates += [(sentence, 1.1) for sentence in unanswered_requests(selection) if id(sentence) not in selection.used]
    return selection.to_lines(select_diverse(candidates, PENDING.max_lines, selection.vectors), _MAX_WIDTH)


def _is_request(sentence: Sentence) -> bool:
    """Return whether a sentence asks for something at once, so that the messages after it are the answer."""
    return "question" in sentence.cues or (sentence.role == "user" and "request" in sentence.cues)


def unanswered_requests(selection: Selection) -> list[Sentence]:
    """Return the requests and questions of the last message: of a user both, of others only questions."""
    closing = [
        sentence
        for sentence in selection.sentences
        if sentence.message_index == selection.last_index and sentence.origin == "prose"
    ]
    if not closing:
        return []
    wanted = {"request", "question"} if closing[0].role == "user" else {"question"}
    return [
        sentence
        for sentence in closing
        if sentence.cues & wanted and is_meaningful(sentence, 1) and not _OFFERS_HELP.search(sentence.text)
    ][:3]


def resolves(result_words: frozenset[str], pending_words: frozenset[str]) -> bool:
    """Return whether a result has most of the words of a pending item."""
    wanted = content_words(pending_words)
    return len(wanted) >= _MIN_WORDS and len(wanted & result_words) / len(wanted) >= _MIN_RESOLVED_SHARE


def select_steps(selection: Selection, result: Sentence | None) -> list[Line]:
    """Return the actions of the conversation in order. The `result` has the highest weight."""
    candidates: list[tuple[Sentence, float]] = []
    for sentence in selection.unused():
        if (
            sentence.role in {"user", "system"}
            or sentence.is_routine
            or sentence.origin in {"output", "code", "image", "open_call"}
            or "question" in sentence.cues
        ):
            continue
        weight = 0.5 + 0.5 * sentence.centrality
        if sentence.origin == "prose":
            if not is_meaningful(sentence) or _NOT_A_STEP.match(sentence.text):
                continue
            if sentence.is_common:
                weight *= 0.4
            weight *= (
                1.0
                + 0.6 * ("result" in sentence.cues)
                + 0.3 * ("error" in sentence.cues)
                + 0.3 * selection.recency(sentence)
            )
        else:
            weight *= 1.3 if sentence.origin == "failed_call" else 0.8
        candidates.append((sentence, weight * _length_weight(sentence)))
    chosen = select_diverse(_limit_calls(candidates), STEPS.max_lines, selection.vectors, penalty=0.8)
    min_weight = _MIN_STEP_SHARE * max((weight for _, weight in chosen), default=0.0)
    chosen = [pair for pair in chosen if pair[1] >= min_weight]
    if result is not None:
        chosen.append((result, _LEAD_WEIGHT * max((weight for _, weight in chosen), default=1.0)))
    return selection.to_lines(chosen, MAX_STEP_WIDTH)


def _limit_calls(candidates: Sequence[tuple[Sentence, float]]) -> list[tuple[Sentence, float]]:
    """Return the prose, and the best calls of each tool. Calls of a tool that is called often lose weight."""
    kept = [pair for pair in candidates if pair[0].origin == "prose"]
    calls = [
        (sentence.text.partition("(")[0], sentence, weight)
        for sentence, weight in candidates
        if sentence.origin != "prose"
    ]
    counts = Counter(name for name, *_ in calls)
    weighed = [(name, sentence, weight / counts[name] ** 0.4) for name, sentence, weight in calls]
    taken: Counter[str] = Counter()
    for name, sentence, weight in sorted(weighed, key=lambda call: (-call[2], call[1].message_index)):
        if taken[name] < _MAX_CALLS_PER_TOOL and taken.total() < _MAX_CALLS:
            taken[name] += 1
            kept.append((sentence, weight))
    return kept


def _length_weight(sentence: Sentence) -> float:
    """Return a factor that lowers the weight of very short and of very long sentences."""
    width = weighted_width(sentence.text)
    return min(1.0, width / 40) * (1.0 if width <= _MAX_WIDTH else 0.8)


def select_result(selection: Selection) -> Sentence | None:
    """Return the latest important result in the assistant's words, or else the last tool call. Mark it as used."""
    candidates = [
        (
            sentence,
            (
                1
                + ("result" in sentence.cues)
                + 2.5 * selection.recency(sentence)
                + sentence.centrality
                + 0.5 * bool(sentence.literals)
            ),
        )
        for sentence in selection.unused()
        if sentence.origin == "prose"
        and sentence.role == "assistant"
        and not sentence.is_common
        and not sentence.cues & {"pending", "question"}
        and is_meaningful(sentence)
        and not _NOT_A_STEP.match(sentence.text)
    ]
    if not candidates:
        candidates = [
            (sentence, selection.recency(sentence))
            for sentence in selection.unused()
            if sentence.origin in {"call", "failed_call"}
        ]
    if not candidates:
        return None
    best = max(candidates, key=lambda pair: (pair[1] * _length_weight(pair[0]), pair[0].message_index))[0]
    selection.used.add(id(best))
    return best
