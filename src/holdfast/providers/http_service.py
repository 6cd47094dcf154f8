"""JSON requests to a provider over persistent HTTP connections. HTTP failures become Holdfast errors."""

import math
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import msgspec

from holdfast import lazy
from holdfast.errors import FailedPreconditionError, HoldfastError, InvalidArgumentError, short_repr
from holdfast.json_documents import decode_json
from holdfast.providers import error_messages
from holdfast.providers.base import unavailable

CONNECT_TIMEOUT_SECONDS = 10.0
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
MAX_RETRY_AFTER_SECONDS = 3_600.0
"""The longest pause that a provider can ask for."""
MIN_ERROR_STATUS = 300
"""Redirects are errors: following one could send the key to another address."""
RETRYABLE_STATUSES = {408, 409, 425, 429}
MIN_SERVER_ERROR_STATUS = 500


class RequestRejectedError(Exception):
    """The service rejected the request as invalid (400 or 422). The caller may try another form of the request.

    `error` is the error to raise if no other form is left.
    """

    def __init__(self, error: HoldfastError, text: str) -> None:
        super().__init__(error.message)
        self.error = error
        self._text = text

    def mentions(self, word: str) -> bool:
        """Whether the provider's message contains `word`. The message itself is private: it may quote the prompt."""
        return word in self._text


class HttpResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes
    confidential: bytes
    """The key and the request body. Error messages must not quote from the response what occurs here."""


