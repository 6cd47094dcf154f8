"""Reads the sentences of messages and tool calls, and weights them. A summary is selected by these weights."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from holdfast.model.messages import Message
from holdfast.model.parts import ImagePart, ProviderPart, TextPart
from holdfast.model.summaries import Language
from holdfast.summary.local.cues import find_cues
from holdfast.summary.tools.call_sentences import call_sentences
from holdfast.summary.tools.pairing import ToolCall
from holdfast.summary.tools.values import source_seqs
from holdfast.text.literals import find_literals
from holdfast.text.scripts import HAN, KANA
from holdfast.text.sentences import Piece, Sentence, extract_words, head_and_tail, split_sentences, to_single_line

_SENTENCES_PER_YIELD = 32
_MAX_CODE_AND_OUTPUT_LINES = 4_000
"""How many lines of code and tool output are read in total. Each message may use an equal share."""
_MIN_CODE_AND_OUTPUT_LINES_PER_MESSAGE = 12
_MAX_OUTPUT_LINES_PER_TOOL = 150
"""Further lines are read only if they report an error or a success."""
_MAX_SENTENCES_PER_MESSAGE = 400
_CODE_AND_OUTPUT = frozenset({"output", "code"})
_HAN_PATTERN = re.compile(f"[{HAN}]")
_KANA_PATTERN = re.compile(f"[{KANA}]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_MIN_HAN_PER_LATIN_WORD = 0.7
"""From this many Chinese characters per Latin word, a text is Chinese."""

_ROLE_WEIGHTS = {"user": 3.0, "assistant": 2.0, "system": 1.0, "tool": 0.8}
_ORIGIN_WEIGHTS = {
    "prose": 1.0,
    "code": 0.25,
    "call": 0.5,
    "open_call": 0.5,
    "output": 0.3,
    "failed_call": 1.0,
    "image": 0.3,
}
_CUE_WEIGHTS = {
    "decision": 1.2,
    "result": 1.0,
    "error": 0.9,
    "request": 0.6,
    "pending": 0.7,
    "blocked": 0.6,
}
_FAILED_CALL_WEIGHT = 1.6
_MIN_SHAPE_CHARS = 7
"""A shorter piece of a sentence does not identify sentences of the same kind."""
_MIN_ROUTINE_SENTENCES = 4
"""If at least this many sentences differ only in their literals, they are routine."""
_LIST_ANNOUNCEMENT_ENDS = (":", "\uff1a")
_CUES_OF_LIST_ITEMS = frozenset({"pending", "decision"})
"""Cues of an announcement that apply to the items of its list."""
_NO_CUES: frozenset[str] = frozenset()
_OUTCOME_WORDS = (
    *("error", "Error", "ERROR", "fail", "Fail", "FAIL", "exception", "Exception", "timeout", "Timeout"),
    *("denied", "refused", "success", "错", "失败", "异常", "超时", "成功", "完成"),
)
"""Code and output without one of these words has no cues."""
_CUES_OUTSIDE_PROSE = frozenset({"error", "result"})
"""The cues that code, output and images may have."""


class YieldingSentences(list[Sentence]):
    """A list of sentences that yields the CPU to other threads while it is iterated."""

    def __init__(self, yield_cpu: Callable[[], None]) -> None:
        super().__init__()
        self._yield_cpu = yield_cpu

    def __iter__(self) -> Iterator[Sentence]:
        for number, sentence in enumerate(super().__iter__()):
            if number % _SENTENCES_PER_YIELD == 0:
                self._yield_cpu()
            yield sentence


def read_sentences(
    messages: Sequence[Message], calls: Sequence[ToolCall], yield_cpu: Callable[[], None]
) -> YieldingSentences:
    """Return the sentences of messages with their words, literals, cues and weights; each text once per message.

    A tool call and its result are read together, at the message that makes the call.
    """
    sentences = YieldingSentences(yield_cpu)
    max_code_and_output_lines = max(
        _MIN_CODE_AND_OUTPUT_LINES_PER_MESSAGE, _MAX_CODE_AND_OUTPUT_LINES // max(1, len(messages))
    )
    tool_lines: Counter[str] = Counter()
    calls_by_message: defaultdict[int, list[ToolCall]] = defaultdict(list)
    for call in calls:
        calls_by_message[call.message_index].append(call)
    for index, message in enumerate(messages):
        if not message.parts:
            continue
        list_cues = _NO_CUES
        from_text = ((piece, [message.seq]) for piece in _message_pieces(message))
        from_calls = (
            (piece, source_seqs(call, messages)) for call in calls_by_message[index] for piece in call_sentences(call)
        )
        for piece, sources in _limit_pieces(chain(from_text, from_calls), max_code_and_output_lines, tool_lines):
            sentence = _sentence(piece, index, message, sources, list_cues if piece.is_list_item else _NO_CUES)
            if not piece.is_list_item:
                is_announcement = piece.text.endswith(_LIST_ANNOUNCEMENT_ENDS)
                list_cues = sentence.cues & _CUES_OF_LIST_ITEMS if is_announcement else _NO_CUES
            sentences.append(sentence)
            yield_cpu()
    _discount_routine(sentences)
    return sentences


def _limit_pieces(
    pieces: Iterable[tuple[Piece, list[int]]], max_code_and_output_lines: int, tool_lines: Counter[str]
) -> Iterator[tuple[Piece, list[int]]]:
    """Return each piece of a message once, without the lines of code and output above the limits.

    `max_code_and_output_lines` is the limit of this message. `tool_lines` counts the output lines of each tool over all
    messages.
    """
    seen: set[str] = set()
    code_and_output_lines = 0
    for piece, sources in pieces:
        if len(seen) >= _MAX_SENTENCES_PER_MESSAGE:
            return
        if piece.text in seen:
            continue
        if piece.origin in _CODE_AND_OUTPUT:
            code_and_output_lines += 1
            tool = piece.text.partition(":")[0] if piece.origin == "output" else ""
            tool_lines[tool] += 1
            is_over_tool_limit = tool_lines[tool] > _MAX_OUTPUT_LINES_PER_TOOL and not _has_outcome(piece.text)
            if code_and_output_lines > max_code_and_output_lines or is_over_tool_limit:
                continue
        seen.add(piece.text)
        yield piece, sources


def _has_outcome(text: str) -> bool:
    """Return whether a line of code or output reports an error or a success."""
    return any(word in text for word in _OUTCOME_WORDS)


def detect_language(messages: Sequence[Message]) -> Language:
    """Detect the language of users and assistant. Other texts are used only if these have none."""
    text = "\n".join(
        [head_and_tail(message.text, 2_000) for message in messages if message.role in {"user", "assistant"}]
    )
    if not text.strip():
        text = "\n".join([piece.text for message in messages[:50] for piece in _message_pieces(message)])[:20_000]
    han = len(_HAN_PATTERN.findall(text))
    kana, latin_words = len(_KANA_PATTERN.findall(text)), len(_LATIN_WORD.findall(text))
    return "zh" if han > _MIN_HAN_PER_LATIN_WORD * latin_words and han > 2 * kana else "en"


def _message_pieces(message: Message) -> Iterator[Piece]:
    """Return the pieces of a message. Context parts repeat known text, and a tool's text is read with its call."""
    for part in message.parts:
        match part:
            case TextPart() if message.role != "tool":
                yield from split_sentences(head_and_tail(part.text))
            case ProviderPart():
                yield from split_sentences(head_and_tail(part.text))
            case ImagePart():
                if description := to_single_line(part.description[:400]):
                    yield Piece(description, "image")


