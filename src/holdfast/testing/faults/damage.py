"""Damaged database files: random bits are flipped, and everything is read again and compared."""

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import holdfast
from holdfast.config import Settings
from holdfast.errors import HoldfastError
from holdfast.model.archives import Archive, ArchiveInfo
from holdfast.model.messages import Message
from holdfast.model.parts import ToolPart
from holdfast.store import damage
from holdfast.store.drivers.sqlite.database import SqliteDatabase

FLIPPED_BITS = 8
SESSIONS = ("plain", "tools", "archived", "fork")
MESSAGES = 24
NO_WORKERS = Settings(worker_threads=0)

Answers = dict[str, Any]
"""The result of each call by its name, or the error that it raised."""


def make_database(file: Path) -> None:
    """Make a database with messages of all kinds, large tool outputs, archives and a fork. Its log is empty."""
    with holdfast.connect(file, settings=Settings(worker_threads=1, tool_output_threshold=2_000)) as client:
        for session in ("plain", "tools", "archived"):
            client.batch_add_messages(session, [_new_message(session, number) for number in range(1, MESSAGES + 1)])
        for _ in range(2):
            task_id = client.commit_session("archived", keep_recent_count=4).task_id
            client.wait_for_task(str(task_id))
            client.batch_add_messages("archived", [_new_message("archived", number) for number in range(100, 112)])
        client.fork_session("archived", new_session_id="fork")
        client.add_message("fork", "user", "only the fork has this")
        client.session_used("plain", contexts=["viking://resources/guide.md"])
        client.update_session("plain", title="A plain session", metadata={"colour": "blue"})
        client.wait_until_idle()
    with SqliteDatabaseFile(file) as database:
        database.write("*", lambda tx: tx.all("PRAGMA user_version"))


class SqliteDatabaseFile:
    """An open database without migrations and workers."""

    def __init__(self, file: Path) -> None:
        self._database = SqliteDatabase(str(file))

    def __enter__(self) -> SqliteDatabase:
        return self._database

    def __exit__(self, *_: object) -> None:
        self._database.close()


def _new_message(session: str, number: int) -> dict[str, Any]:
    text = f"{session} {number}: the deployment to region-{number} took {number * 7} minutes. We must keep the logs."
    if session == "tools" and number % 3 == 0:
        output = f"line of output {number}\n" * (300 if number % 2 else 5)
        part = {"type": "tool", "tool_id": f"call_{number}", "tool_name": "shell", "tool_output": output}
        return {"role": "assistant", "parts": [{"type": "text", "text": text}, part | {"tool_status": "completed"}]}
    role = "user" if number % 2 else "assistant"
    message: dict[str, Any] = {"role": role, "content": text}
    if number % 5 == 0:
        message |= {"metadata": {"number": number}, "id": f"given_{session}_{number}"}
    return message


def flip_bits(file: Path, seed: int, count: int = FLIPPED_BITS) -> None:
    """Flip random bits of a file."""
    chooser = random.Random(seed)
    content = bytearray(file.read_bytes())
    for _ in range(count):
        content[chooser.randrange(len(content))] ^= 1 << chooser.randrange(8)
    file.write_bytes(content)


def read_everything(client: holdfast.Client) -> Answers:
    """Call all reading operations. Raises any error that is not one of Holdfast's."""
    answers: Answers = {}

    def ask(name: str, call: Callable[[], Any]) -> Any:
        try:
            answers[name] = call()
        except HoldfastError as error:
            answers[name] = error
        return answers[name]

    ask("sessions", client.list_sessions)
    for session in SESSIONS:
        uri = f"viking://session/{session}"
        ask(f"{session} info", lambda: client.get_session(session))  # noqa: B023
        ask(f"{session} messages", lambda: _all_messages(client, session))  # noqa: B023
        ask(f"{session} found", lambda: client.get_messages(session, q="deployment", limit=1_000).messages)  # noqa: B023
        ask(f"{session} context", lambda: client.get_session_context(session))  # noqa: B023
        ask(f"{session} events", lambda: client.read_events(session, limit=1_000))  # noqa: B023
        ask(f"{session} stats", lambda: client.session_stats(session))  # noqa: B023
        ask(f"{session} usage", lambda: client.list_usage(session))  # noqa: B023
        ask(f"{session} tree", lambda: client.tree(uri, level_limit=9))  # noqa: B023
        ask(f"{session} file", lambda: client.read(f"{uri}/messages.jsonl"))  # noqa: B023
        ask(f"{session} expanded", lambda: client.expand(session, "1-9").messages)  # noqa: B023
        ask(f"{session} archives", lambda: client.list_archives(session))  # noqa: B023
        for number in (1, 2):
            name = f"archive_{number:03d}"
            ask(f"{session} {name}", lambda: client.get_session_archive(session, name))  # noqa: B023
        outputs = ask(f"{session} outputs", lambda: client.list_tool_results(session).tool_results)  # noqa: B023
        for output in outputs if isinstance(outputs, list) else []:
            result_id = output.tool_result_id
            ask(f"{session} {result_id}", lambda: client.read_tool_result(session, result_id))  # noqa: B023
    return answers


