"""Tool calls as sentences: what was asked, how it ended, and what came back."""

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.context.summary.sentences import Piece, bounded, flat
from holdfast.context.summary.shortening import shorten, width_of
from holdfast.parts import ToolPart

OUTPUT_CHARS = 4_000
"""What is read of a tool's output, from its beginning and its end."""
_ARGUMENTS_WIDTH, _FAILED_ARGUMENTS_WIDTH = 90, 60
_OUTCOME_WIDTH = 160
_PIECE_CHARS = 200
_TELLING = (
    "error",
    "Error",
    "Exception",
    "FAILED",
    "failed",
    "fatal",
    "denied",
    "refused",
    "错误",
    "失败",
    "异常",
    "超时",
)
_HEAD, _TAIL = 14, 8
_DEPTH = 4
_FIELDS = 60


def sentences_of(part: ToolPart) -> Iterator[Piece]:
    """The call in one sentence, with the error if it failed, then what came back."""
    name = flat(part.tool_name)[:80] or "tool"
    width = _ARGUMENTS_WIDTH if part.tool_status != "error" else _FAILED_ARGUMENTS_WIDTH
    call = f"{name}({shorten(_told(part.tool_input), width)})"
    lines = [line for line in _lines(part.tool_output) if line]
    if part.tool_status == "error":
        telling = _telling(lines)
        yield Piece(f"{call} → error: {shorten(telling, _OUTCOME_WIDTH)}" if telling else f"{call} → error", "failure")
        lines = [line for line in lines if line != telling or width_of(line) > _OUTCOME_WIDTH]
    elif part.tool_status in {"pending", "running"} and not lines:
        yield Piece(f"{call} → {part.tool_status}", "call")
    else:
        yield Piece(f"{call} → {shorten(lines[0], _OUTCOME_WIDTH)}" if lines else call, "call")
        if lines and width_of(lines[0]) <= _OUTCOME_WIDTH:
            lines = lines[1:]
    for line in lines:
        yield Piece(f"{name}: {line}", "output")


def _telling(lines: list[str]) -> str:
    """The line that says what went wrong: of a traceback the last, else the first that names an error."""
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if any(word in line for word in _TELLING)), lines[0] if lines else "")


def _lines(output: Any) -> list[str]:
    value = _decoded(output)
    if isinstance(value, str):
        lines = [flat(line)[:400] for line in bounded(value, OUTPUT_CHARS).splitlines() if line.strip()]
        middle = [line for line in lines[_HEAD:-_TAIL] if any(word in line for word in _TELLING)]
        return lines if len(lines) <= _HEAD + _TAIL else [*lines[:_HEAD], *middle[:_TAIL], *lines[-_TAIL:]]
    return _packed(_fields(value))


def _decoded(output: Any) -> Any:
    """JSON that a tool returned as text, as what it is."""
    if isinstance(output, str) and output[:1] in {"{", "["} and len(output) <= 4 * OUTPUT_CHARS:
        try:
            return msgspec.json.decode(output)
        except msgspec.DecodeError:
            return output
    return "" if output is None else output


def _told(value: Any) -> str:
    """Arguments as `key=value`; a lone one without its key."""
    value = _decoded(value)
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, str):
        return flat(value[:600])
    return ", ".join(_fields(value))


def _fields(value: Any) -> list[str]:
    found: list[str] = []
    _walk("", value, found, _DEPTH)
    return found


def _walk(key: str, value: Any, found: list[str], depth: int) -> None:
    if len(found) >= _FIELDS:
        return
    if isinstance(value, dict) and depth:
        for name, inner in value.items():
            _walk(str(name), inner, found, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            _walk(key, inner, found, depth - 1)
    elif value is not None and value != "":
        told = flat(value[:600]) if isinstance(value, str) else flat(msgspec.json.encode(value).decode()[:600])
        found.append(f"{flat(key)[:60]}={told}" if key else told)


def _packed(fields: list[str]) -> list[str]:
    """Fields joined to lines of a readable length."""
    lines: list[str] = []
    for field in fields:
        if lines and len(lines[-1]) + len(field) < _PIECE_CHARS:
            lines[-1] += f", {field}"
        else:
            lines.append(field)
    return lines