def _sentence(piece: Piece, index: int, message: Message, sources: list[int], list_cues: frozenset[str]) -> Sentence:
    origin = piece.origin
    words = extract_words(piece.text)
    cues = (
        _NO_CUES
        if origin in {"output", "code", "image"} and not _has_outcome(piece.text)
        else find_cues(piece.text, words)
    )
    cues |= list_cues
    if origin not in {"prose", "call", "open_call"}:
        cues &= _CUES_OUTSIDE_PROSE
    weight = _ROLE_WEIGHTS[message.role] * _ORIGIN_WEIGHTS[origin]
    if origin == "failed_call":
        cues |= {"error"}
        weight = _FAILED_CALL_WEIGHT
    # The sum of `fsum` does not depend on the order of the set, which differs between processes.
    cue_weight = math.fsum(_CUE_WEIGHTS.get(cue, 0.0) for cue in cues)
    weight += cue_weight * (1.0 if origin in {"prose", "failed_call"} else 0.3)
    return Sentence(piece.text, index, sources, message.role, origin, words, cues, find_literals(piece.text), weight)


def _discount_routine(sentences: list[Sentence]) -> None:
    """Mark sentences that repeat with other literals as routine and reduce their weight: "Batch 7 is copied."."""
    exact_counts: Counter[str] = Counter()
    by_shape: defaultdict[tuple[str, str], list[tuple[Sentence, str]]] = defaultdict(list)
    tool_counts: Counter[str] = Counter()
    for sentence in sentences:
        exact_shape, loose_shape = _shapes(sentence)
        exact_counts[exact_shape] += 1
        by_shape[sentence.role, loose_shape].append((sentence, exact_shape))
        tool_counts[_tool_key(sentence)] += 1
    for (role, _), alike in by_shape.items():
        if len(alike) < _MIN_ROUTINE_SENTENCES or (
            role == "user" and len({sentence.text for sentence, _ in alike}) == 1
        ):
            continue  # a user repeats the same words on purpose
        for number, (sentence, exact_shape) in enumerate(alike):
            occurrences = exact_counts[exact_shape]
            sentence.weight *= 2 / len(alike)
            sentence.occurrences = occurrences if occurrences >= _MIN_ROUTINE_SENTENCES else 1
            sentence.is_common = True
            sentence.is_routine = number > 0  # the first one represents its shape
    for sentence in sentences:
        if tool_key := _tool_key(sentence):
            sentence.weight *= min(1.0, (_MIN_ROUTINE_SENTENCES / tool_counts[tool_key]) ** 0.5)


def _tool_key(sentence: Sentence) -> str:
    """Return a key of the tool whose call or output the sentence is, or an empty string.

    Calls and outputs are counted separately: `search(` is the key of a call, `search` that of an output.
    """
    if sentence.origin in {"call", "open_call"}:
        return f"{sentence.text.partition('(')[0]}("
    return sentence.text.partition(":")[0] if sentence.origin == "output" else ""


def _shapes(sentence: Sentence) -> tuple[str, str]:
    """Return the text without its literals, and the longest piece between them if it is long enough."""
    if not sentence.literals:
        return sentence.text, sentence.text
    pieces: list[str] = []
    last_end = 0
    for literal in sentence.literals:
        pieces.append(sentence.text[last_end : literal.start])
        last_end = literal.end
    pieces.append(sentence.text[last_end:])
    exact_shape = "\0".join(pieces)
    longest = max(pieces, key=len)
    return exact_shape, longest if len(longest) >= _MIN_SHAPE_CHARS else exact_shape
