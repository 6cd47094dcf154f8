"""Hostile texts, JSON values and conversations of any size: long, repetitive, deep, wide, in many scripts."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

Value = Callable[[int], Any]

TEXTS: dict[str, Value] = {
    "one letter": lambda n: "a" * n,
    "spaces": lambda n: " " * n + "x",
    "a fence and newlines": lambda n: "```\n" + "\n" * n,
    "accents": lambda n: "é" + "\u0301\u0316" * (n // 2),
    "Chinese": lambda n: "不要" * (n // 2),
    "Arabic, Korean, emoji": lambda n: "مرحبا 안녕하세요 👩‍👩‍👧 " * (n // 20),
    "different words": lambda n: " ".join(f"w{number:x}" for number in range(n // 6)),
    "words in sequence": lambda n: "a_" * (n // 2),
    "open quotes": lambda n: "「『“«\"'" * (n // 6),
    "almost literals": lambda n: "a-a" + "-a1.1" * (n // 5),
    "rules": lambda n: "Never use tabs, always use spaces; I prefer tea. " * (n // 50),
    "withdrawn rules": lambda n: "Forget my rule about tabs. Scratch that. " * (n // 40),
    "commas": lambda n: "so, " * (n // 4),
    "a list": lambda n: "- item 1) x\n" * (n // 12),
    "slashes": lambda n: "/" * n,
    "markup": lambda n: "<a " * (n // 3),
    "percents": lambda n: "%2f" * (n // 3),
    "a URI": lambda n: "viking://user" + "/a" * (n // 2),
    "JSON in a text": lambda n: "[" + '{"id": 1, "name": "x"}, ' * (n // 24) + "{}]",
    "almost JSON": lambda n: "{" + ",/*" * (n // 3),
    "brackets": lambda n: "[" * n,
    "floats in a text": lambda n: "[" + "1e308," * (n // 6) + "1]",
    "citations": lambda n: "[#1-#2, " * (n // 8),
}

JSON_VALUES: dict[str, Value] = {
    "empty lists": lambda n: [[]] * (n // 3),
    "a long key over a long list": lambda n: {"k" * (n // 2): [0] * (n // 4)},
    "many keys": lambda n: {f"k{number}": number for number in range(n // 12)},
    "floats": lambda n: [1e308] * (n // 6),
    "deep": lambda n: _nested(min(n // 8, 800)),
    "deep and wide": lambda n: [_nested(60)] * (n // 120),
    "large integers": lambda n: [10**300] * (n // 300),
    "strings": lambda n: ["\\\"'é"] * (n // 8),
    "records": lambda n: [{"id": number, "name": f"n{number}", "price": 1.5} for number in range(n // 40)],
    "almost messages": lambda n: [{"role": "user", "content": [{"type": "text", "text": "a"}]}] * min(100, n // 50),
    "almost URIs": lambda n: ["viking://a"] * (n // 12),
    "not storable at the end": lambda n: {"k" * (n // 2): [*[0] * (n // 4), "\0"]},
}


_NOT_STORABLE = frozenset({"deep", "not storable at the end"})
"""JSON values that a message cannot have."""


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def _one_message(make: Value, n: int) -> list[dict[str, Any]]:
    return [_message(make(n))]


def _many_messages(make: Value, n: int) -> list[dict[str, Any]]:
    chars = min(1_000, n)
    return [_message(make(chars))] * (n // chars)


def _one_output(make: Value, n: int) -> list[dict[str, Any]]:
    return [_call(0, {}, make(n))]


def _one_input(make: Value, n: int) -> list[dict[str, Any]]:
    return [_call(0, {"value": make(n)}, "done")]


def _one_metadata(make: Value, n: int) -> list[dict[str, Any]]:
    return [{**_message("hello"), "metadata": {"value": make(n)}}]


def _json_outputs(make: Value, n: int) -> list[dict[str, Any]]:
    text = _as_json(make, n)
    return [_call(number, {"id": number}, text) for number in range(2)]


def _as_json(make: Value, n: int) -> str:
    return msgspec.json.encode(make(n)).decode()


def _message(text: str, number: int = 0) -> dict[str, Any]:
    return {"role": "assistant" if number % 3 == 1 else "user", "content": text}


def _message_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "parts": parts}


def _call(number: int, tool_input: dict[str, Any], output: Any) -> dict[str, Any]:
    part = {
        "type": "tool",
        "tool_id": f"call_{number}",
        "tool_name": "search_web",
        "tool_input": tool_input,
        "tool_output": output,
        "tool_status": "completed" if output else "running",
    }
    return _message_of([part])


_INPUT = [make(800) for name, make in JSON_VALUES.items() if name not in _NOT_STORABLE]
_JSON_TEXTS: dict[str, Value] = {
    name: partial(_as_json, make) for name, make in JSON_VALUES.items() if name not in _NOT_STORABLE
}


def _repeated(makers: dict[str, Value], chars: int, n: int) -> Iterator[str]:
    """Return texts of `chars` characters, of each kind in turn, with about `n` characters in all."""
    texts = [make(chars) for make in makers.values()]
    return (texts[number % len(texts)] for number in range(n // chars))


def _conversations() -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, make in TEXTS.items():
        found[f"a message of {name}"] = partial(_one_message, make)
        found[f"a tool output of {name}"] = partial(_one_output, make)
        found[f"many messages of {name}"] = partial(_many_messages, make)
    for name, make in JSON_VALUES.items():
        if name in _NOT_STORABLE:
            continue
        found[f"a tool output of {name}"] = partial(_one_output, make)
        found[f"a tool input of {name}"] = partial(_one_input, make)
        found[f"metadata of {name}"] = partial(_one_metadata, make)
        found[f"a JSON tool output of {name}"] = partial(_json_outputs, make)
    return found


CONVERSATIONS: dict[str, Value] = _conversations() | {
    "many messages": lambda n: [_message(f"message {number}: never mind", number) for number in range(n // 40)],
    "all texts": lambda n: [_message(make(n // len(TEXTS)), number) for number, make in enumerate(TEXTS.values())],
    "many long messages": lambda n: [_message(text, number) for number, text in enumerate(_repeated(TEXTS, 20_000, n))],
    "many tool outputs": lambda n: [
        _call(number, {"id": number}, text) for number, text in enumerate(_repeated(TEXTS, 8_000, n))
    ],
    "many JSON tool outputs": lambda n: [
        _call(number, {"id": number}, text) for number, text in enumerate(_repeated(_JSON_TEXTS, 8_000, n))
    ],
    "many tool inputs": lambda n: [_call(number, {"value": _INPUT}, "done") for number in range(n // 8_000)],
    "many long parts": lambda n: [
        _message_of([{"type": "text", "text": text} for text in _repeated(TEXTS, 20_000, n)]) | {"role": "user"}
    ],
    "many small tool parts": lambda n: [
        _message_of([{"type": "tool", "tool_output": "1"}] * min(1_000, n // 60)) for _ in range(n // 60_000 + 1)
    ],
    "many parts": lambda n: [_message_of([{"type": "text", "text": "a."}] * min(1_000, n // 20))],
    "many tool calls": lambda n: [_call(number, {"id": number, "q": "a"}, '{"ok": true}') for number in range(n // 60)],
    # A commit seals what is before an open call.
    "open tool calls": lambda n: [_message("go"), *(_call(number, {"id": number}, "") for number in range(n // 60))],
}
"""Lists of messages with about `n` characters in all, by what is hostile in them."""


def make_within(make: Value, max_bytes: int) -> Any:
    """Return the largest value of a kind whose JSON has at most about `max_bytes`."""
    value = make(max_bytes)
    encoded_bytes = len(msgspec.json.encode(value))
    return value if encoded_bytes <= max_bytes else make(max_bytes * max_bytes // encoded_bytes)
