"""The texts of documents, for embedding. The index has only their words."""

from collections import defaultdict
from collections.abc import Sequence

from holdfast.engine.recall.document_kinds import DOCUMENT_KINDS, MESSAGE
from holdfast.engine.recall.retrieval import DocumentText
from holdfast.store.database import Tx
from holdfast.store.tables import messages
from holdfast.store.tables.embeddings.vectors import DocumentToEmbed

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
        numbers[document.kind, _container(document)].append(document.number)
    sizes = {
        (log_id, seq): size
        for (kind, log_id), seqs in numbers.items()
        if kind == MESSAGE
        for seq, size in messages.sizes(tx, log_id, seqs).items()
    }
    fitting = _fitting(documents, sizes)
    texts: dict[tuple[str, int, int], str] = {}
    for (kind, container), some in numbers.items():
        wanted = {each.number for each in fitting if each.kind == kind and _container(each) == container}
        found = DOCUMENT_KINDS[kind].read_texts(tx, container, [number for number in some if number in wanted])
        for number, text in found.items():
            texts[kind, container, number] = _embedded_text(text)
    return [texts.get((each.kind, _container(each), each.number), "") for each in fitting]


def _container(document: DocumentToEmbed) -> int:
    """Return the log or the content of a document."""
    return document.log_id or document.content_id or 0


def _embedded_text(text: DocumentText) -> str:
    """Return the beginning of a text. The title of a part says what it is about."""
    return (f"{text.title}\n{text.content}" if text.title else text.content)[:MAX_TEXT_CHARS]


def _fitting(documents: Sequence[DocumentToEmbed], sizes: dict[tuple[int, int], int]) -> Sequence[DocumentToEmbed]:
    total = 0
    for index, document in enumerate(documents):
        total += sizes.get((document.log_id or 0, document.number), 0)
        if total > MAX_BATCH_BYTES and index:
            return documents[:index]
    return documents
