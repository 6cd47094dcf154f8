"""From messages to the sentences that a summary is chosen from."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from holdfast.model.messages import Message
from holdfast.model.parts import ImagePart, ProviderPart, TextPart
from holdfast.model.summaries import Language
from holdfast.summary.local.cues import cues_of
from holdfast.summary.tools.call_sentences import sentences_of
from holdfast.summary.tools.pairing import ToolCall
from holdfast.summary.tools.values import sources_of
from holdfast.text.literals import literals
from holdfast.text.sentences import Piece, Sentence, bounded, flat, split, words_of

_STRIDE = 32
"""Sentences that are looked at before other threads may run."""
_SENTENCES, _PRINTED, _OF_A_TOOL, _SAID = 4_000, 12, 150, 400
"""Lines of code and output that are looked at in one stretch, at least in a message, and at most of a tool without an
alarm; and sentences at most in a message."""
_MACHINES = frozenset({"output", "code"})
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LATIN = re.compile(r"[A-Za-z]+")
_HAN_PER_LATIN_WORD = 0.7

_ROLE = {"user": 3.0, "assistant": 2.0, "system": 1.0, "tool": 0.8}
_ORIGIN = {"said": 1.0, "code": 0.25, "call": 0.5, "open": 0.5, "output": 0.3, "failure": 1.0, "shown": 0.3}
_BOOST = {
    "decision": 1.2,
    "result": 1.0,
    "error": 0.9,
    "request": 0.6,
    "pending": 0.7,
    "blocked": 0.6,
}
_FAILURE = 1.6
_TELLING = 7
_ROUTINE = 4
"""So many sentences of one shape are routine."""
_ANNOUNCES = (":", "\uff1a")
_INHERITED = frozenset({"pending", "decision"})
_NO_CUES: frozenset[str] = frozenset()
_ALARM = re.compile(
    r"[Ee]rror|ERROR|[Ff]ail|FAIL|[Ee]xception|[Tt]imeout|denied|refused|success|错|失败|异常|超时|成功|完成"
)
_KEPT_FROM_MACHINES = frozenset({"error", "result"})


class Sentences(list[Sentence]):
    """Sentences that let other threads run, however often they are gone through."""

    def __init__(self, yield_cpu: Callable[[], None]) -> None:
        super().__init__()
        self._yield_cpu = yield_cpu

    def __iter__(self) -> Iterator[Sentence]:
        for number, sentence in enumerate(super().__iter__()):
            if number % _STRIDE == 0:
                self._yield_cpu()
            yield sentence


def read(messages: Sequence[Message], calls: Sequence[ToolCall], yield_cpu: Callable[[], None]) -> Sentences:
    """Every sentence with its words, literals, cues and a first weight; one said again is there once per message.

    A call and its result are read together, where the call was made.
    """
    found = Sentences(yield_cpu)
    room = max(_PRINTED, _SENTENCES // max(1, len(messages)))
    printed: Counter[str] = Counter()
    made: defaultdict[int, list[ToolCall]] = defaultdict(list)
    for call in calls:
        made[call.place].append(call)
    for place, message in enumerate(messages):
        above = _NO_CUES
        spoken = ((piece, [message.seq]) for piece in _pieces(message))
        called = ((piece, sources_of(call, messages)) for call in made[place] for piece in sentences_of(call))
        for piece, sources in _within(chain(spoken, called), room, printed):
            sentence = _sentence(piece, place, message, sources, above if piece.listed else _NO_CUES)
            if not piece.listed:
                above = sentence.cues & _INHERITED if piece.text.endswith(_ANNOUNCES) else _NO_CUES
            found.append(sentence)
            yield_cpu()
    _discount_routine(found)
    return found


def _within(
    pieces: Iterable[tuple[Piece, list[int]]], room: int, printed: Counter[str]
) -> Iterator[tuple[Piece, list[int]]]:
    """Each piece of a message once, and of what machines printed only so much: of a message, and of a tool in all."""
    seen: set[str] = set()
    for piece, sources in pieces:
        if len(seen) >= _SAID:
            return
        if piece.text in seen:
            continue
        if piece.origin in _MACHINES:
            room -= 1
            tool = piece.text.partition(":")[0] if piece.origin == "output" else ""
            printed[tool] += 1
            if room < 0 or (printed[tool] > _OF_A_TOOL and not _ALARM.search(piece.text)):
                continue
        seen.add(piece.text)
        yield piece, sources


def language_of(messages: Sequence[Message]) -> Language:
    """The language of what was said, as far as it is known here; tools count only where nobody spoke."""
    said = "\n".join([bounded(message.text, 2_000) for message in messages if message.role in {"user", "assistant"}])
    if not said.strip():
        said = "\n".join([piece.text for message in messages[:50] for piece in _pieces(message)])[:20_000]
    han = len(_HAN.findall(said))
    chinese = han > _HAN_PER_LATIN_WORD * len(_LATIN.findall(said)) and han > 2 * len(_KANA.findall(said))
    return "zh" if chinese else "en"


def _pieces(message: Message) -> Iterator[Piece]:
    """What a message says. What was recalled is known already, and a tool's text is read with its call."""
    for part in message.parts:
        match part:
            case TextPart() if message.role != "tool":
                yield from split(bounded(part.text))
            case ProviderPart():
                yield from split(bounded(part.text))
            case ImagePart():
                if described := flat(part.description[:400]):
                    yield Piece(described, "shown")


