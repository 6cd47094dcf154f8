"""Searches the documents of stored files: chooses candidates among all that a caller may read, and ranks them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.engine.gate.operation_handler import EngineResources
from holdfast.engine.recall.contents import content_vectors, visible_documents
from holdfast.engine.recall.contents.file_uses import hotness_of_files
from holdfast.engine.recall.contents.visible_documents import ABSTRACT_LEVEL, OVERVIEW_LEVEL, VisibleDocuments
from holdfast.engine.recall.document_pool import MIN_AVERAGE_LENGTH, to_document
from holdfast.engine.recall.retrieval import RankedDocument, RetrievalRequest
from holdfast.engine.recall.vector_search import QueryVector
from holdfast.model.identity import Principal
from holdfast.model.search import ContextType, Reason
from holdfast.search import part_choice
from holdfast.search.features import Pool
from holdfast.search.part_choice import PartMatches
from holdfast.search.query import Query
from holdfast.search.ranking import Ranked
from holdfast.store.access.search import content_hits
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.text.words import indexed_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_PARTS = 3
"""How many parts of one file are returned, so that a long one does not fill the list."""
MAX_HITS = 20_000
"""A word that so many documents have is counted but not looked up."""
RAISING_FOLDERS = 3
"""How many folders let more of their documents be ranked."""
MAX_REORDERED = 100
"""How many of the best documents are looked at to put folders after what was found in them."""
CLEARLY_BETTER = 0.8
"""A folder stays before its content if that has less than this share of its score."""
_SPREAD = 8
"""How many times as many parts are ranked as are returned, because few of each file are."""
HIERARCHICAL = "files were compared by their meaning from the best folders down"
RankPool = Callable[[Query, Pool, int], list[Ranked]]


class ContentRequest(NamedTuple):
    principal: Principal
    request: RetrievalRequest
    query: Query
    vector: QueryVector | None


class FoundContents(NamedTuple):
    documents: list[RankedDocument]
    searched: int
    candidates: int
    notes: list[str]


NOTHING = FoundContents([], 0, 0, [])


def search_contents(
    tx: Tx, resources: EngineResources, asked: ContentRequest, kinds: Sequence[ContextType], rank: RankPool
) -> FoundContents:
    """Find and rank documents of some kinds. The caller's rights decide before anything is scored."""
    visible = visible_documents.read_visible(resources.db, tx, asked.principal)
    if visible is None:
        return NOTHING
    terms = [indexed_words(word) for word in asked.query.words]
    hits = content_hits.find_numbers(tx, visible.owner_ids, kinds, terms, MAX_HITS)
    matches = [(each.documents, visible.rows_of(each.numbers)) for each in hits]
    found = [_search_kind(tx, resources, asked, visible, kind, matches, rank) for kind in kinds]
    return FoundContents(
        documents=[document for each in found for document in each.documents],
        searched=sum(each.searched for each in found),
        candidates=sum(each.candidates for each in found),
        notes=list(dict.fromkeys(note for each in found for note in each.notes)),
    )


def _search_kind(
    tx: Tx,
    resources: EngineResources,
    asked: ContentRequest,
    visible: VisibleDocuments,
    kind: ContextType,
    matches: Sequence[tuple[int, "Array"]],
    rank: RankPool,
) -> FoundContents:
    rows = visible_documents.rows_of_kind(visible, kind, asked.request)
    if not len(rows):
        return NOTHING
    compared = content_vectors.compare(tx, resources, visible, asked.vector, rows, kind)
    words = [_among(rows, len(visible.numbers), count, found) for count, found in matches]
    idf = part_choice.word_weights(words, len(rows))
    folders = _folder_strengths(visible, kind, matches, idf, compared.values)
    chosen = part_choice.choose(
        words,
        idf,
        len(rows),
        visible.contents[rows],
        visible.lengths[rows],
        compared.values[rows],
        _raised(visible, rows, folders),
    )
    at = rows[chosen.rows]
    pool = _pool(tx, resources, asked, visible, at, chosen.presence, idf, folders, compared.values)
    pool = pool._replace(average_length=max(float(visible.lengths[rows].mean()), MIN_AVERAGE_LENGTH))
    ranked = rank(asked.query, pool, _SPREAD * asked.request.limit) if pool.candidates else []
    row_of = dict(zip(visible.numbers[at].tolist(), at.tolist(), strict=True))
    best = _contents_first(visible, [(row_of[pool.documents[each.position].n], each) for each in ranked])
    is_one_file = len(np.unique(visible.contents[rows])) == 1
    return FoundContents(
        documents=_bounded(
            visible, kind, _contents_first(visible, best), asked.request, None if is_one_file else MAX_PARTS
        ),
        searched=len(rows),
        candidates=pool.candidates,
        notes=[HIERARCHICAL] if compared.is_hierarchical else [],
    )


def _among(rows: "Array", total: int, count: int, found: "Array") -> PartMatches:
    """Return where a word occurs among the wanted rows."""
    position = np.full(total, -1, np.int64)
    position[rows] = np.arange(len(rows))
    at = position[found]
    at = at[at >= 0]
    return PartMatches(count if count >= MAX_HITS else len(at), at)


