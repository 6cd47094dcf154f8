"""The texts of documents, for embedding. The index has only their words."""

from collections import defaultdict
from collections.abc import Sequence

from holdfast.engine.recall.document_kinds import MESSAGE, OVERVIEW
from holdfast.store.checked import archive_rows
from holdfast.store.database import Tx
from holdfast.store.tables import messages
from holdfast.store.tables.embeddings.vectors import DocumentToEmbed
from holdfast.text.words import searchable_text

MAX_TEXT_CHARS = 2_000
"""What is embedded of a text. The beginning of a long one says what it is about; embedders read not much more."""
MAX_BATCH_BYTES = 4 * 1024 * 1024
"""About how much is read at once. At least one document is read, whatever its size."""


def read_texts(tx: Tx, documents: Sequence[DocumentToEmbed]) -> list[str]:
    """Read the texts of the first documents, as many as are not too large together. At least one is read.

    A document that does not exist any more, or is damaged, has an empty text.
    """
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for document in documents:
        if document.log_id is not None:
            numbers[document.kind, document.log_id].append(document.number)
    sizes = {
        (log_id, seq): size
        for (kind, log_id), seqs in numbers.items()
        if kind == MESSAGE
        for seq, size in messages.sizes(tx, log_id, seqs).items()
    }
    fitting = _fitting(documents, sizes)
    texts: dict[tuple[str, int | None, int], str] = {}
    for (kind, log_id), seqs in numbers.items():
        wanted = {each.number for each in fitting if each.kind == kind and each.log_id == log_id}
        for number, text in _texts_of_log(tx, kind, log_id, [seq for seq in seqs if seq in wanted]).items():
            texts[kind, log_id, number] = text[:MAX_TEXT_CHARS]
    return [texts.get((each.kind, each.log_id, each.number), "") for each in fitting]


def _fitting(documents: Sequence[DocumentToEmbed], sizes: dict[tuple[int, int], int]) -> Sequence[DocumentToEmbed]:
    total = 0
    for index, document in enumerate(documents):
        total += sizes.get((document.log_id or 0, document.number), 0)
        if total > MAX_BATCH_BYTES and index:
            return documents[:index]
    return documents


def _texts_of_log(tx: Tx, kind: str, log_id: int, numbers: list[int]) -> dict[int, str]:
    if not numbers:
        return {}
    if kind == MESSAGE:
        stored = messages.read_seqs(tx, log_id, sorted(set(numbers)))
        return {message.seq: searchable_text(message.parts) for message in stored if not message.damaged}
    if kind == OVERVIEW:
        found = [archive for number in numbers for archive in archive_rows.select(tx, log_id, "number = ?", (number,))]
        return {archive.number: archive.overview for archive in found if not archive.is_damaged}
    return {}
