"""Real traffic of tool-calling agents, if it is there, and what an agent will need of it after a commit.

The trajectories are a JSON file of `{id, messages}` in OpenAI's format, `agent_dev.json`, in the folder that
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
MIN_BEFORE = 6
"""Messages before a cut."""
MIN_VALUE = 3
MAX_LINE = 300
BATCH = 100


class Trajectory(msgspec.Struct, frozen=True):
    id: str
    messages: list[dict[str, Any]]


class Cut(msgspec.Struct, frozen=True):
    """A trajectory up to its middle, and the values of later calls that it contains, each with its keys."""

    id: str
    before: list[dict[str, Any]]
    text: str
    needed: dict[str, set[str]]


def data_file() -> Path | None:
    """Where the trajectories are, or None."""
    folder = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[3] / "shared" / "data")
    return folder / FILE if (folder / FILE).is_file() else None


def trajectories(file: Path) -> list[Trajectory]:
    return msgspec.json.decode(file.read_bytes(), type=list[Trajectory])


def cut(trajectory: Trajectory) -> Cut:
    """Cut in the middle, not between a call and its result, without the system message."""
    messages = [message for message in trajectory.messages if message["role"] != "system"]
    at = max(MIN_BEFORE, len(messages) // 2)
    while at < len(messages) and messages[at]["role"] == "tool":
        at += 1
    before = messages[:at]
    text = "\n".join(text_of(message) for message in before)
    needed: dict[str, set[str]] = {}
    for message in messages[at:]:
        for call in message.get("tool_calls") or []:
            for key, value in _scalars("", msgspec.json.decode(call["function"]["arguments"])):
                if len(value) >= MIN_VALUE and value in text:
                    needed.setdefault(value, set()).add(key)
    return Cut(trajectory.id, before, text, needed)


def text_of(message: dict[str, Any]) -> str:
    """Texts, names of calls, arguments and results."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    pieces = [message.get("content"), *(piece for call in calls for piece in (call["name"], call["arguments"]))]
    return "\n".join(piece for piece in pieces if piece)


def commit(client: Client, session_id: str, messages: Sequence[dict[str, Any]]) -> str:
    """What is left of messages, which are added as they are, once they are committed."""
    session = client.session(session_id)
    for start in range(0, len(messages), BATCH):
        session.add_messages(list(messages[start : start + BATCH]))
    client.wait_for_task(str(session.commit().task_id))
    return session.context().latest_archive_overview


def labelled(cut: Cut, overview: str) -> set[str]:
    """The needed values that stand on a short line which names their field, their tool or their owner."""
    lines = [line for line in overview.splitlines() if len(line) <= MAX_LINE]
    return {
        value
        for value, keys in cut.needed.items()
        if any(value in line and _is_labelled(line, value, _labels(cut, value, keys)) for line in lines)
    }


def open_calls(messages: Sequence[dict[str, Any]]) -> int:
    """How many calls have no result; an id that was answered may be used again."""
    waiting: Counter[str] = Counter()
    for message in messages:
        waiting.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            waiting[message["tool_call_id"]] -= 1
    return sum(count for count in waiting.values() if count > 0)


def listed_calls(overview: str) -> list[str]:
    """The lines that report a call as open."""
    return [line for line in overview.splitlines() if "→ no result yet" in line or "→ still running" in line]


def last_turns(before: Sequence[dict[str, Any]], room: int, count: Callable[[str], int]) -> str:
    """As many whole messages from the end as fit: what an agent without a summary would keep."""
    kept = ""
    for message in reversed(before):
        longer = f"{text_of(message)}\n{kept}"
        if count(longer) > room:
            break
        kept = longer
    return kept


def _labels(cut: Cut, value: str, keys: set[str]) -> set[str]:
    """What a line may call a value: its fields, and the tools and arguments of the calls that it belongs to."""
    found = {word for key in keys for word in (key, key.replace("_", " "), key.removesuffix("_id"))}
    results = {message["tool_call_id"]: message["content"] for message in cut.before if message["role"] == "tool"}
    for message in cut.before:
        for call in message.get("tool_calls") or []:
            given = list(_scalars("", msgspec.json.decode(call["function"]["arguments"])))
            answered = list(_scalars("", _decoded(results.get(call["id"]))))
            fields = {key for key, text in (*given, *answered) if text == value}
            if fields or value in str(results.get(call["id"])):
                found |= {call["function"]["name"], *fields, *(text for _, text in given)}
    if any(value in (message["content"] or "") for message in cut.before if message["role"] == "user"):
        found.add("- User:")
    return {label for label in found if len(label) >= MIN_VALUE}


def _is_labelled(line: str, value: str, labels: set[str]) -> bool:
    rest = line.replace(value, " ").lower()
    return any(label.lower() in rest for label in labels)


def _decoded(content: Any) -> Any:
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
