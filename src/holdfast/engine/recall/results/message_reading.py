"""Reads the messages that were found, and those around them, within the maximum size of an answer."""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.model.messages import Message
from holdfast.model.parts import TextPart
from holdfast.search.results.excerpts import excerpt
from holdfast.store import read_memory
from holdfast.store.access.search import message_places
from holdfast.store.database import Tx
from holdfast.store.tables import lineage, messages
from holdfast.store.tables.sessions import StoredSession
from holdfast.text.words import searchable_text

ANSWER_BYTES = 1024 * 1024
"""How many bytes of messages an answer has. Further hits have excerpts, and no messages around them."""
MESSAGE_BYTES = 64 * 1024
"""A larger message is shortened."""
OVERHEAD_BYTES = 200
"""What a message in an answer has besides its parts."""
EXCERPT_CHARS = 500
EXCERPT_BYTES = 2_000
"""What an excerpt counts."""
MAX_EXCERPT_SOURCE_BYTES = 4 * 1024 * 1024
"""How many bytes are read for excerpts. Messages beyond that are named without their text."""
_AT_ONCE = 500
"""How many messages one statement selects."""

Key = tuple[int, int]
"""A log, and the sequence number of a message in it."""


class FoundMessage(msgspec.Struct, frozen=True):
    session: StoredSession
    seq: int


class ReadMessage(msgspec.Struct, frozen=True):
    message: Message
    around: list[Message]
    is_shortened: bool


def read_found(tx: Tx, found: Sequence[FoundMessage], around: int, words: Sequence[str]) -> list[ReadMessage]:
    """Read messages, best first, and up to `around` messages before and after each.

    The best hits get their whole text first, and what comes before and after them last.
    """
    keys = [_keys_around(tx, each, around) for each in found]
    sizes = _sizes(tx, {key for hit_keys in keys for key in hit_keys.values()})
    choice = _choose(found, keys, sizes)
    whole = (set(choice.hits) - choice.shortened).union(*choice.around)
    read_memory.require(sum(sizes[key] for key in whole))
    read = {**_read(tx, whole), **_read_shortened(tx, choice.shortened, sizes, words)}
    return [
        ReadMessage(
            read[key],
            [read[neighbour] for neighbour in around_it],
            is_shortened=key in choice.shortened or len(around_it) < len(hit_keys) - 1,
        )
        for key, around_it, hit_keys in zip(choice.hits, choice.around, keys, strict=True)
    ]


def _keys_around(tx: Tx, found: FoundMessage, around: int) -> dict[int, Key]:
    """Return where the messages are stored that belong to a hit, by sequence number. A fork shares its first ones."""
    first, last = max(1, found.seq - around), found.seq + around
    return {
        seq: (log_range.log_id, seq)
        for log_range in lineage.log_ranges(tx, found.session, first, last)
        for seq in range(log_range.first, log_range.last + 1)
    }


class _Choice(msgspec.Struct, frozen=True):
    hits: list[Key]
    shortened: set[Key]
    around: list[list[Key]]
    """The messages around each hit that fit into the answer, which has one as often as it is around a hit."""


def _choose(found: Sequence[FoundMessage], keys: Sequence[dict[int, Key]], sizes: dict[Key, int]) -> _Choice:
    """Choose which messages to read whole."""
    bytes_left = ANSWER_BYTES
    hits = [each_keys[each.seq] for each, each_keys in zip(found, keys, strict=True)]
    shortened = set[Key]()
    for key in hits:
        is_short = sizes[key] > min(MESSAGE_BYTES, bytes_left)
        if is_short:
            shortened.add(key)
        bytes_left -= EXCERPT_BYTES if is_short else sizes[key] + OVERHEAD_BYTES
    around: list[list[Key]] = []
    for hit, each_keys in zip(hits, keys, strict=True):
        fitting: list[Key] = []
        for _, key in sorted(each_keys.items()):
            if key != hit and key not in shortened and sizes[key] + OVERHEAD_BYTES <= min(MESSAGE_BYTES, bytes_left):
                fitting.append(key)
                bytes_left -= sizes[key] + OVERHEAD_BYTES
        around.append(fitting)
    return _Choice(hits, shortened, around)


def _sizes(tx: Tx, keys: set[Key]) -> dict[Key, int]:
    """Return the sizes of messages. One that cannot be read has size 0: a placeholder takes its place."""
    sizes = dict.fromkeys(keys, 0)
    for some in _parts(sorted(keys), _AT_ONCE):
        sizes |= message_places.sizes(tx, some)
    return sizes


def _read(tx: Tx, keys: set[Key]) -> dict[Key, Message]:
    read: dict[Key, Message] = {}
    for some in _parts(sorted(keys), _AT_ONCE):
        read |= message_places.read(tx, some)
    return read


def _read_shortened(tx: Tx, keys: set[Key], sizes: dict[Key, int], words: Sequence[str]) -> dict[Key, Message]:
    """Read large messages one by one, and keep only an excerpt of each."""
    bytes_left = MAX_EXCERPT_SOURCE_BYTES
    shortened: dict[Key, Message] = {}
    for log_id, seq in sorted(keys):
        bytes_left -= sizes[log_id, seq]
        shortened[log_id, seq] = (
            _with_excerpt(tx, log_id, seq, sizes[log_id, seq], words)
            if bytes_left >= 0
            else messages.read_header(tx, log_id, seq, _too_large(sizes[log_id, seq]))
        )
    return shortened


def _with_excerpt(tx: Tx, log_id: int, seq: int, size: int, words: Sequence[str]) -> Message:
    if size > MAX_EXCERPT_SOURCE_BYTES:
        return messages.read_header(tx, log_id, seq, _too_large(size))
    read_memory.require(size)
    (message,) = messages.read_seqs(tx, log_id, [seq])
    text = message.text or searchable_text(message.parts)
    return msgspec.structs.replace(message, parts=[TextPart(excerpt(text, words, EXCERPT_CHARS))], metadata=None)


def _too_large(size: int) -> str:
    return f"[... a message of {size:,} bytes]"


def _parts(keys: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
