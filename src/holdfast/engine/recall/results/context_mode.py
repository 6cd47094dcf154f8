"""The mode `context` of a search: its hits as one text for a prompt."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from holdfast.engine.recall.retrieval import Retrieval
from holdfast.model.messages import Message
from holdfast.model.search import Hit, MessageHit, RecallStats, SearchResult, message_uri
from holdfast.model.sessions import session_uri
from holdfast.ops.search import Search
from holdfast.search.results.context_block import Recallable, pack
from holdfast.search.results.message_texts import readable_text
from holdfast.store.tables.sessions import StoredSession
from holdfast.text import tokens

_WITH_CONTENT = ("overviews", "memories", "resources", "skills")


def with_context(
    result: SearchResult,
    op: Search,
    session: StoredSession | None,
    retrieval: Retrieval,
    excluded: int,
    words: Sequence[str],
    token_counter: str,
) -> SearchResult:
    """Return a result with its hits packed into a text for `session`, and the receipt of what was left out."""
    documents = [*result.overviews, *result.memories, *result.resources, *result.skills]
    hits: list[Hit | MessageHit] = sorted([*result.messages, *documents], key=lambda hit: -hit.score)
    items = [_found_message(hit) if isinstance(hit, MessageHit) else _found_document(hit) for hit in hits]
    items += [item for hit in result.messages for item in _around(hit, session)]
    block = pack(items, op.max_tokens, words, tokens.counter(token_counter))
    stats = RecallStats(
        searched=retrieval.searched,
        candidates=retrieval.candidates,
        excluded=excluded,
        max_tokens=op.max_tokens,
        used_tokens=block.used_tokens,
        returned=len(block.entries),
        dropped=len(block.left_out),
        deduped=block.deduped,
        shortened=sum(entry.detail == "shortened" for entry in block.entries),
        left_out=block.left_out,
    )
    if not op.read_content:
        lists = {name: [replace(hit, content=None) for hit in getattr(result, name)] for name in _WITH_CONTENT}
        result = replace(result, **lists)
    return replace(result, entries=block.entries, rendered=block.rendered, stats=stats)


def _found_document(hit: Hit) -> Recallable:
    return Recallable(
        hit.uri, hit.context_type, hit.score, hit.created_at, (hit.uri, 0), "", hit.content or hit.abstract, "found"
    )


def _found_message(hit: MessageHit) -> Recallable:
    return _recallable(hit, hit.message, hit.uri)._replace(origin="found", is_shortened=hit.is_shortened)


def _around(hit: MessageHit, session: StoredSession | None) -> Iterator[Recallable]:
    """Yield the messages around a hit, without those that the prompt for `session` has anyway."""
    uri = session_uri(hit.owner, hit.session_id)
    live_from = session.live_from if session is not None and session.uri == uri else None
    for message in hit.around:
        if live_from is None or message.seq < live_from:
            yield _recallable(hit, message, message_uri(uri, message.seq))


def _recallable(hit: MessageHit, message: Message, uri: str) -> Recallable:
    order = (session_uri(hit.owner, hit.session_id), message.seq)
    speaker = message.peer_id or message.role
    return Recallable(uri, "message", hit.score, message.created_at, order, speaker, readable_text(message), "around")
