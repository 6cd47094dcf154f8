"""Reading and searching tool outputs that were too large for their messages."""

import itertools
import re

from holdfast.engine.gate.rule import CallContext, Rule
from holdfast.engine.gate.session_access import require
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.messages import TextMatch, ToolResultMatches, ToolResultPage, ToolResultSlice
from holdfast.ops.sessions import ListToolResults, ReadToolResult, SearchToolResult
from holdfast.store.database import Tx
from holdfast.store.tables import lineage
from holdfast.store.tables import tool_results as store


def _list(tx: Tx, principal: Principal, op: ListToolResults, _ready: None, _context: CallContext) -> ToolResultPage:
    session = require(tx, principal, op.session_id)
    return ToolResultPage(store.newest(tx, lineage.log_ranges(tx, session), op.tool_name, op.limit))


def _read(tx: Tx, principal: Principal, op: ReadToolResult, _ready: None, _context: CallContext) -> ToolResultSlice:
    return _slice(tx, principal, op.session_id, op.tool_result_id, op.offset, op.limit)


def _search(
    tx: Tx, principal: Principal, op: SearchToolResult, _ready: None, _context: CallContext
) -> ToolResultMatches:
    content = _slice(tx, principal, op.session_id, op.tool_result_id, 0, None).content
    return ToolResultMatches(op.tool_result_id, find(content, op.q, op.limit, op.context_chars))


def find(content: str, q: str, limit: int, context_chars: int) -> list[TextMatch]:
    """Where `q` occurs, in any case, with the text around it.

    >>> find("one Two three two", "two", 5, 2)
    [TextMatch(offset=4, context='e Two t'), TextMatch(offset=14, context='e two')]
    """
    found = re.finditer(re.escape(q), content, re.IGNORECASE)
    return [
        TextMatch(match.start(), content[max(0, match.start() - context_chars) : match.end() + context_chars])
        for match in itertools.islice(found, limit)
    ]


def _slice(
    tx: Tx, principal: Principal, session_id: str, tool_result_id: str, offset: int, limit: int | None
) -> ToolResultSlice:
    log_ranges = lineage.log_ranges(tx, require(tx, principal, session_id))
    found = store.read(tx, log_ranges, tool_result_id, offset, limit)
    if found is None:
        raise NotFoundError("tool result", tool_result_id)
    return found


RULES: dict[type, Rule] = {
    ListToolResults: Rule(_list),
    ReadToolResult: Rule(_read),
    SearchToolResult: Rule(_search),
}
