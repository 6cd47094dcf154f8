"""What a command is given: an argument itself, `-` for the standard input, `@file` for a file."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import typer


def text(value: str, hint: str) -> str:
    """The text that an argument stands for."""
    if value == "-":
        return _decoded(sys.stdin.buffer.read(), "the standard input", hint)
    if value.startswith("@"):
        try:
            return _decoded(Path(value[1:]).read_bytes(), value[1:], hint)
        except OSError as error:
            raise typer.BadParameter(f"{value[1:]} cannot be read: {error.strerror}", param_hint=hint) from None
    return value


def json(value: str, hint: str, kind: type, name: str) -> Any:
    """The JSON that an argument stands for, if it is a `kind`."""
    read = _json(text(value, hint), hint)
    if not isinstance(read, kind):
        raise typer.BadParameter(f"not {name}, such as {EXAMPLES[kind]}", param_hint=hint)
    return read


EXAMPLES: dict[type, str] = {
    dict: '{"topic":"login"}',
    list: '[{"type":"text","text":"Hello"}]',
}


def items(value: str, hint: str) -> list[Any]:
    """An array, one object, or an object on each line."""
    whole = text(value, hint)
    try:
        read = msgspec.json.decode(whole)
    except msgspec.DecodeError:
        filled = [line for line in whole.splitlines() if line.strip()]
        if len(filled) < 2:  # noqa: PLR2004 - one line is a document, and its own error says more
            return [_json(whole, hint)]
        return [_json(line, hint, f"line {number}: ") for number, line in enumerate(filled, 1)]
    return read if isinstance(read, list) else [read]


def seconds(value: str | None, hint: str) -> int | None:
    """A length of time in seconds.

    >>> seconds("90d", "--expires-in")
    7776000
    """
    if value is None:
        return None
    number, unit = (value, "s") if value.isdecimal() else (value[:-1], value[-1:])
    if unit not in UNITS or not (number.isascii() and number.isdecimal()):
        raise typer.BadParameter(f"{value!r} is not a time such as 90d, 12h, 30m or 45s", param_hint=hint)
    return int(number) * UNITS[unit]


UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _json(source: str, hint: str, where: str = "") -> Any:
    try:
        return msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError) as error:
        raise typer.BadParameter(f"{where}not JSON: {error}", param_hint=hint) from None


def _decoded(data: bytes, name: str, hint: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{name} is not UTF-8 at byte {error.start}", param_hint=hint) from None
