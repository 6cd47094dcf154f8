"""Read the values of arguments: the text itself, `-` for the standard input, or `@file` for a file."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import typer


def read_text(value: str, hint: str) -> str:
    """Return the text of an argument. `hint` is the name of the argument, for errors."""
    if value == "-":
        return _decode(sys.stdin.buffer.read(), "the standard input", hint)
    if value.startswith("@"):
        try:
            return _decode(Path(value[1:]).read_bytes(), value[1:], hint)
        except OSError as error:
            raise typer.BadParameter(f"{value[1:]} cannot be read: {error.strerror}", param_hint=hint) from None
    return value


def read_json(value: str, hint: str, kind: type, expected: str) -> Any:
    """Return the decoded JSON of an argument. Anything but a `kind` is an error; `expected` is its name there."""
    decoded = _parse_json(read_text(value, hint), hint)
    if not isinstance(decoded, kind):
        raise typer.BadParameter(f"not {expected}, such as {EXAMPLES[kind]}", param_hint=hint)
    return decoded


EXAMPLES: dict[type, str] = {
    dict: '{"topic":"login"}',
    list: '[{"type":"text","text":"Hello"}]',
}


def read_items(value: str, hint: str) -> list[Any]:
    """Return the items of a JSON array, the one JSON value, or the values of JSON Lines."""
    text = read_text(value, hint)
    try:
        decoded = msgspec.json.decode(text)
    except msgspec.DecodeError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:  # noqa: PLR2004 - a single line is a document, whose own error is clearer
            return [_parse_json(text, hint)]
        return [_parse_json(line, hint, f"line {number}: ") for number, line in enumerate(lines, 1)]
    return decoded if isinstance(decoded, list) else [decoded]


def parse_seconds(value: str | None, hint: str) -> int | None:
    """Parse a duration.

    >>> parse_seconds("90d", "--expires-in")
    7776000
    """
    if value is None:
        return None
    number, unit = (value, "s") if value.isdecimal() else (value[:-1], value[-1:])
    if unit not in UNITS or not (number.isascii() and number.isdecimal()):
        raise typer.BadParameter(f"{value!r} is not a duration such as 90d, 12h, 30m or 45s", param_hint=hint)
    return int(number) * UNITS[unit]


UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _parse_json(text: str, hint: str, where: str = "") -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise typer.BadParameter(f"{where}not JSON: {error}", param_hint=hint) from None


def _decode(data: bytes, name: str, hint: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{name} is not UTF-8 at byte {error.start}", param_hint=hint) from None
