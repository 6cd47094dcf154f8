"""The client and the function that opens it."""

from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.client.sync.admin import Admin
from holdfast.client.sync.operations import Operations
from holdfast.client.sync.session import Session
from holdfast.client.sync.transport import Transport, open_transport
from holdfast.client.target import resolve_connection
from holdfast.config import Settings
from holdfast.engine.gate.ids import Ids, system_clock
from holdfast.model.identity import AccessRole
from holdfast.model.system import Backup


def connect(
    target: str | Path | None = None,
    *,
    api_key: str | None = None,
    account: str | None = None,
    user: str | None = None,
    role: AccessRole | None = None,
    agent: str | None = None,
    settings: Settings | None = None,
) -> "Client":
    """Open a client.

    `target` is one of: a folder or an SQLite file; `:memory:`; a `postgresql://` URL; the `http://` or `https://` URL
    of a server, which may need an `api_key`. Without a `target`, the client uses the one in `settings`, or else an
    SQLite file in the platform's data folder.

    `account`, `user` and `role` identify the caller: by default user `default` of account `default`, with role
    `root`. A server in `api_key` mode ignores them and identifies the caller by the key. `agent` names the program
    that acts for the user; it is stored with messages, and a grant can be limited to it.

    Close the client after use, or use it in a `with` statement.
    """
    return Client(open_transport(resolve_connection(target, api_key, account, user, role, agent, settings)))


class Client(Operations):
    """A connection to Holdfast with one method per operation. Threads may share it."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._ids = Ids(system_clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client: its connections, or its embedded engine."""
        self._transport.close()

    def backup(self, target: str | Path, *, overwrite: bool = False) -> Backup:
        """Write a checked copy of an SQLite database to the file `target`, while the database is in use.

        The copy has everything that was acknowledged before this call, of all accounts. `holdfast restore` restores
        it. An embedded client with the role `root` can do this, a client of a server cannot.
        """
        return self._transport.back_up(Path(target), overwrite=overwrite)

    @property
    def admin(self) -> Admin:
        """Methods for accounts, users, keys and audit records."""
        return Admin(self._transport)

    def session(self, session_id: str | None = None, *, owner: str | None = None) -> Session:
        """Return a handle for a session; without `session_id`, for one with a new id.

        The session itself is created when the first message or use is added to it. `owner` names the owner of a
        session that another user shares.
        """
        return Session(self, self._ids.new("sess") if session_id is None else session_id, owner)
