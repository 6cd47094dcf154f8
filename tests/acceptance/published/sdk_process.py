"""Evaluates calls of the published SDK, one for each line of standard input. It runs in the SDK's own environment.

A line is a JSON object. `connect` has a URL, the keys of users, and the folder to work in. `call` is an expression, in
which the name of a user is the user's client. `methods` lists what the SDK has. The answer is a line with `result` or
`error`.
"""

import inspect
import json
import os
import sys
from typing import Any

import openviking_sdk


class Clients(dict[str, Any]):
    """The names that an expression can use: those of the SDK, and the users, whose clients open when they are used."""

    def __init__(self, url: str, keys: dict[str, str]) -> None:
        super().__init__(vars(openviking_sdk))
        self._url, self._keys = url, keys

    def __missing__(self, user: str) -> Any:
        self[user] = openviking_sdk.SyncHTTPClient(url=self._url, api_key=self._keys[user])
        self[user].initialize()
        return self[user]


def main() -> None:
    clients = Clients("", {})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "connect" in request:
                os.chdir(request["connect"].pop("folder"))
                clients = Clients(**request["connect"])
                answer: dict[str, Any] = {"result": None}
            elif "call" in request:
                answer = {"result": eval(request["call"], {}, clients)}
            else:
                answer = {"result": list_methods()}
        except Exception as error:  # noqa: BLE001 - the test decides which error is right
            code = getattr(error, "code", type(error).__name__)
            answer = {"error": {"code": code, "type": type(error).__name__, "message": str(error)}}
        print(json.dumps(answer, default=as_json), flush=True)  # noqa: T201 - the answer


def list_methods() -> list[str]:
    client = openviking_sdk.SyncHTTPClient(url="http://127.0.0.1:1", api_key="none")
    return [
        *public_names(client),
        *(f"session.{name}" for name in public_names(client.session("chat"))),
        *(f"observer.{name}" for name in public_names(client.observer)),
    ]


def public_names(value: Any) -> list[str]:
    return [name for name, _ in inspect.getmembers_static(type(value)) if not name.startswith("_")]


def as_json(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else vars(value)


if __name__ == "__main__":
    main()