class HttpService:
    """Posts JSON and decodes JSON responses. It can be used from any thread and does not retry.

    `settings_prefix` is how the names of the settings begin that describe the service, for advice.
    """

    def __init__(
        self, url: str, key: str | None, headers: dict[str, str], timeout: float, settings_prefix: str = "model"
    ) -> None:
        if not re.match(r"https?://[^/]", url):
            raise InvalidArgumentError(
                f"{settings_prefix}_base_url", f"{short_repr(without_secrets(url))} is not an http or https URL"
            )
        if any(not re.fullmatch(r"[ -~]+", value) for value in headers.values()):
            raise InvalidArgumentError(
                f"{settings_prefix}_api_key", "has a character that cannot be sent; check for a line break"
            )
        self._httpx = lazy.httpx2
        self._has_prompts = settings_prefix == "model"
        self._url = url.rstrip("/")
        self._key = key
        self._headers = headers
        self._timeout = timeout
        self._closed = False
        self._open()

    def __repr__(self) -> str:
        return f"HttpService({without_secrets(self._url)!r})"

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request and decode the JSON object. Raises `RequestRejectedError` for an invalid request."""
        decoded = self.post_for_json(path, body)
        if not isinstance(decoded, dict):
            raise FailedPreconditionError(f"{self} answered with JSON that is not an object; check the base URL")
        return decoded

    def post_for_json(self, path: str, body: dict[str, Any]) -> Any:
        """Like `post`, for a service that may answer with any JSON."""
        if self._process != os.getpid():
            self._open()  # after a fork: the parent still uses the inherited connections
        try:
            with error_messages.http_logging_disabled():
                response = self._send(path, msgspec.json.encode(body))
        except self._httpx.TimeoutException:
            raise unavailable(f"{self} did not answer within {self._timeout:g} s", reason="timeout") from None
        except (self._httpx.TransportError, self._httpx.DecodingError) as error:
            reason = error_messages.transport_reason(error)
            raise unavailable(f"{self} cannot be reached: {reason}", reason=type(error).__name__) from None
        except self._httpx.InvalidURL:
            raise FailedPreconditionError(f"{self} is not a URL that can be requested; check the base URL") from None
        except Exception:
            if self._closed:  # by another thread, during this call
                raise unavailable(f"the connection to {self} was closed", reason="closed") from None
            raise
        if response.status >= MIN_ERROR_STATUS:
            raise self._error_from(response) from None
        return self._decode(response)

    def close(self) -> None:
        """Close the connections. Running requests may still succeed; new ones fail."""
        self._closed = True
        self._connections.close()

    def __str__(self) -> str:
        return without_secrets(self._url)

    def _open(self) -> None:
        self._process = os.getpid()
        self._connections = self._httpx.Client(
            headers={"Content-Type": "application/json", "Accept": "application/json", **self._headers},
            verify=self._url.startswith("https:"),  # loading certificates takes longer than many requests
            timeout=self._httpx.Timeout(self._timeout, connect=min(CONNECT_TIMEOUT_SECONDS, self._timeout), pool=None),
            limits=self._httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0),
        )

    def _send(self, path: str, body: bytes) -> HttpResponse:
        """Send one request. The timeout covers the whole response, so that slow single bytes do not extend it."""
        deadline = time.monotonic() + self._timeout
        content = bytearray()
        with self._connections.stream("POST", f"{self._url}{path}", content=body) as response:
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > deadline:
                    raise self._httpx.ReadTimeout("the response took too long")
                if len(content) > MAX_RESPONSE_BYTES:
                    raise self._httpx.DecodingError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
        return HttpResponse(response.status_code, response.headers, bytes(content), (self._key or "").encode() + body)

    def _decode(self, response: HttpResponse) -> Any:
        content = response.content
        try:
            decoded = decode_json(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if content.strip() and not content.lstrip().startswith((b"{", b"[")):
                found = error_messages.describe_content(response.headers, content, response.confidential)
                raise FailedPreconditionError(f"{self} answered with {found}, not JSON; check the base URL") from None
            if content.rstrip().endswith((b"}", b"]")):  # for example NaN, which some servers write
                raise unavailable(f"{self} sent a response that is not valid JSON", reason="invalid") from None
            raise unavailable(f"{self} sent a truncated response", reason="truncated") from None
        # Some gateways report an upstream failure with status 200.
        if isinstance(decoded, dict) and decoded.get("error"):
            raise unavailable(f"{self} answered with an error{_code_suffix(response)}", reason="error")
        return decoded

    def _error_from(self, response: HttpResponse) -> Exception:
        status = response.status
        message = f"{self} answered {status}{_code_suffix(response)}"
        if status in RETRYABLE_STATUSES or status >= MIN_SERVER_ERROR_STATUS:
            return unavailable(message, reason=str(status), retry_after=retry_after_seconds(response.headers))
        advice = {
            401: "check the API key",
            403: "check the permissions of the API key",
            402: "check the account's balance",
            404: "check the model's name and the base URL",
            413: "lower model_input_tokens" if self._has_prompts else "use a model for longer texts",
        }.get(status, "check the base URL")
        if status in {400, 422}:
            advice = "check the model's name"
            if self._has_prompts:
                advice += "; if the prompt is too long, lower model_input_tokens"
            error = FailedPreconditionError(f"{message}; {advice}", status=status)
            return RequestRejectedError(error, error_messages.error_text(response.content))
        return FailedPreconditionError(f"{message}; {advice}", status=status)


def authorization_header(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _code_suffix(response: HttpResponse) -> str:
    code = error_messages.error_code(response.content, response.confidential)
    return f" ({code})" if code else ""


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The pause that the service asks for, from any of the headers in use; at most `MAX_RETRY_AFTER_SECONDS`."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif "retry-after" not in headers:
            return None
        elif re.fullmatch(r"\s*\d+(\.\d*)?\s*", headers["retry-after"]):
            seconds = float(headers["retry-after"])
        else:
            until = parsedate_to_datetime(headers["retry-after"])
            seconds = (until - parsedate_to_datetime(headers["date"])).total_seconds()
    except (ValueError, KeyError, TypeError):
        return None
    return None if math.isnan(seconds) else min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS)


def without_secrets(url: str) -> str:
    """Remove user, password and query from a URL, so that it can be shown.

    >>> without_secrets("https://ann:p@s/s@models.example/v1?key=secret")
    'https://models.example/v1'
    """
    scheme, slashes, rest = url.partition("//")
    if not slashes:
        scheme, rest = "", url
    return scheme + slashes + re.split(r"[?#]", rest.rpartition("@")[2], maxsplit=1)[0]
