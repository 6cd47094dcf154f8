"""Reading and searching large tool outputs, which are stored separately from their messages."""

import itertools

from holdfast.engine.gate.operation_handler import CallContext, OperationHandler
from holdfast.engine.gate.session_access import require_session
from holdfast.errors import NotFoundError
from holdfast.model.identity import Principal
from holdfast.model.messages import TextMatch, ToolResultMatches, ToolResultPage, ToolResultSlice
from holdfast.ops.sessions import ListToolResults, ReadToolResult, SearchToolResult
from holdfast.store import read_memory
from holdfast.store.database import Tx
from holdfast.store.tables import lineage
from holdfast.store.tables import tool_results as store
from holdfast.text.substrings import find_ignoring_case


def _list(tx: Tx, principal: Principal, op: ListToolResults, _prepared: None, _context: CallContext) -> ToolResultPage:
    session = require_session(tx, principal, op)
    return ToolResultPage(store.list_newest(tx, lineage.log_ranges(tx, session), op.tool_name, op.limit))


def _read(tx: Tx, principal: Principal, op: ReadToolResult, _prepared: None, _context: CallContext) -> ToolResultSlice:
    return _read_slice(tx, principal, op, op.offset, op.limit)


def _search(
    tx: Tx, principal: Principal, op: SearchToolResult, _prepared: None, _context: CallContext
) -> ToolResultMatches:
    content = _read_slice(tx, principal, op, 0, None).content
    read_memory.require(op.limit * min(len(content), len(op.q) + 2 * op.context_chars))
    return ToolResultMatches(op.tool_result_id, find(content, op.q, op.limit, op.context_chars))


def find(content: str, q: str, limit: int, context_chars: int) -> list[TextMatch]:
    """Find the occurrences of `q`, ignoring case, with the text around each.

    >>> find("one Two three two", "two", 5, 2)
    [TextMatch(offset=4, context='e Two t'), TextMatch(offset=14, context='e two')]
    """
    return [
        TextMatch(at, content[max(0, at - context_chars) : at + len(q) + context_chars])
        for at in itertools.islice(find_ignoring_case(content, q), limit)
    ]


def _read_slice(
    tx: Tx, principal: Principal, op: ReadToolResult | SearchToolResult, offset: int, limit: int | None
) -> ToolResultSlice:
    log_ranges = lineage.log_ranges(tx, require_session(tx, principal, op))
    tool_result = store.read(tx, log_ranges, op.tool_result_id, offset, limit)
    if tool_result is None:
        raise NotFoundError("tool result", op.tool_result_id)
    return tool_result


HANDLERS: dict[type, OperationHandler] = {
    ListToolResults: OperationHandler(_list),
    ReadToolResult: OperationHandler(_read),
    SearchToolResult: OperationHandler(_search),
}
