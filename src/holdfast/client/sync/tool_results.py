"""Client methods for large tool outputs."""

from holdfast.client.sync.transport import Transport
from holdfast.model.messages import ToolResultMatches, ToolResultPage, ToolResultSlice
from holdfast.ops.sessions import ListToolResults, ReadToolResult, SearchToolResult


class ToolResults:
    """Methods for tool outputs that are too large for their messages. `owner` names the owner of a shared session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list_tool_results(
        self, session_id: str, *, tool_name: str | None = None, limit: int = 50, owner: str | None = None
    ) -> ToolResultPage:
        """List the tool outputs that were too large for their messages, newest first."""
        return self._transport.call(
            ListToolResults(session_id=session_id, owner=owner, tool_name=tool_name, limit=limit)
        )

    def read_tool_result(
        self, session_id: str, tool_result_id: str, *, offset: int = 0, limit: int = 20_000, owner: str | None = None
    ) -> ToolResultSlice:
        """Return up to `limit` characters of a large tool output, starting at character `offset`."""
        op = ReadToolResult(
            session_id=session_id, owner=owner, tool_result_id=tool_result_id, offset=offset, limit=limit
        )
        return self._transport.call(op)

    def search_tool_result(
        self,
        session_id: str,
        tool_result_id: str,
        q: str,
        *,
        limit: int = 20,
        context_chars: int = 300,
        owner: str | None = None,
    ) -> ToolResultMatches:
        """Find a string in a large tool output. Each match has its offset and up to `context_chars` around it."""
        op = SearchToolResult(
            session_id=session_id,
            owner=owner,
            tool_result_id=tool_result_id,
            q=q,
            limit=limit,
            context_chars=context_chars,
        )
        return self._transport.call(op)
