"""Prompts that ask a language model for a summary, and the parsing of its replies."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import (
    OPEN_TOOL_STATUSES,
    ContextPart,
    ImagePart,
    Part,
    ProviderPart,
    TextPart,
    ToolPart,
    as_text,
)
from holdfast.model.summaries import Line, Prompt, Reply, Summary
from holdfast.summary.local.concepts import content_words
from holdfast.summary.local.reading import detect_language
from holdfast.summary.prompting.json_repair import find_object
from holdfast.summary.sections import ABSTRACT_FIELDS, CONSTRAINTS, FACTS, MODEL_SECTIONS
from holdfast.text.sentences import extract_words
from holdfast.text.tokens import estimate

LIST_FIELDS = tuple(section.field for section in MODEL_SECTIONS)
FRAME_TOKENS = 150
"""Tokens of a prompt's user message without the conversation and the earlier summary."""
MIN_MESSAGE_TOKENS = 300
MAX_TEXT_CHARS = 500
MAX_LIST_ITEMS = 60
MAX_RULE_CHARS = 200
MIN_SHARED_WORDS = 0.34
"""Share of a line's words that a message must have to be taken as its source."""

_CITATION_KEYS = ("sources", "source", "messages", "ids", "id")
"""Keys that models use for the sources of a line; the first one is asked for."""
_TURN_START = re.compile(r"(^|[\n\r\v\f\x85\u2028\u2029])(?=\[m\d)")
_LINE_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "sources": {"type": "array", "items": {"type": "string"}}},
    "required": ["text", "sources"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ABSTRACT_FIELDS},
        **{name: {"type": "array", "items": _LINE_SCHEMA} for name in LIST_FIELDS},
    },
    "required": [*ABSTRACT_FIELDS, *LIST_FIELDS],
    "additionalProperties": False,
}


def tokens_for_messages(input_tokens: int, earlier: str = "") -> int:
    """Return how many tokens of messages fit into a prompt of `input_tokens`."""
    schema = msgspec.json.encode(SCHEMA).decode()
    other_tokens = estimate(_system_prompt()) + estimate(schema) + estimate(earlier) + FRAME_TOKENS
    return max(MIN_MESSAGE_TOKENS, input_tokens - other_tokens)


def split_into_chunks(messages: Sequence[Message], max_tokens: int) -> list[list[Message]]:
    """Split messages into as few chunks of at most `max_tokens` as their order allows.

    A tool call stays with its result if both fit one chunk. A message that is too long for a chunk is truncated in the
    middle.
    """
    chunks: list[list[Message]] = []
    left = 0
    for unit in _units(messages):
        costs = [_cost(message) for message in unit]
        pieces = [(unit, sum(costs))] if sum(costs) <= max_tokens else _split_unit(unit, costs, max_tokens)
        for piece, cost in pieces:
            if cost > left:
                chunks.append([])
                left = max_tokens
            chunks[-1].extend(piece)
            left -= cost
    return chunks


def build_prompt(messages: Sequence[Message], *, max_tokens: int, earlier: str = "") -> Prompt:
    """Build the prompt for a summary of `messages`. `earlier` summarises the conversation before them."""
    conversation = "\n".join(_format_turn(f"m{number}", message) for number, message in enumerate(messages, 1))
    # A text cannot contain its own hash, so no message can forge the closing mark.
    mark = hashlib.sha256(f"{earlier}\0{conversation}".encode(errors="replace")).hexdigest()[:12]
    before = f'<earlier id="{mark}">\n{earlier}\n</earlier id="{mark}">\n\n' if earlier else ""
    return Prompt(
        system=_system_prompt(),
        user=(
            f'{before}<conversation id="{mark}">\n{conversation}\n</conversation id="{mark}">\n\n'
            f"Summarise the conversation above, in its language, as a JSON object of at most {max_tokens // 2} words."
        ),
        max_tokens=max_tokens,
        schema=SCHEMA,
        schema_name="summary",
    )


