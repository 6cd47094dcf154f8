"""The connection of a client: its database or server, and its identity."""

from pathlib import Path

import msgspec

from holdfast.client.wire import headers_for
from holdfast.composition import Target, resolve_target
from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError
from holdfast.model.identity import DEFAULT_AGENT, AccessRole, Principal


class Connection(msgspec.Struct, frozen=True):
    """A database or server, and the caller's identity in the form that each of them needs."""

    target: Target
    principal: Principal
    """The caller, for an embedded engine."""
    headers: dict[str, str]
    """The headers from which a server derives the caller."""


def resolve_connection(
    target: str | Path | None,
    api_key: str | None,
    account: str | None,
    user: str | None,
    role: AccessRole | None,
    agent: str | None,
    settings: Settings | None,
) -> Connection:
    """Resolve the arguments of `holdfast.connect`. Settings supply what is not given."""
    resolved = resolve_target(target, settings)
    if resolved.url is None and api_key is not None:
        raise InvalidArgumentError("api_key", "is used only with a server; pass the server's http:// URL as the target")
    principal = Principal(
        "default" if account is None else account,
        "default" if user is None else user,
        "root" if role is None else role,
        DEFAULT_AGENT if agent is None else agent,
    )
    key = api_key or resolved.settings.api_key
    headers = {} if resolved.url is None else headers_for(key, account, user, role, agent)
    return Connection(resolved, principal, headers)
