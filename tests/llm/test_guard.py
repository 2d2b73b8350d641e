from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import pytest

from castle.config.settings import Settings
from castle.llm import guard
from castle.llm.base import LlmError
from castle.llm.guard import ForbiddenError, checked_addresses, is_public, read_allowed
from castle.llm.http import Server
from castle.llm.registry import provider_of
from tests.llm.servers import Reply, serving

NAMES = {
    "api.example.com": ["93.184.216.34"],
    "inside.example.com": ["10.0.0.7"],
    "both.example.com": ["93.184.216.34", "192.168.1.5"],
    "metadata.example.com": ["169.254.169.254"],
    "mapped.example.com": ["::ffff:10.0.0.1"],
    "nowhere.example.com": [],
    "localhost": ["::1", "127.0.0.1"],
    "evil.localhost": ["10.0.0.7"],
}


def names(host: str, port: int) -> Sequence[str]:
    return NAMES[host]


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://api.example.com",
        "gopher://api.example.com",
        "//api.example.com",
        "http://inside.example.com",
        "https://both.example.com/v1",
        "http://metadata.example.com",
        "https://mapped.example.com",
        "http://evil.localhost:1234",
        "http://10.0.0.1",
        "http://192.168.1.5:11434",
        "http://172.16.0.1",
        "http://100.64.0.1",
        "http://169.254.169.254/latest",
        "http://0.0.0.0:11434",
        "http://224.0.0.1",
        "http://240.0.0.1",
        "http://255.255.255.255",
        "http://[::]",
        "http://[::ffff:10.0.0.1]",
        "http://[::ffff:127.0.0.1]",
        "http://[::10.0.0.1]",
        "http://[64:ff9b::10.0.0.1]",
        "http://[2002:a00:1::1]",
        "http://[fe80::1%25eth0]",
        "http://[fc00::1]",
        "http://[ff02::1]",
        "http://167772161",
        "http://0xa.1",
        "http://012.0.0.1",
        "http://api.example.com:25",
        "http://localhost:6379",
    ],
)
def test_where_no_request_may_go(url: str) -> None:
    with pytest.raises(ForbiddenError):
        checked_addresses(url, (), names)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://127.0.0.1:11434", ["127.0.0.1"]),
        ("http://[::1]:1234/v1", ["::1"]),
        ("http://LOCALHOST:1234", ["::1", "127.0.0.1"]),
        ("https://api.example.com/v1", ["93.184.216.34"]),
        ("https://api.example.com./v1", ["93.184.216.34"]),
        ("https://8.8.8.8", ["8.8.8.8"]),
        ("https://[2606:4700::1111]", ["2606:4700::1111"]),
    ],
)
def test_where_a_request_may_go_without_being_named(url: str, addresses: list[str]) -> None:
    assert checked_addresses(url, (), names) == addresses


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        (["192.168.1.5"], "http://192.168.1.5:11434"),
        (["192.168.0.0/16"], "http://192.168.1.5:11434"),
        (["10.0.0.0/8"], "http://inside.example.com"),
        (["Inside.Example.Com"], "http://inside.example.com"),
        (["both.example.com"], "https://both.example.com"),
        (["10.0.0.1"], "http://[::ffff:10.0.0.1]"),
        (["fc00::/7"], "http://[fc00::1]"),
    ],
)
def test_what_the_setting_names_may_be_asked(allowed: list[str], url: str) -> None:
    assert checked_addresses(url, allowed, names)
    with pytest.raises(ForbiddenError, match=r"castle config set llm_allowed_hosts '\["):
        checked_addresses(url, ["10.9.9.9", "other.example.com"], names)


def test_an_allowed_name_does_not_open_a_port_or_another_scheme() -> None:
    for url in ("http://inside.example.com:22", "file://inside.example.com"):
        with pytest.raises(ForbiddenError):
            checked_addresses(url, ["inside.example.com"], names)


def test_a_name_without_addresses_is_unknown() -> None:
    with pytest.raises(OSError, match="no address"):
        checked_addresses("http://nowhere.example.com", (), names)


