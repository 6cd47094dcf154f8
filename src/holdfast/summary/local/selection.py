"""Which sentences become the lines of a summary, kind by kind."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.model.messages import Message
from holdfast.model.summaries import Line
from holdfast.summary.local.concepts import content
from holdfast.summary.local.ranking import Space, spread
from holdfast.summary.tools.call_sentences import open_call
from holdfast.summary.tools.pairing import ToolCall
from holdfast.text.sentences import Sentence
from holdfast.text.shortening import shorten, width_of

DECISIONS, REQUESTS, PENDING, STEPS = 7, 6, 7, 10
_LEAD_WIDTH, _WIDTH, STEP_WIDTH = 240, 190, 150
_LEADING = 1.3
"""The weight of the line that says what it was all about."""
_SOURCES = 3
_SAME_SENTENCE = 0.6
"""The part of a sentence that a rule must be to stand for all of it."""
_RESOLVED = 0.55
_MEANINGFUL, _RULED, _OPEN_WORDS = 3, 2, 2
_POLITE = re.compile(
    r"anything else|any other question|how can i (?:help|assist)|还有(?:什么|其他)|还需要.{0,6}吗", re.IGNORECASE
)
_FOR_INPUT = re.compile(
    r"let me know|feel free|happy to (?:help|assist)|please (?:provide|share|confirm)|请(?:您)?(?:提供|告诉我)",
    re.IGNORECASE,
)
"""How an assistant asks for input: to answer is no task."""
_ANNOUNCEMENT = re.compile(
    r"(?:let me|i'll|i will|i am going to|looking|checking|searching|reading|understood|noted|sorry|thank|hello|hi\b"
    r"|(?:i am|i'm|i'd be) (?:happy|glad|sorry|here|ready|able)|i can (?:help|assist)"
    r"|to (?:assist|help|proceed|book|begin|start)\b"
    r"|(?:you're|you are) welcome|of course|certainly|sure\b|great\b|here (?:is|are)|feel free|if you|should you|please"
    r"|could you|would you|may i|have a |my apologies|i apologi|i understand|absolutely"
    r"|我先|让我|我来|我会|好的|查看|查询|检查|正在|明白|您好|你好|非常|抱歉|请问|请您|很高兴|感谢|祝您|如果您|如有)",
    re.IGNORECASE,
)
"""How greetings, offers of help, polite phrases and announcements begin: none of them is something that was done."""
_WIDE_ENDS = ("。", "\uff01", "\uff1f", "\uff1b")
_CALLS_OF_A_TOOL, _CALLS = 2, 5
OPEN_CALLS = 500
_OPEN_CALL = 1.2
"""The weight of a call without a result: more than of anything else that is open."""
_LEAST = 0.3
"""A step of less than this part of the best is none."""


@dataclass(slots=True)
class Choice:
    """Sentences already used, so that none is told twice."""

    sentences: list[Sentence]
    space: Space
    last: int
    used: set[int] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)
    """Those that are shown as rules."""
    again: dict[str, list[Sentence]] = field(default_factory=dict)

    order: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for at, each in enumerate(self.sentences):
            self.again.setdefault(each.text, []).append(each)
            self.order[id(each)] = at

    def free(self) -> list[Sentence]:
        return [each for each in self.sentences if id(each) not in self.used]

    def use(self, rules: Sequence[Line]) -> None:
        """Take the sentences that are shown as rules out of the choice. A question around a rule is still one."""
        given = {(line.sources[0], line.text) for line in rules if line.sources}
        texts: dict[int, list[str]] = {}
        for seq, text in given:
            texts.setdefault(seq, []).append(text)
        for each in self.sentences:
            around = texts.get(each.sources[0], ()) if each.role == "user" else ()
            if any(text in each.text and len(text) >= _SAME_SENTENCE * len(each.text) for text in around):
                self.rules.add(id(each))
        self.used |= self.rules

    def lines(self, chosen: Sequence[tuple[Sentence, float]], width: int, *, alike: bool = True) -> list[Line]:
        """The chosen as lines, in the order they were said; each also cites the messages that say the same.

        With `alike`, one stands for all of its shape and tells how many there were.
        """
        top = max((weight for _, weight in chosen), default=1.0) or 1.0
        found: list[Line] = []
        for sentence, weight in sorted(chosen, key=lambda pair: self.order[id(pair[0])]):
            self.used.add(id(sentence))
            sources = list(sentence.sources)
            for other in self.again[sentence.text]:
                self.used.add(id(other))
                if len(sources) < _SOURCES:
                    sources += [seq for seq in other.sources if seq not in sources]
            text = shorten(sentence.text, width)
            if alike and sentence.times > 1:
                text = f"{text} (×{sentence.times})"  # noqa: RUF001 - times, not an x
            found.append(Line(text, sources, round(weight / top, 3)))
        return found

    def recency(self, sentence: Sentence) -> float:
        return sentence.place / self.last if self.last else 1.0


def meaningful(sentence: Sentence, words: int = _MEANINGFUL) -> bool:
    """Whether a sentence says something on its own: "Yes, do that." does not."""
    return len(content(sentence.words)) >= words - any(each.kind != "name" for each in sentence.literals)


def decisions(choice: Choice) -> list[Line]:
    found = [
        (each, (1.0 + 0.4 * (each.role == "user") + 0.3 * bool(each.literals)) * (0.6 + 0.4 * each.centrality))
        for each in choice.free()
        if "decision" in each.cues
        and each.origin == "said"
        and each.role in {"user", "assistant"}
        and not each.common
        and not (each.role == "assistant" and "request" in each.cues)
        and meaningful(each, _RULED)
    ]
    return choice.lines(spread(found, DECISIONS, choice.space), _WIDTH)


def requests(choice: Choice) -> list[Line]:
    """The first message of weight leads with its own words, then the requests near the heart of the conversation."""
    asked = [each for each in choice.sentences if each.role == "user" and each.origin == "said" and not each.routine]
    asked = [each for each in asked if id(each) not in choice.rules] or asked
    first = next((each for each in asked if meaningful(each, _RULED)), None)
    if first is None:
        return choice.lines([(each, 1.0) for each in asked[:1]], _WIDTH)
    opening = [each for each in asked if each.place == first.place and (meaningful(each) or "request" in each.cues)]
    # A rule is told as a rule; only where the request itself is one is it told as both.
    opening = [each for each in opening if id(each) not in choice.used] or [first]
    telling = [each for each in asked if "request" in each.cues and meaningful(each)]
    lead = _joined(opening, _LEAD_WIDTH)
    choice.used |= {id(each) for each in lead}
    rest = [
        (each, (0.5 + 0.5 * each.centrality) * (1.0 if "question" not in each.cues else 0.8) * _length(each))
        for each in telling
        if id(each) not in choice.used
    ]
    told = "".join(_spaced(shorten(each.text, _LEAD_WIDTH)) for each in lead).strip()
    spoken = Line(told, first.sources, _LEADING)
    return [spoken, *choice.lines(spread(rest, REQUESTS - 1, choice.space), _WIDTH)]


def _spaced(text: str) -> str:
    return text if text.endswith(_WIDE_ENDS) else f"{text} "


def _joined(sentences: Sequence[Sentence], width: int) -> list[Sentence]:
    """As many sentences from the first on as the width holds; the first request among them always."""
    asking = next((each for each in sentences if "request" in each.cues), sentences[0])
    left = width - width_of(asking.text)
    chosen = [asking]
    for each in sentences:
        if each is not asking and width_of(each.text) < left:
            left -= width_of(each.text)
            chosen.append(each)
    return [each for each in sentences if each in chosen]


def open_calls(calls: Sequence[ToolCall], messages: Sequence[Message]) -> list[Line]:
    """Every call without a result, the newest of very many: an agent that forgets one makes it again."""
    waiting = [call for call in calls if call.is_open][-OPEN_CALLS:]
    return [Line(open_call(call), [messages[call.place].seq], _OPEN_CALL, call.key) for call in waiting]


def pending(choice: Choice) -> list[Line]:
    """What was said to be open and not said to be done later; and what was left without an answer."""
    found: list[tuple[Sentence, float]] = []
    results = [
        each
        for each in choice.sentences
        if "result" in each.cues and each.origin in {"said", "call"} and each.role != "user"
    ]
    for each in choice.free():
        if each.role == "assistant" and (_POLITE.search(each.text) or _FOR_INPUT.search(each.text)):
            continue
        if "pending" in each.cues and each.origin == "said" and meaningful(each, _OPEN_WORDS) and not _asks(each):
            done = any(later.place > each.place and resolves(later.words, each.words) for later in results)
            if not done:
                found.append((each, 0.4 + 0.6 * choice.recency(each) + 0.2 * (each.role == "user")))
    found += [(each, 1.1) for each in unanswered(choice) if id(each) not in choice.used]
    return choice.lines(spread(found, PENDING, choice.space), _WIDTH)


def _asks(sentence: Sentence) -> bool:
    """Whether it asks for something now, which the messages after it answered."""
    return "question" in sentence.cues or (sentence.role == "user" and "request" in sentence.cues)


def unanswered(choice: Choice) -> list[Sentence]:
    """The requests and questions of the last message, whoever spoke."""
    closing = [each for each in choice.sentences if each.place == choice.last and each.origin == "said"]
    if not closing:
        return []
    wanted = {"request", "question"} if closing[0].role == "user" else {"question"}
    return [each for each in closing if each.cues & wanted and meaningful(each, 1) and not _POLITE.search(each.text)][
        :3
    ]


def resolves(later: frozenset[str], open_: frozenset[str]) -> bool:
    """Whether a result speaks of the same things as an open item."""
    wanted = content(open_)
    return len(wanted) >= _MEANINGFUL and len(wanted & later) / len(wanted) >= _RESOLVED


def steps(choice: Choice, outcome: Sentence | None) -> list[Line]:
    """What was done, in the order it was done. What came of it all is the step that matters most."""
    found: list[tuple[Sentence, float]] = []
    for each in choice.free():
        if (
            each.role in {"user", "system"}
            or each.routine
            or each.origin in {"output", "code", "shown", "open"}
            or "question" in each.cues
        ):
            continue
        weight = 0.5 + 0.5 * each.centrality
        if each.origin == "said":
            if not meaningful(each) or _ANNOUNCEMENT.match(each.text):
                continue
            if each.common:
                weight *= 0.4
            weight *= 1.0 + 0.6 * ("result" in each.cues) + 0.3 * ("error" in each.cues) + 0.3 * choice.recency(each)
        else:
            weight *= 1.3 if each.origin == "failure" else 0.8
        found.append((each, weight * _length(each)))
    chosen = spread(_varied(found), STEPS, choice.space, against=0.8)
    least = _LEAST * max((weight for _, weight in chosen), default=0.0)
    chosen = [pair for pair in chosen if pair[1] >= least]
    if outcome is not None:
        chosen.append((outcome, _LEADING * max((weight for _, weight in chosen), default=1.0)))
    return choice.lines(chosen, STEP_WIDTH)


def _varied(found: Sequence[tuple[Sentence, float]]) -> list[tuple[Sentence, float]]:
    """Of each tool only the best calls, those of rare tools before others: a log read twenty times is one step."""
    kept = [pair for pair in found if pair[0].origin == "said"]
    calls = [(each.text.partition("(")[0], each, weight) for each, weight in found if each.origin != "said"]
    counts = Counter(name for name, *_ in calls)
    weighed = [(name, each, weight / counts[name] ** 0.4) for name, each, weight in calls]
    taken: Counter[str] = Counter()
    for name, each, weight in sorted(weighed, key=lambda call: (-call[2], call[1].place)):
        if taken[name] < _CALLS_OF_A_TOOL and taken.total() < _CALLS:
            taken[name] += 1
            kept.append((each, weight))
    return kept


def _length(sentence: Sentence) -> float:
    """Neither a greeting nor a page."""
    width = width_of(sentence.text)
    return min(1.0, width / 40) * (1.0 if width <= _WIDTH else 0.8)


def outcome(choice: Choice) -> Sentence | None:
    """The latest result of weight in the assistant's words, or the last thing that a tool did; not used from now on."""
    found = [
        (each, (1 + ("result" in each.cues) + 2.5 * choice.recency(each) + each.centrality + 0.5 * bool(each.literals)))
        for each in choice.free()
        if each.origin == "said"
        and each.role == "assistant"
        and not each.common
        and not each.cues & {"pending", "question"}
        and meaningful(each)
        and not _ANNOUNCEMENT.match(each.text)
    ]
    if not found:
        found = [(each, choice.recency(each)) for each in choice.free() if each.origin in {"call", "failure"}]
    if not found:
        return None
    best = max(found, key=lambda pair: (pair[1] * _length(pair[0]), pair[0].place))[0]
    choice.used.add(id(best))
    return best
