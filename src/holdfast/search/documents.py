"""Documents as the ranker sees them."""

from typing import NamedTuple


class Place(NamedTuple):
    """Where a document is: a message in its log, or another document by its number alone, with log 0."""

    log_id: int
    number: int


class Document(NamedTuple):
    """A row of the index, without its vector."""

    n: int
    kind: str
    owner_id: str
    log_id: int | None
    number: int
    """The sequence number of a message, the number of the archive of an overview, or the part of a file."""
    level: int
    role: str
    speaker: str
    created_at: int
    words: str
    """Its terms, separated by spaces."""
    dates: str
    """JSON: the first and the last day of each period in its text."""
    flags: int
    tags: str
    """JSON: a list of texts."""

    @property
    def place(self) -> Place:
        return Place(self.log_id or 0, self.number if self.log_id else self.n)