def build_retry_prompt(prompt: Prompt, reply: Reply) -> Prompt:
    """Build a prompt that repeats the request and states why the reply could not be used."""
    text = reply.text
    if not text.strip():
        problem = "it was empty"
    elif not reply.complete:
        problem = "it broke off before its end; say less"
    elif "{" not in text:
        problem = "it was not a JSON object"
    else:
        problem = "it was not a JSON object with the fields that were asked for"
    quoted = f" It began: {_collapse_spaces(text)[:200]}" if text.strip() else ""
    again = f"\n\nYour last answer could not be used: {problem}.{quoted}\nAnswer with the JSON object and nothing else."
    return msgspec.structs.replace(prompt, user=prompt.user + again)


def parse_reply(text: str, messages: Sequence[Message]) -> Summary | None:
    """Parse the summary in a model's reply, with the sequence numbers of its sources. Return None if it has none.

    Invalid JSON is repaired and values are converted to the expected types. A line without a valid source gets the
    message that has most of its words, or is dropped.
    """
    reply = find_object(text, {*ABSTRACT_FIELDS, *LIST_FIELDS})
    if reply is None:
        return None
    sources = _Sources(messages)
    texts = {name: _parse_text(reply.get(name)) for name in ABSTRACT_FIELDS}
    lists = {name: _parse_lines(reply.get(name), sources) for name in LIST_FIELDS}
    if not any(texts.values()) and not any(lists.values()):
        return None
    lists[CONSTRAINTS.field], other_lines = _separate_rules(lists[CONSTRAINTS.field], messages)
    lists[FACTS.field] += other_lines
    return Summary(language=detect_language(messages), **texts, **lists)  # type: ignore[arg-type]  # each fits its field


def _separate_rules(lines: list[Line], messages: Sequence[Message]) -> tuple[list[Line], list[Line]]:
    """Separate the lines that are literally in a user's message. Rules of tools and paraphrases are not binding."""
    texts = {message.seq: _collapse_spaces(message.text).casefold() for message in messages if message.role == "user"}
    rules: list[Line] = []
    others: list[Line] = []
    for line in lines:
        rule = line.text.strip(" .!").casefold()
        is_rule = len(rule) <= MAX_RULE_CHARS and any(rule in texts.get(seq, "") for seq in line.sources)
        (rules if is_rule else others).append(line)
    return rules, others


@cache
def _system_prompt() -> str:
    return (files("holdfast.summary.prompting") / "summary.md").read_text("utf-8").strip()