@pytest.mark.parametrize("entry", ["", "http://host", "10.0.0.0/99", "two words", "host:1"])
def test_what_is_no_entry_of_the_setting(entry: str) -> None:
    with pytest.raises(LlmError, match="llm_allowed_hosts"):
        read_allowed([entry])


def test_an_ipv6_address_counts_as_the_ipv4_one_inside() -> None:
    assert not is_public(ipaddress.ip_address("2001:0:53aa:64c:0:0:f5ff:fffe"))
    assert not is_public(ipaddress.ip_address("64:ff9b::7f00:1"))
    assert is_public(ipaddress.ip_address("64:ff9b::808:808"))


def test_the_connection_goes_to_the_address_that_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means another place at every look is looked up once."""
    asked: list[str] = []
    with serving(Reply({"a": 1})) as fake:
        port = int(fake.url.rpartition(":")[2])

        def rebinding(host: str, *_: Any, **__: Any) -> list[Any]:
            asked.append(host)
            first = "127.0.0.1" if len(asked) == 1 else "10.0.0.1"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (first, port))]

        real = socket.getaddrinfo

        def find(host: Any, *rest: Any, **more: Any) -> Any:
            return rebinding(host) if host == "model.example.com" else real(host, *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", find)
        url = f"http://model.example.com:{port}/v1"
        with pytest.raises(ForbiddenError, match="Fake at http://model.example.com:.* is not asked"):
            Server("Fake", url, allowed=()).post("/ask", {}, 60)
        assert fake.requests == []
        asked.clear()
        assert Server("Fake", url, allowed=("127.0.0.1",)).post("/ask", {}, 60) == {"a": 1}
    assert asked == ["model.example.com"]
    assert fake.requests[0].headers["host"] == f"model.example.com:{port}"


def test_the_next_address_is_tried_when_one_takes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Reply({"a": 1})) as fake:
        url = fake.url.replace("127.0.0.1", "localhost")
        monkeypatch.setattr(guard, "look_up", lambda host, port: ["127.0.0.2", "127.0.0.1"])
        # Tests may connect to one address of this machine only; the other one refuses, as it would.
        connect = socket.socket.connect

        def refusing(self: socket.socket, address: Any) -> None:
            if address[0] == "127.0.0.2":
                raise ConnectionRefusedError("refused")
            connect(self, address)

        monkeypatch.setattr(socket.socket, "connect", refusing)
        assert Server("Fake", url, allowed=()).get("/look", 60) == {"a": 1}


def test_a_name_and_password_in_the_url_still_open_the_server() -> None:
    with serving(Reply({"a": 1})) as fake:
        url = fake.url.replace("http://", "http://me:pass@")
        Server("Fake", url, allowed=()).get("/look", 60)
    assert fake.requests[0].headers["authorization"].startswith("Basic ")


def test_a_redirect_to_a_network_of_ones_own_is_not_followed() -> None:
    with serving(Reply(b"", 302, {"location": "http://169.254.169.254/latest"})) as fake:
        with pytest.raises(LlmError, match="redirects are not followed"):
            Server("Fake", fake.url, allowed=()).get("/look", 60)


@pytest.mark.parametrize("provider", ["ollama", "openai-compat", "anthropic"])
def test_every_provider_is_guarded(provider: Any) -> None:
    def settings(**more: Any) -> Settings:
        return Settings(
            llm_provider=provider,
            llm_endpoint="http://192.168.1.5:11434/v1",
            llm_api_key="k",
            origins={"llm_provider": "user castle.yaml"},
            **more,
        )

    with pytest.raises(ForbiddenError, match="llm_allowed_hosts"):
        provider_of(settings()).generate("s", "p")
    with pytest.raises(Exception) as caught:
        provider_of(settings(llm_allowed_hosts=("192.168.0.0/16",))).generate("s", "p")
    # What keeps it from being asked now is the guard of the tests.
    assert "a connection to ('192.168.1.5', 11434)" in str(caught.value)
    wrong = provider_of(settings(llm_allowed_hosts=("http://x",)))
    assert "llm_allowed_hosts" in (wrong.available() or "")
