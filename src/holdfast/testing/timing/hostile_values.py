"""Hostile texts, JSON values and conversations of any size: long, repetitive, deep, wide, in many scripts."""

from collections.abc import Callable
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


def _nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def conversations(size: int) -> dict[str, list[dict[str, Any]]]:
    """Return conversations whose messages have about `size` characters in all, by what is hostile in them."""
    found = {f"a message of {name}": [_message(make(size))] for name, make in TEXTS.items()}
    found["many messages"] = [_message(f"message {number}: never mind", number) for number in range(size // 40)]
    found["all texts"] = [_message(make(size // len(TEXTS)), number) for number, make in enumerate(TEXTS.values())]
    found["many parts"] = [_message_of([{"type": "text", "text": "a."}] * min(1_000, size // 20))]
    for name, make in TEXTS.items():
        found[f"a tool output of {name}"] = [_call(0, {}, make(size))]
    for name, make in JSON_VALUES.items():
        if name in {"deep", "not storable at the end"}:
            continue  # a message cannot have them
        found[f"a tool output of {name}"] = [_call(0, {}, make(size))]
        found[f"a tool input of {name}"] = [_call(0, {"value": make(size)}, "done")]
        found[f"metadata of {name}"] = [{**_message("hello"), "metadata": {"value": make(size)}}]
        text = msgspec.json.encode(make(size)).decode()
        found[f"a JSON tool output of {name}"] = [_call(number, {"id": number}, text) for number in range(2)]
    found["many tool calls"] = [_call(number, {"id": number, "q": "a"}, '{"ok": true}') for number in range(size // 60)]
    open_calls = [_call(number, {"id": number}, "") for number in range(size // 60)]
    found["open tool calls"] = [_message("go"), *open_calls]  # a commit seals what is before an open call
    return found


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
