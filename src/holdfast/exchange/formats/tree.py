"""Holdfast's own export, read from its files. Unknown files are skipped: a later version may have written them.

In the first format, the `messages.jsonl` of a session has all messages. Since the second, it has the live messages,
and the files of the archives have the earlier ones. Both are read in the same way: if the live messages do not begin
with the first message, the archives come before them.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.exchange.file_names import file_name
from holdfast.exchange.formats.records import ImportSource, SessionRecord, unreadable_session
from holdfast.exchange.layout import MANIFEST, config_of, output_files, read_manifest, sessions_folder
from holdfast.json_documents import json_decoder
from holdfast.model.archives import archive_id
from holdfast.model.base import require_name
from holdfast.model.messages import Message, NewMessage
from holdfast.model.parts import Part, ToolPart
from holdfast.model.sessions import Fork
from holdfast.model.tree.files import HISTORY, MESSAGES, META, RELATIONS, Meta, Relations, Use

T = TypeVar("T")


class _Seq(msgspec.Struct, frozen=True):
    seq: int


_decode_seq = msgspec.json.Decoder(_Seq).decode
_decode_meta = msgspec.json.Decoder(Meta).decode
_decode_message = json_decoder(Message).decode
_decode_relations = msgspec.json.Decoder(Relations).decode


def open_export(folder: Path) -> ImportSource:
    """Open an exported folder, or the folder of one exported session."""
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder / MANIFEST)
        parent = sessions_folder(folder, manifest.user_id)
        return _source({session_id: parent / file_name(session_id) for session_id in manifest.sessions})
    if (folder / META).exists():
        return _source({_read_meta(folder).session_id: folder})
    raise InvalidArgumentError(
        "source",
        f"{str(folder)!r} is not an export: it has neither a {MANIFEST} nor (as the folder of one session) a {META};"
        " use the folder of an export, or a file",
    )


def _source(folders: dict[str, Path]) -> ImportSource:
    def sessions() -> Iterator[SessionRecord]:
        forks = _find_forks(folders)
        for session_id in _parents_first(list(folders), forks):
            yield _record(session_id, folders[session_id], forks.get(session_id))

    return ImportSource(format="holdfast", sessions=sessions, is_independent=True)


def _record(session_id: str, folder: Path, fork: Fork | None) -> SessionRecord:
    try:
        meta = _read_meta(folder)
    except HoldfastError as error:
        return unreadable_session(session_id, error)
    lost_origin = meta.forked_from if fork is None else None
    return SessionRecord(
        session_id=session_id,
        messages=lambda: _read_messages(folder, meta.message_count),
        uses=lambda: _read_uses(folder),
        title=meta.title,
        metadata=meta.metadata,
        created_at=meta.created_at,
        state=meta.state,
        config=config_of(meta),
        origin=meta.forked_from,
        fork=fork,
        note=""
        if lost_origin is None
        else f"no longer a fork: its origin, {lost_origin.session_id}, is not in this export",
    )


def _find_forks(folders: dict[str, Path]) -> dict[str, Fork]:
    """The forks whose origin is in the export and has the shared messages.

    A session with the origin's id may be a different one, if the origin was deleted and its id reused.
    """
    forks: dict[str, Fork] = {}
    readable: set[str] = set()
    for session_id, folder in folders.items():
        try:
            fork = _read_meta(folder).forked_from
        except HoldfastError:
            continue  # the import of this session reports the error
        readable.add(session_id)
        if fork is None or fork.session_id not in folders:
            continue
        shared = (
            fork.session_id in readable
            if fork.seq == 0
            else _share_messages(folders[fork.session_id], folder, fork.seq)
        )
        if shared:
            forks[session_id] = fork
    return forks


def _share_messages(folder: Path, other: Path, count: int) -> bool:
    """Whether the first `count` messages of two sessions are equal."""
    try:
        pairs = zip(_message_lines(folder), _message_lines(other), strict=False)
        equal = sum(line == other_line for (_, line), (_, other_line) in islice(pairs, count))
    except InvalidArgumentError:
        return False
    return equal == count


def _parents_first(session_ids: list[str], forks: dict[str, Fork]) -> list[str]:
    """The given order, except that an origin precedes its forks. Clocks that differ can list a fork first."""
    ordered: dict[str, None] = {}
    for session_id in session_ids:
        ancestry = [session_id]
        while ancestry[-1] in forks and forks[ancestry[-1]].session_id not in {*ancestry, *ordered}:
            ancestry.append(forks[ancestry[-1]].session_id)
        ordered |= dict.fromkeys(reversed(ancestry))
    return list(ordered)


def _read_messages(folder: Path, count: int) -> Iterator[NewMessage]:
    seq = 0
    for seq, (where, line) in enumerate(_message_lines(folder), 1):
        message = _decode(where, line, _decode_message)
        if message.seq != seq:
            raise InvalidArgumentError(where, f"has seq {message.seq} instead of {seq}; export again")
        yield _new_message(message, folder)
    if seq != count:
        raise InvalidArgumentError(
            str(folder / MESSAGES), f"has {seq} of {count} messages; it was truncated, export again"
        )


def _message_lines(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the messages of the archives, then the live messages, each with its file and line for errors."""
    first_line = next(_lines(folder / MESSAGES), None)
    first_live = None if first_line is None else _decode(*first_line, _decode_seq).seq
    seq = 0
    number = 1
    while (folder / HISTORY / archive_id(number)).exists() and first_live != seq + 1:
        for where, line in _lines(folder / HISTORY / archive_id(number) / MESSAGES):
            seq += 1
            yield where, line
        number += 1
    yield from _lines(folder / MESSAGES)


