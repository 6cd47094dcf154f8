"""Tool calls as sentences: the call, its outcome, and the lines of its output."""

from collections.abc import Iterator

from holdfast.model.parts import as_text
from holdfast.summary.tools.pairing import ToolCall, tool_label
from holdfast.summary.tools.structure import format_pairs, is_structured
from holdfast.summary.tools.values import format_call, has_values
from holdfast.text.sentences import Piece, head_and_tail, to_single_line
from holdfast.text.shortening import shorten, weighted_width

MAX_OUTPUT_CHARS = 4_000
"""Characters read of a tool's output, from its beginning and its end."""
_MAX_ARGUMENTS_WIDTH, _MAX_FAILED_ARGUMENTS_WIDTH = 90, 60
_MAX_OUTCOME_WIDTH = 160
_MAX_LINE_CHARS = 400
_ERROR_WORDS = (
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
_FAILED_STARTS = ("error:", "error ", "traceback ", "exception:", "fatal:")
_HEAD_LINES, _TAIL_LINES = 14, 8


def call_sentences(call: ToolCall) -> Iterator[Piece]:
    """Return the call as one sentence, with its error if it failed, then the lines of its output.

    A call that is shown by its values has no sentence.
    """
    has_failed = is_failed(call)
    if has_values(call) and not has_failed:
        return
    lines = [line for line in _output_lines(call) if line]
    if has_failed:
        cause = _error_line(lines)
        formatted = format_call(call, _MAX_FAILED_ARGUMENTS_WIDTH)
        outcome = f": {shorten(cause, _MAX_OUTCOME_WIDTH)}" if cause else ""
        yield Piece(f"{formatted} → error{outcome}", "failed_call")
        lines = [line for line in lines if line != cause or weighted_width(line) > _MAX_OUTCOME_WIDTH]
    elif call.is_open:
        yield Piece(format_open_call(call), "open_call")
    else:
        formatted = format_call(call, _MAX_ARGUMENTS_WIDTH)
        yield Piece(f"{formatted} → {shorten(lines[0], _MAX_OUTCOME_WIDTH)}" if lines else formatted, "call")
        if lines and weighted_width(lines[0]) <= _MAX_OUTCOME_WIDTH:
            lines = lines[1:]
    label = tool_label(call.name)
    for line in lines:
        yield Piece(f"{label}: {line}", "output")


def format_open_call(call: ToolCall) -> str:
    """Return an open call as a pending item."""
    return f"{format_call(call)} → {'still running' if call.status == 'running' else 'no result yet'}"


def is_failed(call: ToolCall) -> bool:
    """Return whether a call failed, by its status or by the beginning of its output."""
    if call.status == "error":
        return True
    return not call.is_open and isinstance(call.output, str) and call.output[:12].lower().startswith(_FAILED_STARTS)


def _error_line(lines: list[str]) -> str:
    """Return the line with the error: the last line of a traceback, else the first one with an error word."""
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    return next((line for line in lines if any(word in line for word in _ERROR_WORDS)), lines[0] if lines else "")


def _output_lines(call: ToolCall) -> list[str]:
    answer = call.answer
    if is_structured(answer):
        return [shorten(format_pairs(answer), _MAX_LINE_CHARS)]
    text = head_and_tail(as_text(answer), MAX_OUTPUT_CHARS)
    lines = [to_single_line(line)[:_MAX_LINE_CHARS] for line in text.splitlines() if line.strip()]
    if len(lines) <= _HEAD_LINES + _TAIL_LINES:
        return lines
    error_words = [word for word in _ERROR_WORDS if word in text]
    errors = [line for line in lines[_HEAD_LINES:-_TAIL_LINES] if any(word in line for word in error_words)]
    return [*lines[:_HEAD_LINES], *errors[:_TAIL_LINES], *lines[-_TAIL_LINES:]]