def _folder_strengths(
    visible: VisibleDocuments, kind: str, matches: Sequence[tuple[int, "Array"]], idf: "Array", cosines: "Array"
) -> dict[tuple[int, str], float]:
    """Return how well the folders of a kind match that match at all, by root and path."""
    folders = np.flatnonzero(visible.folders & (visible.kinds == visible.kind_names.index(kind)))
    words = [PartMatches(count, found) for count, found in matches]
    strengths = part_choice.folder_strengths(words, idf, folders, cosines)
    strong = np.flatnonzero(strengths)
    return {visible.path_of(int(folders[i])): float(strengths[i]) for i in strong}


def _raised(visible: VisibleDocuments, rows: "Array", folders: dict[tuple[int, str], float]) -> "Array":
    """Return how much rows are raised for the choice of candidates by the strongest folders."""
    raised = np.zeros(len(rows))
    for root, path in sorted(folders, key=lambda place: -folders[place])[:RAISING_FOLDERS]:
        for first, end in visible.current[root].at_or_below(path):
            nodes = visible.nodes[rows]
            below = (visible.roots[rows] == root) & (nodes >= first) & (nodes < end)
            raised = np.maximum(raised, below * folders[root, path])
    return raised


def _pool(
    tx: Tx,
    resources: EngineResources,
    asked: ContentRequest,
    visible: VisibleDocuments,
    rows: "Array",
    presence: "Array",
    idf: "Array",
    folders: dict[tuple[int, str], float],
    cosines: "Array",
) -> Pool:
    """Read the candidates. A part has no turns before and after it."""
    read = {row.n: to_document(row) for row in documents.read(tx, visible.numbers[rows].tolist())}
    is_there = np.array([number in read for number in visible.numbers[rows].tolist()], bool)
    rows, presence = rows[is_there], presence[is_there]
    count = len(rows)
    places = [visible.path_of(row) for row in rows.tolist()]
    return Pool(
        documents=[read[number] for number in visible.numbers[rows].tolist()],
        candidates=count,
        previous=np.full(count, -1, np.int64),
        following=np.full(count, -1, np.int64),
        presence=presence,
        segment=np.zeros(count),
        session=np.zeros(count),
        idf=idf,
        cosines=content_vectors.compare_rest(tx, resources, visible, asked.vector, rows, cosines),
        hotness=hotness_of_files(
            tx, asked.principal, asked.request.now, [(visible.root_names[root], path) for root, path in places]
        ),
        folder=np.array([_strength_above(folders, root, path) for root, path in places]),
        now=asked.request.now,
        average_length=MIN_AVERAGE_LENGTH,
    )


def _strength_above(folders: dict[tuple[int, str], float], root: int, path: str) -> float:
    """Return how well the best folder above a path matches."""
    strength = 0.0
    while folders and "/" in path:
        path = path.rpartition("/")[0]
        strength = max(strength, folders.get((root, path), 0.0))
    return strength


def _contents_first(visible: VisibleDocuments, best: Sequence[tuple[int, Ranked]]) -> list[tuple[int, Ranked]]:
    """Put a folder after what was found in it: its summary repeats the abstracts. A clearly better one stays before."""
    first = list(best[:MAX_REORDERED])
    places = [visible.path_of(row) for row, _ in first]
    for at in sorted(range(len(first)), key=lambda at: -places[at][1].count("/")):  # the deepest first
        root, path = places[at]
        row, ranked = first[at]
        below = [
            first[other][1].score
            for other, (other_root, other_path) in enumerate(places)
            if other_root == root and other_path.startswith(f"{path}/")
        ]
        highest = max(below, default=0.0)
        if CLEARLY_BETTER * ranked.score <= highest < ranked.score:
            first[at] = row, _lowered(ranked, highest)
    return [*sorted(first, key=lambda each: -each[1].score), *best[MAX_REORDERED:]]


def _lowered(ranked: Ranked, below: float) -> Ranked:
    """Return a document with a score just below another one. Its reasons add up to it."""
    score = below * (1 - 1e-6)
    reasons = [Reason(each.signal, each.share * score / ranked.score) for each in ranked.reasons]
    return Ranked(ranked.position, score, reasons)


def _bounded(
    visible: VisibleDocuments,
    kind: ContextType,
    best: Sequence[tuple[int, Ranked]],
    request: RetrievalRequest,
    max_parts: int | None,
) -> list[RankedDocument]:
    """Return the best documents, with few parts of each file."""
    has_abstracts = ABSTRACT_LEVEL in request.levels and OVERVIEW_LEVEL not in request.levels
    parts: Counter[int] = Counter()
    found: list[RankedDocument] = []
    for row, each in best:
        content_id, part, level = (int(column[row]) for column in (visible.contents, visible.parts, visible.levels))
        if part:
            parts[content_id] += 1
            if max_parts is not None and parts[content_id] > max_parts:
                continue
        root, node = int(visible.roots[row]), int(visible.nodes[row])
        found.append(
            RankedDocument(
                kind=kind,
                owner_id=visible.owner_ids[int(visible.owners[row])],
                log_id=None,
                content_id=content_id,
                number=part,
                level=ABSTRACT_LEVEL if has_abstracts and level == OVERVIEW_LEVEL else level,
                tags=sorted(visible.current[root].tags.get(node, ())),
                created_at=int(visible.current[root].changed[node]),
                score=each.score,
                reasons=each.reasons,
            )
        )
        if len(found) >= request.limit:
            break
    return found
