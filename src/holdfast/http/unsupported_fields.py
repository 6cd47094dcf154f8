"""Fields of other servers that would change the answer here, and that this server does not have.

A field that is not listed, and that an operation does not have, is ignored: newer clients send fields that only add
to an answer. A field that is listed is refused, unless it has a value that asks for nothing. If an operation gets
such a field, its line here has no effect any more.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.ops.administration import CreateAccount, CreateKey, CreateUser, RotateKey
from holdfast.ops.search import Find, Search
from holdfast.ops.table import Operation
from holdfast.ops.tree.files import ListFiles, ShowTree


class Unsupported(NamedTuple):
    remedy: str
    allowed: tuple[Any, ...] = ()
    """Values that ask for what the server does anyway."""


_OMIT = "omit it"
_SEED = Unsupported("a key that is made from a seed can be guessed by who knows the seed; use the returned key")
_LISTING = {
    "sort_by": Unsupported("sort the entries yourself"),
    "sort_order": Unsupported("sort the entries yourself"),
    "tags": Unsupported(_OMIT),
    "include_abstract": Unsupported("use output=agent, which has abstracts"),
    "include_overview": Unsupported("read the overview of each entry"),
    "include_tags": Unsupported(_OMIT),
    "extra_fields": Unsupported(_OMIT),
}
_SEARCH = {
    "image": Unsupported("describe the image in the query"),
    "time_field": Unsupported("use created_at", ("created_at", "updated_at")),
    "peer_scope": Unsupported("name the person in the query", ("all", "auto")),
}
UNSUPPORTED: dict[type[Operation[Any]], dict[str, Unsupported]] = {
    CreateAccount: {
        "seed": _SEED,
        "user_config": Unsupported("a user has no settings; use those of the server"),
        "isolate_user_scope_by_agent": Unsupported("users are always isolated, agents of a user never"),
        "isolate_agent_scope_by_user": Unsupported("users are always isolated, agents of a user never", (True,)),
    },
    CreateUser: {"seed": _SEED, "user_config": Unsupported("a user has no settings; use those of the server")},
    CreateKey: {"seed": _SEED},
    RotateKey: {"seed": _SEED},
    ListFiles: _LISTING,
    ShowTree: {**_LISTING, "directories_only": Unsupported("select the entries that are folders")},
    Find: _SEARCH,
    Search: _SEARCH,
}


def refuse_unsupported(cls: type[Operation[Any]], fields: Mapping[str, Any]) -> None:
    """Raise an error if a request has a field that this server does not have and that would change the answer."""
    for name, unsupported in UNSUPPORTED.get(cls, {}).items():
        value = fields.get(name)
        if name in cls.__struct_fields__ or not value or value in ("false", "0"):
            continue
        if value not in unsupported.allowed and value not in [str(each).lower() for each in unsupported.allowed]:
            raise InvalidArgumentError(name, f"{short_repr(value)} is not supported; {unsupported.remedy}")