def _sentence(piece: Piece, place: int, message: Message, sources: list[int], above: frozenset[str]) -> Sentence:
    origin = piece.origin
    words = words_of(piece.text)
    cues = (
        _NO_CUES
        if origin in {"output", "code", "shown"} and not _ALARM.search(piece.text)
        else cues_of(piece.text, words)
    )
    cues |= above
    if origin not in {"said", "call", "open"}:
        cues &= _KEPT_FROM_MACHINES
    weight = _ROLE[message.role] * _ORIGIN[origin]
    if origin == "failure":
        cues |= {"error"}
        weight = _FAILURE
    weight += sum(_BOOST.get(cue, 0.0) for cue in cues) * (1.0 if origin in {"said", "failure"} else 0.3)
    return Sentence(piece.text, place, sources, message.role, origin, words, cues, literals(piece.text), weight)


def _discount_routine(sentences: list[Sentence]) -> None:
    """What is said over and over with other numbers is routine: "Batch 7 is copied." matters less than the rest."""
    exact: Counter[str] = Counter()
    loose: defaultdict[tuple[str, str], list[tuple[Sentence, str]]] = defaultdict(list)
    tools: Counter[str] = Counter()
    for sentence in sentences:
        whole, longest = _shapes(sentence)
        exact[whole] += 1
        loose[sentence.role, longest].append((sentence, whole))
        tools[_tool(sentence)] += 1
    for (role, _), alike in loose.items():
        if len(alike) < _ROUTINE or (role == "user" and len({each.text for each, _ in alike}) == 1):
            continue  # a user who repeats the same words means them
        for number, (sentence, whole) in enumerate(alike):
            times = exact[whole]
            sentence.weight *= 2 / len(alike)
            sentence.times = times if times >= _ROUTINE else 1
            sentence.common = True
            sentence.routine = number > 0
    for sentence in sentences:
        if tool := _tool(sentence):
            sentence.weight *= min(1.0, (_ROUTINE / tools[tool]) ** 0.5)


def _tool(sentence: Sentence) -> str:
    """The tool whose call or output it is."""
    if sentence.origin in {"call", "open"}:
        return f"{sentence.text.partition('(')[0]}("
    return sentence.text.partition(":")[0] if sentence.origin == "output" else ""


def _shapes(sentence: Sentence) -> tuple[str, str]:
    """What stays when the literals change: all of it, and the longest stretch of it if that says anything."""
    if not sentence.literals:
        return sentence.text, sentence.text
    pieces: list[str] = []
    reached = 0
    for each in sentence.literals:
        pieces.append(sentence.text[reached : each.start])
        reached = each.end
    pieces.append(sentence.text[reached:])
    whole = "\0".join(pieces)
    longest = max(pieces, key=len)
    return whole, longest if len(longest) >= _TELLING else whole
