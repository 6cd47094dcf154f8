"""The documents of a stored file or folder: its overview, and each of its parts."""

from collections.abc import Sequence

import msgspec

from holdfast.search.analysis import analyse
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.embeddings import unembedded
from holdfast.text.words import indexed_words

OVERVIEW_NUMBER = 0
OVERVIEW_LEVEL, PART_LEVEL = 1, 2


class IndexedPart(msgspec.Struct, frozen=True):
    """A text of a file or folder that is searched."""

    number: int
    """The number of the part, from 1; or `OVERVIEW_NUMBER` for the overview of the whole file or folder."""
    text: str
    """The title and the text of the part; or the name, the abstract and the overview."""


def analyse_parts(
    kind: str, content_id: int, created_at: int, tags: Sequence[str], parts: Sequence[IndexedPart]
) -> list[NewDocument]:
    """Return the documents of the content of a file or folder. It computes: call it outside a transaction."""
    encoded_tags = msgspec.json.encode(list(tags)).decode()
    found: list[NewDocument] = []
    for part in parts:
        analysis = analyse(part.text, created_at)
        found.append(
            NewDocument(
                kind=kind,
                log_id=None,
                number=part.number,
                level=OVERVIEW_LEVEL if part.number == OVERVIEW_NUMBER else PART_LEVEL,
                role="",
                speaker="",
                created_at=created_at,
                flags=analysis.flags,
                dates=msgspec.json.encode(analysis.dates).decode(),
                words=analysis.words,
                text=" ".join(indexed_words(part.text)),
                tags=encoded_tags,
                content_id=content_id,
            )
        )
    return found


def write_documents(tx: Tx, owner_id: str, content_id: int, new: Sequence[NewDocument]) -> None:
    """Replace the documents of a content. The owner is a user, or `roots.EVERYONE`."""
    documents.delete_of_content(tx, content_id)
    documents.insert(tx, owner_id, new)
    if new:
        unembedded.add(tx, owner_id)
