"""Recorded trajectories of tool-calling agents, and the values that an agent needs from them after a commit.

The trajectories are an optional JSON file of `{id, messages}` in OpenAI's format, `agent_dev.json`, in the folder that
`HOLDFAST_DATA` names or in `../shared/data`. They are not part of the project.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.client.sync.client import Client

FILE = "agent_dev.json"
MIN_MESSAGES_BEFORE_CUT = 6
MIN_VALUE_CHARS = 3
MAX_LINE_CHARS = 300
BATCH_SIZE = 100


class Trajectory(msgspec.Struct, frozen=True):
    id: str
    messages: list[dict[str, Any]]


class Cut(msgspec.Struct, frozen=True):
    """The first half of a trajectory, and the values in it that calls of the second half use."""

    id: str
    before: list[dict[str, Any]]
    text: str
    needed: dict[str, set[str]]
    """For each value, the argument names under which later calls use it."""


def find_data_file() -> Path | None:
    """Return the path of the trajectories, or None if they are not on this machine."""
    folder = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[3] / "shared" / "data")
    return folder / FILE if (folder / FILE).is_file() else None


def load_trajectories(file: Path) -> list[Trajectory]:
    return msgspec.json.decode(file.read_bytes(), type=list[Trajectory])


def cut_in_middle(trajectory: Trajectory) -> Cut:
    """Cut a trajectory in the middle, but not between a call and its result. System messages are removed."""
    messages = [message for message in trajectory.messages if message["role"] != "system"]
    at = max(MIN_MESSAGES_BEFORE_CUT, len(messages) // 2)
    while at < len(messages) and messages[at]["role"] == "tool":
        at += 1
    before = messages[:at]
    text = "\n".join(message_text(message) for message in before)
    needed: dict[str, set[str]] = {}
    for message in messages[at:]:
        for call in message.get("tool_calls") or []:
            for key, value in _scalars("", msgspec.json.decode(call["function"]["arguments"])):
                if len(value) >= MIN_VALUE_CHARS and value in text:
                    needed.setdefault(value, set()).add(key)
    return Cut(trajectory.id, before, text, needed)


def message_text(message: dict[str, Any]) -> str:
    """Return the text of a message, with the names and arguments of its calls."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    pieces = [message.get("content"), *(piece for call in calls for piece in (call["name"], call["arguments"]))]
    return "\n".join(piece for piece in pieces if piece)


def commit_and_read_overview(client: Client, session_id: str, messages: Sequence[dict[str, Any]]) -> str:
    """Add messages to a session, commit it, and return the overview."""
    session = client.session(session_id)
    for start in range(0, len(messages), BATCH_SIZE):
        session.add_messages(list(messages[start : start + BATCH_SIZE]))
    client.wait_for_task(str(session.commit().task_id))
    return session.context().latest_archive_overview


def find_labelled_values(cut: Cut, overview: str) -> set[str]:
    """Return the needed values that are on a short line together with their field, their tool or the user."""
    lines = [line for line in overview.splitlines() if len(line) <= MAX_LINE_CHARS]
    return {
        value
        for value, keys in cut.needed.items()
        if any(value in line and _is_labelled(line, value, _labels(cut, value, keys)) for line in lines)
    }


def count_open_calls(messages: Sequence[dict[str, Any]]) -> int:
    """Return the number of calls without a result. The id of an answered call may be used again."""
    open_calls: Counter[str] = Counter()
    for message in messages:
        open_calls.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            open_calls[message["tool_call_id"]] -= 1
    return sum(count for count in open_calls.values() if count > 0)


def open_call_lines(overview: str) -> list[str]:
    """Return the lines that report a call as open."""
    return [line for line in overview.splitlines() if "→ no result yet" in line or "→ still running" in line]


def last_messages_within(messages: Sequence[dict[str, Any]], budget: int, count: Callable[[str], int]) -> str:
    """Return the text of as many last messages as fit: the context of an agent without summaries."""
    text = ""
    for message in reversed(messages):
        longer = f"{message_text(message)}\n{text}"
        if count(longer) > budget:
            break
        text = longer
    return text


def _labels(cut: Cut, value: str, keys: set[str]) -> set[str]:
    """Return what a line may call a value: its fields, and the tools and arguments of the calls that contain it."""
    labels = {word for key in keys for word in (key, key.replace("_", " "), key.removesuffix("_id"))}
    results = {message["tool_call_id"]: message["content"] for message in cut.before if message["role"] == "tool"}
    for message in cut.before:
        for call in message.get("tool_calls") or []:
            arguments = list(_scalars("", msgspec.json.decode(call["function"]["arguments"])))
            result = list(_scalars("", _decode(results.get(call["id"]))))
            fields = {key for key, text in (*arguments, *result) if text == value}
            if fields or value in str(results.get(call["id"])):
                labels |= {call["function"]["name"], *fields, *(text for _, text in arguments)}
    if any(value in (message["content"] or "") for message in cut.before if message["role"] == "user"):
        labels.add("- User:")
    return {label for label in labels if len(label) >= MIN_VALUE_CHARS}


def _is_labelled(line: str, value: str, labels: set[str]) -> bool:
    rest = line.replace(value, " ").lower()
    return any(label.lower() in rest for label in labels)


def _decode(content: Any) -> Any:
    try:
        return msgspec.json.decode(content or "null")
    except msgspec.DecodeError:
        return content


def _scalars(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _scalars(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(key, inner)
    elif value is not None and not isinstance(value, bool):
        yield key, str(value)