def _lines(file: Path) -> Iterator[tuple[str, bytes]]:
    with _read(file, lambda path: path.open("rb")) as lines:
        for number, line in enumerate(lines, 1):
            yield f"{file}, line {number}", line


def _new_message(message: Message, folder: Path) -> NewMessage:
    return NewMessage(
        role=message.role,
        parts=[_with_whole_output(part, folder) for part in message.parts],
        id=message.id,
        peer_id=message.peer_id,
        turn_id=message.turn_id,
        message_kind=message.message_kind,
        source_message_ids=message.source_message_ids,
        created_at=message.created_at,
        metadata=message.metadata,
    )


def _with_whole_output(part: Part, folder: Path) -> Part:
    """Replace the preview of a large tool output by the whole output, read from its file."""
    if not isinstance(part, ToolPart) or not part.tool_result_id:
        return part
    require_name("tool_result_id", part.tool_result_id)  # it becomes a part of a path
    files = output_files(folder, part.tool_id, part.tool_result_id)
    file = next((file for file in files if file.exists()), files[0])
    output = _decode(str(file), _read(file, Path.read_bytes), bytes.decode)
    if len(output) != part.tool_output_chars:
        raise InvalidArgumentError(
            str(file), f"has {len(output)} of {part.tool_output_chars} characters; it was truncated, export again"
        )
    return msgspec.structs.replace(part, tool_output=output, tool_result_id="", tool_output_chars=0)


def _read_uses(folder: Path) -> list[Use]:
    file = folder / RELATIONS
    return _decode(str(file), _read(file, Path.read_bytes), _decode_relations).uses


def _read_meta(folder: Path) -> Meta:
    file = folder / META
    return _decode(str(file), _read(file, Path.read_bytes), _decode_meta)


def _read(file: Path, read: Callable[[Path], T]) -> T:
    try:
        return read(file)
    except FileNotFoundError:
        raise InvalidArgumentError(str(file), "is missing; the export was not finished, export again") from None
    except OSError as error:
        raise InvalidArgumentError(str(file), f"cannot be read: {error.strerror}") from None


def _decode(where: str, content: bytes, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(where, f"is damaged: {error}; export again") from None
