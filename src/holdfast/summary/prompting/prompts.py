"""How a model is asked for a summary, and what its answer says."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import ContextPart, ImagePart, Part, ProviderPart, TextPart, ToolPart, as_text
from holdfast.model.summaries import Line, Prompt, Reply, Summary
from holdfast.summary.local.concepts import content
from holdfast.summary.local.reading import language_of
from holdfast.summary.prompting.json_repair import find_object
from holdfast.text.sentences import words_of
from holdfast.text.tokens import estimate

PHRASES = ("topic", "intent", "result", "status")
LISTS = ("steps", "requests", "concepts", "decisions", "constraints", "facts", "pending")
FRAME = 150
"""Tokens of what stands around a conversation in a prompt."""
MIN_ROOM = 300
MAX_PHRASE = 500
MAX_LIST = 60
MAX_RULE = 200
SHARED_WORDS = 0.34
"""The share of a line's words that a message must have to be taken for its source."""

_LINE = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "sources": {"type": "array", "items": {"type": "string"}}},
    "required": ["text", "sources"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in PHRASES},
        **{name: {"type": "array", "items": _LINE} for name in LISTS},
    },
    "required": [*PHRASES, *LISTS],
    "additionalProperties": False,
}


def room(input_tokens: int, earlier: str = "") -> int:
    """The tokens that are left for messages in a prompt of `input_tokens`."""
    taken = estimate(_system()) + estimate(msgspec.json.encode(SCHEMA).decode()) + estimate(earlier) + FRAME
    return max(MIN_ROOM, input_tokens - taken)


def chunks(messages: Sequence[Message], bound_tokens: int) -> list[list[Message]]:
    """The messages in runs that each fit `bound_tokens`, as few as go in order.

    A tool call stays with its result if both fit one run. A message that does not fit any is cut in the middle.
    """
    found: list[list[Message]] = []
    left = 0
    for unit in _units(messages):
        costs = [_cost(message) for message in unit]
        pieces = [(unit, sum(costs))] if sum(costs) <= bound_tokens else _alone(unit, costs, bound_tokens)
        for piece, cost in pieces:
            if cost > left:
                found.append([])
                left = bound_tokens
            found[-1].extend(piece)
            left -= cost
    return found


def ask(messages: Sequence[Message], *, max_tokens: int, earlier: str = "") -> Prompt:
    """The prompt for a summary of `messages`, which follow what `earlier` tells."""
    said = "\n".join(_turn(f"m{place}", message) for place, message in enumerate(messages, 1))
    # A mark that holds what it encloses cannot be written inside it.
    mark = hashlib.sha256(f"{earlier}\0{said}".encode(errors="replace")).hexdigest()[:12]
    before = f'<earlier id="{mark}">\n{earlier}\n</earlier id="{mark}">\n\n' if earlier else ""
    return Prompt(
        system=_system(),
        user=(
            f'{before}<conversation id="{mark}">\n{said}\n</conversation id="{mark}">\n\n'
            f"Summarise the conversation above, in its language, as a JSON object of at most {max_tokens // 2} words."
        ),
        max_tokens=max_tokens,
        schema=SCHEMA,
        schema_name="summary",
    )


def ask_again(prompt: Prompt, reply: Reply) -> Prompt:
    """The same prompt with word of what was wrong with the answer."""
    text = reply.text
    if not text.strip():
        problem = "it was empty"
    elif not reply.complete:
        problem = "it broke off before its end; say less"
    elif "{" not in text:
        problem = "it was not a JSON object"
    else:
        problem = "it was not a JSON object with the fields that were asked for"
    quoted = f" It began: {_flat(text)[:200]}" if text.strip() else ""
    again = f"\n\nYour last answer could not be used: {problem}.{quoted}\nAnswer with the JSON object and nothing else."
    return msgspec.structs.replace(prompt, user=prompt.user + again)


def read(text: str, messages: Sequence[Message]) -> Summary | None:
    """The summary that a model's answer holds, with the numbers of the messages it rests on; None if it holds none.

    Mistakes in the JSON are repaired and types made to fit. A line that cites no message of the conversation gets the
    one that says it, or is dropped if none does.
    """
    found = find_object(text, {*PHRASES, *LISTS})
    if found is None:
        return None
    sources = _Sources(messages)
    phrases = {name: _phrase(found.get(name)) for name in PHRASES}
    lists = {name: _lines(found.get(name), sources) for name in LISTS}
    if not any(phrases.values()) and not any(lists.values()):
        return None
    lists["constraints"], others = _verbatim(lists["constraints"], messages)
    lists["facts"] += others
    return Summary(language=language_of(messages), **phrases, **lists)  # type: ignore[arg-type]  # each is its field's


def _verbatim(lines: list[Line], messages: Sequence[Message]) -> tuple[list[Line], list[Line]]:
    """Rules in a user's own words, and the others: what a tool demands binds nobody, nor does a paraphrase."""
    spoken = {message.seq: _flat(message.text).casefold() for message in messages if message.role == "user"}
    kept: list[Line] = []
    others: list[Line] = []
    for line in lines:
        text = line.text.strip(" .!").casefold()
        is_rule = len(text) <= MAX_RULE and any(text in spoken.get(seq, "") for seq in line.sources)
        (kept if is_rule else others).append(line)
    return kept, others


@cache
def _system() -> str:
    return (files("holdfast.summary.prompting") / "summary.md").read_text("utf-8").strip()


