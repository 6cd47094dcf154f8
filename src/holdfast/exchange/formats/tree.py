"""An export, read back from its files. Files that are not known are passed by: a later version may have put them."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.exchange.file_names import file_name
from holdfast.exchange.formats.records import SessionRecord, Source, broken
from holdfast.exchange.layout import MANIFEST, config_of, output_file, read_manifest, sessions_folder, tool_folder
from holdfast.model.base import require_name
from holdfast.model.files import MESSAGES, META, RELATIONS, Meta, Relations, Use
from holdfast.model.messages import Message, NewMessage
from holdfast.model.parts import Part, ToolPart
from holdfast.model.sessions import Fork

T = TypeVar("T")

_decode_meta = msgspec.json.Decoder(Meta).decode
_decode_message = msgspec.json.Decoder(Message).decode
_decode_relations = msgspec.json.Decoder(Relations).decode


def tree_source(folder: Path) -> Source:
    """The sessions of an export, or the one of a session's folder."""
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder / MANIFEST)
        place = sessions_folder(folder, manifest.user_id)
        return _source({session_id: place / file_name(session_id) for session_id in manifest.sessions})
    if (folder / META).exists():
        return _source({_meta(folder).session_id: folder})
    raise InvalidArgumentError(
        "source",
        f"{str(folder)!r} is not an export: it has neither a {MANIFEST} nor, as a session's folder, a {META};"
        " name the folder that was exported to, or a file",
    )


def _source(places: dict[str, Path]) -> Source:
    def sessions() -> Iterator[SessionRecord]:
        forks = _forks(places)
        for session_id in _parents_first(list(places), forks):
            yield _record(session_id, places[session_id], forks.get(session_id))

    return Source(format="holdfast", sessions=sessions, apart=True)


def _record(session_id: str, folder: Path, fork: Fork | None) -> SessionRecord:
    try:
        meta = _meta(folder)
    except HoldfastError as error:
        return broken(session_id, error)
    lost = meta.forked_from if fork is None else None
    return SessionRecord(
        session_id=session_id,
        messages=lambda: _messages(folder, meta.message_count),
        uses=lambda: _uses(folder),
        title=meta.title,
        metadata=meta.metadata,
        created_at=meta.created_at,
        state=meta.state,
        config=config_of(meta),
        origin=meta.forked_from,
        fork=fork,
        note="" if lost is None else f"no longer a fork: {lost.session_id}, which it came from, is not in this export",
    )


def _forks(places: dict[str, Path]) -> dict[str, Fork]:
    """The sessions that can be forked again: what they share is there, with the session they share it with.

    A session of the parent's name may be another one: the parent was deleted and its name used again.
    """
    forks: dict[str, Fork] = {}
    seen: set[str] = set()
    for session_id, folder in places.items():
        try:
            fork = _meta(folder).forked_from
        except HoldfastError:
            continue  # it is told when its turn comes
        seen.add(session_id)
        if fork is None or fork.session_id not in places:
            continue
        shared = fork.session_id in seen if fork.seq == 0 else _share(places[fork.session_id], folder, fork.seq)
        if shared:
            forks[session_id] = fork
    return forks


def _share(one: Path, other: Path, count: int) -> bool:
    """Whether two sessions have their first `count` messages in common."""
    try:
        with (one / MESSAGES).open("rb") as ours, (other / MESSAGES).open("rb") as theirs:
            same = [1 for our, their in zip(islice(ours, count), theirs, strict=False) if our == their]
    except OSError:
        return False
    return len(same) == count


def _parents_first(session_ids: list[str], forks: dict[str, Fork]) -> list[str]:
    """The order given, but that no fork comes before what it is forked from: clocks that differ can make it so."""
    ordered: dict[str, None] = {}
    for session_id in session_ids:
        line = [session_id]
        while line[-1] in forks and forks[line[-1]].session_id not in {*line, *ordered}:
            line.append(forks[line[-1]].session_id)
        ordered |= dict.fromkeys(reversed(line))
    return list(ordered)


def _messages(folder: Path, count: int) -> Iterator[NewMessage]:
    file = folder / MESSAGES
    number = 0
    with _read(file, lambda path: path.open("rb")) as lines:
        for number, line in enumerate(lines, 1):
            where = f"{file}, line {number}"
            message = _decoded(where, line, _decode_message)
            if message.seq != number:
                raise InvalidArgumentError(where, f"is message {message.seq} where {number} should be; export again")
            yield _incoming(message, folder)
    if number != count:
        raise InvalidArgumentError(str(file), f"has {number} of {count} messages; it was cut short, export again")


def _incoming(message: Message, folder: Path) -> NewMessage:
    return NewMessage(
        role=message.role,
        parts=[_whole(part, folder) for part in message.parts],
        id=message.id,
        peer_id=message.peer_id,
        turn_id=message.turn_id,
        message_kind=message.message_kind,
        source_message_ids=message.source_message_ids,
        created_at=message.created_at,
        metadata=message.metadata,
    )


def _whole(part: Part, folder: Path) -> Part:
    """A part with all of its tool's output."""
    if not isinstance(part, ToolPart) or not part.tool_result_id:
        return part
    require_name("tool_result_id", part.tool_result_id)  # it becomes a file's name
    file = tool_folder(folder, part.tool_id) / output_file(part.tool_result_id)
    output = _decoded(str(file), _read(file, Path.read_bytes), bytes.decode)
    if len(output) != part.tool_output_chars:
        raise InvalidArgumentError(
            str(file), f"has {len(output)} of {part.tool_output_chars} characters; it was cut short, export again"
        )
    return msgspec.structs.replace(part, tool_output=output, tool_result_id="", tool_output_chars=0)


def _uses(folder: Path) -> list[Use]:
    file = folder / RELATIONS
    return _decoded(str(file), _read(file, Path.read_bytes), _decode_relations).uses


def _meta(folder: Path) -> Meta:
    file = folder / META
    return _decoded(str(file), _read(file, Path.read_bytes), _decode_meta)


def _read(file: Path, how: Callable[[Path], T]) -> T:
    try:
        return how(file)
    except FileNotFoundError:
        raise InvalidArgumentError(str(file), "is missing; the export was not finished, export again") from None
    except OSError as error:
        raise InvalidArgumentError(str(file), f"cannot be read: {error.strerror}") from None


def _decoded(where: str, content: bytes, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(where, f"is damaged: {error}; export again") from None
