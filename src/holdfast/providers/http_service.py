"""One provider's HTTP service: connections that stay open, and its troubles in our words."""

import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import msgspec

from holdfast import lazy
from holdfast.errors import FailedPreconditionError, HoldfastError, InvalidArgumentError, shown
from holdfast.providers import error_messages
from holdfast.providers.base import unavailable

CONNECT_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_PAUSE = 3_600.0
"""Nobody is left alone for longer than that, whatever they say."""
FIRST_FAILURE = 300
"""Redirects are not followed: a key is for the address it was given for."""
MAY_PASS = {408, 409, 425, 429}


class Refused(Exception):  # noqa: N818 - not an error yet: another way of asking may still do
    """The service did not like how it was asked (400 or 422)."""

    def __init__(self, error: HoldfastError, text: str) -> None:
        super().__init__(error.message)
        self.error = error
        self._text = text

    def mentions(self, word: str) -> bool:
        """Whether the service spoke of it. What it said is for nobody else: it may repeat the prompt."""
        return word in self._text


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes
    secret: bytes
    """What was sent, with the key: no word of an answer that occurs in it is shown."""


class HttpService:
    """Posts JSON and reads JSON, from any thread. It asks once: when to ask again is the caller's decision."""

    def __init__(self, url: str, key: str | None, headers: dict[str, str], timeout: float) -> None:
        if not re.match(r"https?://[^/]", url):
            raise InvalidArgumentError("model_base_url", f"{shown(without_secrets(url))} is not an http or https URL")
        if any(not re.fullmatch(r"[ -~]+", value) for value in headers.values()):
            raise InvalidArgumentError("model_api_key", "has a character that cannot be sent; check it for a line end")
        self._httpx = lazy.httpx2
        self._url = url.rstrip("/")
        self._key = key
        self._headers = headers
        self._timeout = timeout
        self._closed = False
        self._open()

    def __repr__(self) -> str:
        return f"Service({without_secrets(self._url)!r})"

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, decoded. `Refused` if the service did not like the question."""
        if self._process != os.getpid():
            self._open()  # a fork: the connections are the parent's, who still uses them
        try:
            with error_messages.unlogged():
                answer = self._exchange(path, msgspec.json.encode(body))
        except self._httpx.TimeoutException:
            raise unavailable(f"{self} did not answer within {self._timeout:g} s", reason="timeout") from None
        except (self._httpx.TransportError, self._httpx.DecodingError) as error:
            why = error_messages.transport_reason(error)
            raise unavailable(f"{self} cannot be reached: {why}", reason=type(error).__name__) from None
        except self._httpx.InvalidURL:
            raise FailedPreconditionError(f"{self} is not a URL that can be asked; check the base URL") from None
        except Exception:
            if self._closed:  # by another thread, in the middle of this call
                raise unavailable(f"the connection to {self} was closed", reason="closed") from None
            raise
        if answer.status >= FIRST_FAILURE:
            raise self._trouble(answer) from None
        return self._decoded(answer)

    def close(self) -> None:
        """Calls that are under way may still end well; no other is made."""
        self._closed = True
        self._connections.close()

    def __str__(self) -> str:
        return without_secrets(self._url)

    def _open(self) -> None:
        self._process = os.getpid()
        self._connections = self._httpx.Client(
            headers={"Content-Type": "application/json", "Accept": "application/json", **self._headers},
            verify=self._url.startswith("https:"),  # to get ready for TLS takes longer than many requests
            timeout=self._httpx.Timeout(self._timeout, connect=min(CONNECT_SECONDS, self._timeout), pool=None),
            limits=self._httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0),
        )

    def _exchange(self, path: str, body: bytes) -> Answer:
        """One request. The time-out holds for the whole of it: a service that drips is as slow as a silent one."""
        late = time.monotonic() + self._timeout
        content = bytearray()
        with self._connections.stream("POST", f"{self._url}{path}", content=body) as response:
            for piece in response.iter_bytes():
                content += piece
                if time.monotonic() > late:
                    raise self._httpx.ReadTimeout("the answer took too long")
                if len(content) > MAX_ANSWER_BYTES:
                    raise self._httpx.DecodingError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        return Answer(response.status_code, response.headers, bytes(content), (self._key or "").encode() + body)

    def _decoded(self, answer: Answer) -> dict[str, Any]:
        content = answer.content
        try:
            decoded = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if content.strip() and not content.lstrip().startswith(b"{"):
                found = error_messages.described(answer.headers, content, answer.secret)
                raise FailedPreconditionError(f"{self} answered with {found}, not JSON; check the base URL") from None
            raise unavailable(f"{self} broke off in the middle of its answer", reason="truncated") from None
        if not isinstance(decoded, dict):
            raise FailedPreconditionError(f"{self} answered with JSON that is not an object; check the base URL")
        if decoded.get("error"):  # some gateways report a failure of what is behind them as a success
            raise unavailable(f"{self} answered with an error{self._code(answer)}", reason="error")
        return decoded

    def _trouble(self, answer: Answer) -> Exception:
        status = answer.status
        said = f"{self} answered {status}{self._code(answer)}"
        if status in MAY_PASS or status >= 500:  # noqa: PLR2004 - where the server is to blame
            return unavailable(said, reason=str(status), retry_after=retry_after_seconds(answer.headers))
        advice = {
            401: "check the API key",
            403: "check what the API key may do",
            402: "check the account's balance",
            404: "check the model's name and the base URL",
            413: "lower model_input_tokens",
        }.get(status, "check the base URL")
        if status in {400, 422}:
            advice = "check the model's name; if the prompt is too long, lower model_input_tokens"
            error = FailedPreconditionError(f"{said}; {advice}", status=status)
            return Refused(error, error_messages.error_text(answer.content))
        return FailedPreconditionError(f"{said}; {advice}", status=status)

    def _code(self, answer: Answer) -> str:
        code = error_messages.error_code(answer.content, answer.secret)
        return f" ({code})" if code else ""


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How many seconds the service asks to be left alone, whichever way it says so; at most `MAX_PAUSE`."""
    try:
        if "retry-after-ms" in headers:
            said = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" not in headers:
            return None
        elif re.fullmatch(r"\s*\d+(\.\d*)?\s*", headers["retry-after"]):
            said = float(headers["retry-after"])
        else:
            until = parsedate_to_datetime(headers["retry-after"])
            said = (until - parsedate_to_datetime(headers["date"])).total_seconds()
    except (ValueError, KeyError, TypeError):
        return None
    return min(max(0.0, said), MAX_PAUSE) if said == said else None  # noqa: PLR0124 - what is not a number


def without_secrets(url: str) -> str:
    """A URL that can be shown: without a user, a password and a query.

    >>> without_secrets("https://ann:p@s/s@models.example/v1?key=secret")
    'https://models.example/v1'
    """
    scheme, slashes, rest = url.partition("//")
    if not slashes:
        scheme, rest = "", url
    return scheme + slashes + re.split(r"[?#]", rest.rpartition("@")[2], maxsplit=1)[0]