def _all_messages(client: holdfast.Client, session: str) -> list[Message]:
    found: list[Message] = []
    first: int | None = 1
    while first is not None:
        page = client.get_messages(session, first=first, limit=10)
        found += page.messages
        first = page.next_seq
    return found


def change_everything(client: holdfast.Client) -> None:
    """Call writing operations. Raises any error that is not one of Holdfast's."""
    for session in SESSIONS:
        for call in (
            lambda: client.add_message(session, "user", "one more"),  # noqa: B023
            lambda: client.add_message(session, **_given(session)),  # noqa: B023
            lambda: client.commit_session(session),  # noqa: B023
            lambda: client.fork_session(session, new_session_id=f"{session}_again"),  # noqa: B023
            lambda: client.delete_session(f"{session}_again"),  # noqa: B023
        ):
            with suppress(HoldfastError):
                call()


def _given(session: str) -> dict[str, Any]:
    return _new_message(session, 5)


def silent_changes(before: Answers, after: Answers) -> Iterator[str]:
    """Describe each message and archive that has changed although nothing says that it is damaged."""
    for name, answer in after.items():
        if isinstance(answer, HoldfastError):
            continue
        session = name.split()[0]
        known = {
            _comparable(message) for kind in (name, f"{session} messages") for message in _messages(before.get(kind))
        }
        for message in _messages(answer):
            if not message.damaged and _comparable(message) not in known:
                yield f"{name}: message {message.seq} is now {msgspec.json.encode(message).decode()}"
        yield from _changed_archives(name, before[name], answer)


def _comparable(message: Message) -> bytes:
    """A message without complete tool outputs: of a damaged output, only the stored preview can be shown."""
    parts = [
        msgspec.structs.replace(part, tool_output="") if isinstance(part, ToolPart) and part.tool_result_id else part
        for part in message.parts
    ]
    return msgspec.json.encode(msgspec.structs.replace(message, parts=parts, tokens=0))


def _messages(answer: Any) -> list[Message]:
    if isinstance(answer, list) and answer and isinstance(answer[0], Message):
        return answer
    if isinstance(answer, Archive) or type(answer).__name__ == "SessionContext":
        return list(answer.messages)
    if type(answer).__name__ == "EventPage":
        return [event.message for event in answer.events if event.message is not None]
    return []


def _changed_archives(name: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(after, Archive) and (before.abstract, before.overview) != (after.abstract, after.overview):
        yield f"{name}: its summary has changed"
    if isinstance(after, list) and after and isinstance(after[0], ArchiveInfo):
        known = {archive.archive_id: archive for archive in before}
        for archive in after:
            if not archive.damaged and archive != known.get(archive.archive_id):
                yield f"{name}: {archive.archive_id} has changed"


def unnamed_changes(before: Answers, after: Answers) -> list[str]:
    """The names of the answers that have changed although they say nothing of damage."""
    return [
        name
        for name, answer in after.items()
        if not isinstance(answer, HoldfastError)
        and msgspec.json.encode(answer) != msgspec.json.encode(before[name])
        and b'"damaged":true' not in msgspec.json.encode(answer)
        and b"is damaged" not in msgspec.json.encode(answer)
    ]


def list_damage(file: Path) -> list[str]:
    """What `holdfast doctor --deep` finds."""
    with SqliteDatabaseFile(file) as database:
        try:
            return [found.describe() for found in damage.find(database, lambda *_: None)]
        except HoldfastError as error:
            return [error.message]


class Round(msgspec.Struct, frozen=True):
    """What one damaged file led to."""

    seed: int
    silent: list[str]
    """Messages and archives that changed without a word."""
    unnamed: list[str]
    """Answers that changed without a word."""
    damages: list[str]

    @property
    def problems(self) -> list[str]:
        """What must not happen. A change of other data, such as a title, may be named by the deep check alone."""
        return [*self.silent]


def run_round(
    original: Path, before: Answers, folder: Path, seed: int, read: Callable[[Path], Answers] | None = None
) -> Round:
    """Damage a copy of a database, read and change it. `read` opens a client in another way."""
    file = folder / f"damaged_{seed}.db"
    shutil.copyfile(original, file)
    flip_bits(file, seed)
    damages = list_damage(file)
    after = (read or read_embedded)(file)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    return Round(seed, list(silent_changes(before, after)), unnamed_changes(before, after), damages)


def read_embedded(file: Path) -> Answers:
    try:
        client = holdfast.connect(file, settings=NO_WORKERS)
    except HoldfastError as error:
        return {"connect": error}
    with client:
        answers = read_everything(client)
        change_everything(client)
    return answers
