"""Which addresses are fetched: the tricks that lead inside, and the honest ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest
from phronesis_media.fetching.web import is_public, parse_public_url
from tests.support.cases import for_each

REFUSED = [
    "http://localhost",
    "http://localhost.",
    "http://db.localhost/",
    "http://127.1",
    "http://0",
    "http://0x7f000001",
    "http://0x7f.1",
    "http://2130706433",
    "http://017700000001",
    "http://1.2.3.4.5/",
    "http://example.0x7f/",
    "http://[fe80::1%25eth0]/",
    "http://①②⑦.⓪.⓪.①/",
    "http://１２７.0.0.1/",
    "http://localhost。/",
    "http://good\\@127.0.0.1/",
    "http://good@evil.example/",
    "http://:secret@evil.example/",
    "http://@evil.example/",
    "http://good%40evil.example/",
    "http://gateway/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://a..b/",
    "http://.",
    "http:///etc/passwd",
    "http://exa mple.com/",
    "http://exa\tmple.com/",
    "http://example.com/\r\nHost: inside",
    "http://example.com:22/",
    "http://example.com:6379/",
    "http://example.com:7687/",
    "http://example.com:4222/",
    "http://example.com:443/",
    "https://example.com:80/",
    "http://example.com:99999/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "ftp://example.com/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "//example.com/",
    "example.com",
    "",
    "http://" + "a" * 300 + ".com/",
]


@for_each("text", REFUSED)
@pytest.mark.req("D-152")
def test_an_address_that_is_no_plain_public_name_is_refused_by_its_look(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_public_url(text)
    assert refused.value.field == "url"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("http://example.com", b"example.com"),
        ("HTTPS://EXAMPLE.COM:443/a?b#c", b"example.com"),
        ("http://example.com./", b"example.com."),
        ("https://faß.de/x", b"xn--fa-hia.de"),
        ("https://8.8.8.8/", b"8.8.8.8"),
        ("http://[2606:4700::1]/", b"2606:4700::1"),
        ("http://127.0.0.1#@good.example", b"127.0.0.1"),  # its host is looked at when it is connected to
    ],
)
def test_a_plain_address_is_taken_with_its_real_host(text: str, host: bytes) -> None:
    assert parse_public_url(text).raw_host == host


@for_each(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.9",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "5f00::1",
        "not an address",
        "",
    ],
)
@pytest.mark.req("D-152")
def test_an_address_of_the_inside_is_not_public(address: str) -> None:
    assert is_public(address) is False


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "::ffff:8.8.8.8", "2606:4700::1111"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address) is True


@given(st.text(max_size=80) | st.text(max_size=40).map(lambda text: f"http://{text}/"))
def test_any_text_is_taken_or_refused_and_nothing_else(text: str) -> None:
    try:
        url = parse_public_url(text)
    except BadRequest:
        return
    assert url.scheme in ("http", "https")


@given(
    st.ip_addresses(v=4, network="10.0.0.0/8")
    | st.ip_addresses(v=4, network="127.0.0.0/8")
    | st.ip_addresses(network="fc00::/7")
)
def test_no_address_of_a_private_network_is_public(address: object) -> None:
    assert is_public(str(address)) is False
