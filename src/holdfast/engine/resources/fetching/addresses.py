"""Which network addresses may be fetched from: public ones, and hosts that the operator allows."""

import ipaddress
import re
import socket
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, PermissionDeniedError, short_repr

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_CHARS = 4_000
_IPV4_BYTES = 4
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_RESERVED = tuple(
    ipaddress.ip_network(network)
    for network in ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "fec0::/10", "2001::/23")
)
"""Networks that not every version of Python knows as reserved."""
_HOST = re.compile(r"[A-Za-z0-9._:-]+")
_NUMBER = re.compile(r"(?:0[xX][0-9A-Fa-f]+|[0-9]+)")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Destination(NamedTuple):
    """A host, and an address of it that may be connected to."""

    scheme: str
    host: str
    port: int
    address: str


def parse_url(url: str) -> SplitResult:
    """Return the parts of an http or https URL without a user and password."""
    if len(url) > MAX_URL_CHARS or any(ord(character) <= ord(" ") for character in url):
        raise InvalidArgumentError("path", f"{short_repr(url)} is too long, or has spaces; encode them")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidArgumentError("path", f"{short_repr(url)} is not a URL: {error}") from None
    if parts.scheme.lower() not in DEFAULT_PORTS or not parts.hostname:
        raise InvalidArgumentError("path", f"{short_repr(url)} is not an http or https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise InvalidArgumentError("path", "a URL with a user or a password is not fetched; leave them out")
    if port == 0:
        raise InvalidArgumentError("path", f"{short_repr(url)} has the port 0; use another one")
    return parts


def resolve(url: str, settings: Settings) -> Destination:
    """Look up the host of a URL, and check all its addresses. The connection must go to the one that is returned."""
    parts = parse_url(url)
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or DEFAULT_PORTS[scheme]
    found = _look_up(host, port)
    if not is_allowed_host(host, port, settings):
        for address in found:
            _require_public(host, address)
    return Destination(scheme, host, port, str(found[0]))


def is_allowed_host(host: str, port: int, settings: Settings) -> bool:
    """Whether the operator allows a host, whatever its address is."""
    allowed = {each.strip().lower() for each in (settings.allowed_fetch_hosts or "").split(",") if each.strip()}
    written = f"[{host}]" if ":" in host else host
    return bool({host.lower(), f"{written.lower()}:{port}"} & allowed)


def _look_up(host: str, port: int) -> list[Address]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    if all(_NUMBER.fullmatch(part) for part in host.split(".")):
        # `2130706433`, `0177.0.0.1` and `127.1` are loopback addresses for some resolvers.
        raise PermissionDeniedError(f"{short_repr(host)} is an address in an unusual form, which is not fetched")
    try:
        encoded = host.encode("idna").decode()
    except UnicodeError:
        encoded = ""
    if not _HOST.fullmatch(encoded):
        raise InvalidArgumentError("path", f"{short_repr(host)} is not the name of a host")
    try:
        rows = socket.getaddrinfo(encoded, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise FailedPreconditionError(
            f"the host {short_repr(host)} was not found (DNS: {error.strerror or error}); check the URL"
        ) from None
    found = list(dict.fromkeys(ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows))
    if not found:
        raise FailedPreconditionError(f"the host {short_repr(host)} has no address (DNS); check the URL")
    return found


def _require_public(host: str, address: Address) -> None:
    if not is_public(address):
        raise PermissionDeniedError(
            f"the host {short_repr(host)} has the private or reserved address {address}, which is not fetched; the"
            " operator can allow it with the setting allowed_fetch_hosts"
        )


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, also if it contains another address.

    >>> [is_public(ipaddress.ip_address(each)) for each in ("93.184.215.14", "127.0.0.1", "::ffff:10.0.0.1")]
    [True, False, False]
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner_addresses(address)
        if inner:
            return all(is_public(each) for each in inner)
    is_special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or any(address.version == network.version and address in network for network in _RESERVED)
    )
    return address.is_global and not is_special


def _inner_addresses(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address stands for: mapped, translated, or of a tunnel."""
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if any(address in network for network in _NAT64) or address.packed[:12] == bytes(12):
        return [ipaddress.IPv4Address(address.packed[-_IPV4_BYTES:])]
    return []
