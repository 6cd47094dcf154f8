"""A request to transfer a file, after its route and caller are known."""

from typing import Any, TypeVar

import msgspec

from holdfast.http.auth import AuthenticatedCaller, Headers
from holdfast.http.request_middleware import RequestRecord
from holdfast.http.routes import Route
from holdfast.model.identity import Origin, Principal

R = TypeVar("R")


class TransferRequest(msgspec.Struct, frozen=True):
    route: Route
    caller: AuthenticatedCaller
    headers: Headers
    query: dict[str, Any]
    record: RequestRecord
    address: str

    @property
    def principal(self) -> Principal:
        return self.caller.principal

    @property
    def origin(self) -> Origin:
        return Origin(self.address, self.caller.key_id)