def _units(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Runs that a border should not split: from each tool call to its result."""
    last: dict[str, int] = {}
    for place, message in enumerate(messages):
        last.update(dict.fromkeys(_calls(message), place))
    unit: list[Message] = []
    until = 0
    for place, message in enumerate(messages):
        if unit and place > until and (message.role != "tool" or _calls(message)):
            yield unit
            unit = []
        unit.append(message)
        until = max([until, *(last[call] for call in _calls(message))])
    if unit:
        yield unit


def _calls(message: Message) -> list[str]:
    return [part.tool_id for part in message.parts if isinstance(part, ToolPart) and part.tool_id]


def _alone(unit: list[Message], costs: list[int], bound: int) -> list[tuple[list[Message], int]]:
    whole = [message if cost <= bound else _cut(message, bound) for message, cost in zip(unit, costs, strict=True)]
    return [([message], min(cost, bound)) for message, cost in zip(whole, costs, strict=True)]


def _cut(message: Message, bound: int) -> Message:
    """The beginning and the end of a message, and how much is missing between them."""
    body = _body(message)
    kept = int(len(body) * bound / max(1, _cost(message)))
    while True:
        kept = int(kept * 0.95)
        head, tail = kept - kept // 3, kept // 3
        note = f"\n[... {len(body) - kept} characters left out ...]\n"
        shorter = msgspec.structs.replace(
            message, parts=[TextPart(body[:head] + note + (body[-tail:] if tail else ""))]
        )
        if kept == 0 or _cost(shorter) <= bound:
            return shorter


def _cost(message: Message) -> int:
    return estimate(_turn("m1000", message)) + 1


def _turn(alias: str, message: Message) -> str:
    """A message as the model reads it. Only a real turn begins a line with an alias in brackets."""
    body = re.sub(r"(^|[\n\r\v\f\x85\u2028\u2029])(?=\[m\d)", r"\1 ", _body(message))
    return f"[{alias}] {message.role}: {body}"


def _body(message: Message) -> str:
    return "\n".join(text for part in message.parts if (text := _told(part)))


def _told(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ContextPart():
            return f"(was shown {part.uri}: {part.abstract})"
        case ImagePart():
            return f"(an image: {part.description or part.url})" if not part.url.startswith("data:") else "(an image)"
        case ToolPart():
            return _call(part)
        case ProviderPart():
            return part.text or part.readable


def _call(part: ToolPart) -> str:
    """A call, a result, or both: a call and its result may be in different messages, so neither is called pending."""
    name, given, output = part.tool_name or "a tool", as_text(part.tool_input), as_text(part.tool_output)
    if part.tool_status in {"pending", "running"} and not output:
        return f"(called {name} with {given or 'nothing'})"
    ended = "failed" if part.tool_status == "error" else "answered"
    outcome = f"{ended}: {output}" if output else f"{ended} with nothing"
    return f"(called {name} with {given}; it {outcome})" if given else f"({name} {outcome})"


class _Sources:
    """Which messages a line rests on."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._words: list[frozenset[str]] | None = None

    def cited(self, given: Any, text: str) -> list[int]:
        """The messages that `given` cites, else the one that says most of `text`, else none."""
        found: list[int] = []
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, str | int) and not isinstance(one, bool):
                found += [self._messages[place - 1].seq for place in _places(str(one), len(self._messages))]
        return list(dict.fromkeys(found)) or self._saying(text)

    def _saying(self, text: str) -> list[int]:
        words = content(words_of(text))
        if not words:
            return []
        if self._words is None:
            self._words = [words_of(_body(message)) for message in self._messages]
        shared = [len(words & theirs) / len(words) for theirs in self._words]
        best = max(range(len(shared)), key=lambda place: shared[place], default=None)
        return [self._messages[best].seq] if best is not None and shared[best] >= SHARED_WORDS else []


def _places(cited: str, last: int) -> Iterator[int]:
    """The places that a citation names, one by one (`m3`, `3`, `m3, m5`) or as a range (`m3-m5`)."""
    for first, end in re.findall(r"(?<![\w.-])[mM]?(\d{1,6})(?:\s*[-\u2013]\s*[mM]?(\d{1,6}))?(?![\w.])", cited):
        yield from range(max(1, int(first)), min(last, int(end or first)) + 1)


def _lines(told: Any, sources: _Sources) -> list[Line]:
    found: dict[str, Line] = {}
    for one in _items(told)[:MAX_LIST]:
        cites: Any = []
        if isinstance(one, dict):
            cites = next((one[name] for name in ("sources", "source", "messages", "ids", "id") if name in one), [])
        text = _phrase(one)
        seqs = sources.cited(cites, text) if text else []
        if seqs and text not in found:
            found[text] = Line(text, seqs)
    return list(found.values())


def _items(told: Any) -> list[Any]:
    """A list as it is; one item, or lines of text with or without bullets, as a list."""
    if isinstance(told, list):
        return told
    if isinstance(told, str):
        return [re.sub(r"^\s*(?:[-*\u2022]|\d+[.)])\s+", "", line) for line in told.splitlines()]
    return [told] if isinstance(told, dict) else []


def _phrase(told: Any) -> str:
    """One line of text from whatever stands where one was asked for."""
    if isinstance(told, dict):
        told = told.get("text") or max(
            (value for value in told.values() if isinstance(value, str)), key=len, default=""
        )
    if isinstance(told, list):
        told = "; ".join(filter(None, map(_phrase, told)))
    if told is None or isinstance(told, bool):
        return ""
    text = _flat(str(told))
    return text if len(text) <= MAX_PHRASE else f"{text[: MAX_PHRASE - 3]}..."


def _flat(text: str) -> str:
    return " ".join(text.split())
