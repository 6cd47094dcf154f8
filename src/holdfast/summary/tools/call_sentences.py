"""Tool calls as sentences: what was asked, how it ended, and what came back as text."""

from collections.abc import Iterator

from holdfast.model.parts import as_text
from holdfast.summary.tools.pairing import ToolCall, tool_name
from holdfast.summary.tools.structure import is_structured, pairs
from holdfast.summary.tools.values import has_values, signature
from holdfast.text.sentences import Piece, bounded, flat
from holdfast.text.shortening import shorten, width_of

OUTPUT_CHARS = 4_000
"""What is read of a tool's output, from its beginning and its end."""
_ARGUMENTS_WIDTH, _FAILED_ARGUMENTS_WIDTH = 90, 60
_OUTCOME_WIDTH = 160
_LINE_CHARS = 400
_ALARMS = (
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
_FAILED = ("error:", "error ", "traceback ", "exception:", "fatal:")
_HEAD, _TAIL = 14, 8


def sentences_of(call: ToolCall) -> Iterator[Piece]:
    """The call in one sentence, with the error if it failed, then what came back. Values have lines of their own."""
    lines = [line for line in _lines(call) if line]
    if is_failed(call):
        cause = _cause(lines)
        short = signature(call, _FAILED_ARGUMENTS_WIDTH)
        yield Piece(f"{short} → error: {shorten(cause, _OUTCOME_WIDTH)}" if cause else f"{short} → error", "failure")
        lines = [line for line in lines if line != cause or width_of(line) > _OUTCOME_WIDTH]
    elif has_values(call):
        return
    elif call.is_open:
        yield Piece(open_call(call), "open")
    else:
        short = signature(call, _ARGUMENTS_WIDTH)
        yield Piece(f"{short} → {shorten(lines[0], _OUTCOME_WIDTH)}" if lines else short, "call")
        if lines and width_of(lines[0]) <= _OUTCOME_WIDTH:
            lines = lines[1:]
    name = tool_name(call.name)
    for line in lines:
        yield Piece(f"{name}: {line}", "output")


def open_call(call: ToolCall) -> str:
    """A call without a result, as an item that is still to be done."""
    return f"{signature(call)} → {'still running' if call.status == 'running' else 'no result yet'}"


def is_failed(call: ToolCall) -> bool:
    """Whether a call says that it failed, by its status or by how its answer begins."""
    if call.status == "error":
        return True
    return not call.is_open and isinstance(call.output, str) and call.output[:12].lower().startswith(_FAILED)


def _cause(lines: list[str]) -> str:
    """The line that says what went wrong: of a traceback the last, else the first that names an error."""
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if any(word in line for word in _ALARMS)), lines[0] if lines else "")


def _lines(call: ToolCall) -> list[str]:
    answer = call.answer
    if is_structured(answer):
        return [shorten(pairs(answer), _LINE_CHARS)]
    lines = [flat(line)[:_LINE_CHARS] for line in bounded(as_text(answer), OUTPUT_CHARS).splitlines() if line.strip()]
    middle = [line for line in lines[_HEAD:-_TAIL] if any(word in line for word in _ALARMS)]
    return lines if len(lines) <= _HEAD + _TAIL else [*lines[:_HEAD], *middle[:_TAIL], *lines[-_TAIL:]]