def _units(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Split messages into units that stay in one chunk if they fit: from each tool call to the last use of its id.

    The exact spans of `context.archive_boundary` are not needed here: a unit that is too long is split.
    """
    last_use: dict[str, int] = {}
    for index, message in enumerate(messages):
        last_use.update(dict.fromkeys(_tool_ids(message), index))
    unit: list[Message] = []
    unit_end = 0
    for index, message in enumerate(messages):
        if unit and index > unit_end and (message.role != "tool" or _tool_ids(message)):
            yield unit
            unit = []
        unit.append(message)
        unit_end = max([unit_end, *(last_use[tool_id] for tool_id in _tool_ids(message))])
    if unit:
        yield unit


def _tool_ids(message: Message) -> list[str]:
    return [part.tool_id for part in message.parts if isinstance(part, ToolPart) and part.tool_id]


def _split_unit(unit: list[Message], costs: list[int], max_tokens: int) -> list[tuple[list[Message], int]]:
    """Split a unit that is too long into single messages, truncated if necessary, with their costs."""
    fitting = [
        message if cost <= max_tokens else _truncate(message, max_tokens)
        for message, cost in zip(unit, costs, strict=True)
    ]
    return [([message], min(cost, max_tokens)) for message, cost in zip(fitting, costs, strict=True)]


def _truncate(message: Message, max_tokens: int) -> Message:
    """Return the beginning and the end of a message, with a note of how much is missing between them."""
    body = _format_body(message)
    kept = int(len(body) * max_tokens / max(1, _cost(message)))
    while True:
        kept = int(kept * 0.95)
        head, tail = kept - kept // 3, kept // 3
        note = f"\n[... {len(body) - kept} characters left out ...]\n"
        shorter = msgspec.structs.replace(
            message, parts=[TextPart(body[:head] + note + (body[-tail:] if tail else ""))]
        )
        if kept == 0 or _cost(shorter) <= max_tokens:
            return shorter


def _cost(message: Message) -> int:
    return estimate(_format_turn("m1000", message)) + 1


def _format_turn(alias: str, message: Message) -> str:
    """Format a message for the model. Text inside it that looks like the start of another turn is indented."""
    body = _format_body(message)
    if "[m" in body:
        body = _TURN_START.sub(r"\1 ", body)
    return f"[{alias}] {message.role}: {body}"


def _format_body(message: Message) -> str:
    return "\n".join(text for part in message.parts if (text := _format_part(part)))


def _format_part(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ContextPart():
            return f"(was shown {part.uri}: {part.abstract})"
        case ImagePart():
            return f"(an image: {part.description or part.url})" if not part.url.startswith("data:") else "(an image)"
        case ToolPart():
            return _format_tool_part(part)
        case ProviderPart():
            return part.text or part.readable


def _format_tool_part(part: ToolPart) -> str:
    """Format a call, a result, or both. A call is not marked as open, because its result may be in another message."""
    name, arguments, output = part.tool_name or "a tool", as_text(part.tool_input), as_text(part.tool_output)
    if part.tool_status in OPEN_TOOL_STATUSES and not output:
        return f"(called {name} with {arguments or 'nothing'})"
    ended = "failed" if part.tool_status == "error" else "answered"
    outcome = f"{ended}: {output}" if output else f"{ended} with nothing"
    return f"(called {name} with {arguments}; it {outcome})" if arguments else f"({name} {outcome})"


class _Sources:
    """Finds the source messages of lines."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._words: list[frozenset[str]] | None = None

    def find(self, citations: Any, text: str) -> list[int]:
        """Return the messages that `citations` names, else the one with most words of `text`, else none."""
        seqs: list[int] = []
        for citation in citations if isinstance(citations, list) else [citations]:
            if isinstance(citation, str | int) and not isinstance(citation, bool):
                numbers = _cited_numbers(str(citation), len(self._messages))
                seqs += [self._messages[number - 1].seq for number in numbers]
        return list(dict.fromkeys(seqs)) or self._find_by_words(text)

    def _find_by_words(self, text: str) -> list[int]:
        words = content_words(extract_words(text))
        if not words:
            return []
        if self._words is None:
            self._words = [extract_words(_format_body(message)) for message in self._messages]
        shared = [len(words & message_words) / len(words) for message_words in self._words]
        best = max(range(len(shared)), key=lambda index: shared[index], default=None)
        return [self._messages[best].seq] if best is not None and shared[best] >= MIN_SHARED_WORDS else []


def _cited_numbers(citation: str, last: int) -> Iterator[int]:
    """Return the message numbers that a citation names: single ones (`m3`, `3`, `m3, m5`) and ranges (`m3-m5`)."""
    for first, end in re.findall(r"(?<![\w.-])[mM]?(\d{1,6})(?:\s*[-\u2013]\s*[mM]?(\d{1,6}))?(?![\w.])", citation):
        yield from range(max(1, int(first)), min(last, int(end or first)) + 1)


def _parse_lines(value: Any, sources: _Sources) -> list[Line]:
    lines: dict[str, Line] = {}
    for item in _parse_items(value)[:MAX_LIST_ITEMS]:
        citations: Any = []
        if isinstance(item, dict):
            citations = next((item[name] for name in _CITATION_KEYS if name in item), [])
        text = _parse_text(item)
        seqs = sources.find(citations, text) if text else []
        if seqs and text not in lines:
            lines[text] = Line(text, seqs)
    return list(lines.values())


def _parse_items(value: Any) -> list[Any]:
    """Return a list unchanged, an object as a list of one, and a string as a list of its lines without bullets."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [re.sub(r"^\s*(?:[-*\u2022]|\d+[.)])\s+", "", line) for line in value.splitlines()]
    return [value] if isinstance(value, dict) else []


def _parse_text(value: Any) -> str:
    """Return one line of text, whatever type the model used."""
    if isinstance(value, dict):
        texts = (inner for inner in value.values() if isinstance(inner, str))
        value = value.get("text") or max(texts, key=len, default="")
    if isinstance(value, list):
        value = "; ".join(filter(None, map(_parse_text, value)))
    if value is None or isinstance(value, bool):
        return ""
    text = _collapse_spaces(str(value))
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 3]}..."


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())
