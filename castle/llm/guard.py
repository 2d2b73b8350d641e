"""Where a request may go: to this machine when its name says so, to the open internet, and nowhere else.

A name is looked up once, every address it has is judged, and the connection is made to one that was judged:
what the name means a moment later does not matter. A server on a network of one's own has to be named in the
setting ``llm_allowed_hosts``.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from castle.llm.base import LlmError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LookUp = Callable[[str, int], Sequence[str]]

SCHEMES = ("http", "https")

BLOCKED_PORTS = frozenset(
    (1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 53, 69, 79, 110, 111, 119, 135, 137, 139, 143, 161, 179)
    + (389, 445, 465, 512, 513, 514, 515, 587, 636, 873, 993, 995, 2049, 3306, 5432, 6379, 11211, 27017)
)
"""Ports of services that are no servers of models and would take a request for commands of their own."""

_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class ForbiddenError(LlmError):
    """A request would go where none may go."""


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for (mapped, compatible, NAT64, 6to4, Teredo)."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    wrapped = any(address in network for network in _NAT64) or address in _COMPATIBLE
    if wrapped and not (address.is_loopback or address.is_unspecified):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Say whether an address belongs to the open internet."""
    real = embedded(address)
    return real.is_global and not (real.is_multicast or real.is_reserved or real.is_unspecified)


def read_allowed(entries: Iterable[str]) -> tuple[frozenset[str], tuple[Network, ...]]:
    """Return the names and networks of an allow-list: host names, addresses, or networks as 10.1.0.0/16.

    Raises LlmError for what is none of these.
    """
    names: set[str] = set()
    networks: list[Network] = []
    for entry in entries:
        text = entry.strip().lower().rstrip(".")
        try:
            networks.append(ipaddress.ip_network(text.strip("[]"), strict=False))
            continue
        except ValueError:
            pass
        if not text or not all(c.isalnum() or c in "-._" for c in text):
            raise LlmError(
                f"llm_allowed_hosts: {entry!r} is no name, address or network; such as "
                "castle config set llm_allowed_hosts '[192.168.1.5]'"
            )
        names.add(text)
    return frozenset(names), tuple(networks)


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the system knows them; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found))


def checked_addresses(url: str, allowed: Iterable[str] = (), find: LookUp | None = None) -> list[str]:
    """Return the addresses that a request to a URL may connect to, every one of them judged.

    ``localhost``, names below it and addresses of this machine must mean this machine. Raises ForbiddenError
    for any other place than the open internet that ``allowed`` does not name, OSError when a name is unknown.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in SCHEMES or not host:
        raise ForbiddenError(f"{parts.scheme or 'no scheme'} is not asked: only http and https are")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port in BLOCKED_PORTS:
        raise ForbiddenError(f"port {port} belongs to another kind of service and is not asked")
    names, networks = read_allowed(allowed)
    literal = _address(host)
    local = literal.is_loopback if literal is not None else host == "localhost" or host.endswith(".localhost")
    found = [str(literal)] if literal is not None else list((find or look_up)(host, port))
    addresses = [address for address in map(_address, found) if address is not None]
    if not addresses:
        raise OSError(f"{host} has no address")
    for address in addresses:
        if local and embedded(address).is_loopback:
            continue
        if not local and (host in names or _within(address, networks) or is_public(address)):
            continue
        raise ForbiddenError(
            f"{host} means {address}, which is "
            + ("not this machine" if local else "on a network of one's own")
            + ("" if local else f"; if it is meant: castle config set llm_allowed_hosts '[{host}]'")
        )
    return [str(address) for address in addresses]


def proxied(url: str) -> bool:
    """Say whether the environment sends requests to a URL through a proxy, which looks names up itself."""
    parts = urlsplit(url)
    proxies = getproxies()
    host = parts.hostname or ""
    return bool(proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(host)


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(place in network for network in networks for place in {address, embedded(address)})


def _address(text: str) -> Address | None:
    """Return the address that a text is, in any way of writing that a system would take for one."""
    try:
        return ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        pass
    # 0x7f.1, 2130706433 and 0177.0.0.1 are addresses to the C library, and so to whatever connects.
    if text and all(part and part[0].isdigit() for part in text.split(".")):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(text))
        except OSError:
            return None
    return None
