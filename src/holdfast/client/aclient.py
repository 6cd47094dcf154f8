"""The asynchronous twin. Generated from `client.py` by `tools/unasync.py`; do not edit."""

from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.client.aadmin import AsyncAdmin
from holdfast.client.aoperations import AsyncOperations
from holdfast.client.asession import AsyncSession
from holdfast.client.atransport import AsyncTransport, open_async_transport
from holdfast.client.opening import find_place
from holdfast.config import Settings
from holdfast.engine.ids import Ids, system_clock
from holdfast.model import (
    AccessRole,
)


def connect_async(
    target: str | Path | None = None,
    *,
    api_key: str | None = None,
    account: str | None = None,
    user: str | None = None,
    role: AccessRole | None = None,
    settings: Settings | None = None,
) -> "AsyncClient":
    """Open Holdfast.

    Without a `target`, in a file in the platform's data folder; else in the folder or file it names, in `:memory:`,
    on the database of a `postgresql://` URL, or through the server of an `http://` URL, with its `api_key`.
    Who calls is user `default` of account `default`, as root, unless said otherwise; a server that gives out keys
    goes by the key alone. Close the client when done, or use it in an `async with` statement.
    """
    return AsyncClient(open_async_transport(find_place(target, api_key, account, user, role, settings)))


class AsyncClient(AsyncOperations):
    """Every operation as a method. Safe to share between threads."""

    def __init__(self, transport: AsyncTransport) -> None:
        super().__init__(transport)
        self._ids = Ids(system_clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @property
    def admin(self) -> AsyncAdmin:
        """Accounts, users, keys and the audit."""
        return AsyncAdmin(self._transport)

    def session(self, session_id: str | None = None) -> AsyncSession:
        """A handle on a session, with a new id if none is given. The first thing added to it creates it."""
        return AsyncSession(self, self._ids.new("sess") if session_id is None else session_id)
