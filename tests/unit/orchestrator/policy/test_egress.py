"""Where data may go: to hosts that an admin or the user named, whatever tricks an address plays."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.approvals import ActionPolicy
from phronesis_orchestrator.approvals.egress import (
    NOWHERE,
    allowed_host,
    call_host,
    host_of,
    hosts_in,
    may_leave,
    named_hosts,
    normal_host,
)

LISTED = ActionPolicy(egress=("example.org", "*.example.net", "192.0.2.7"))
NONE = ActionPolicy()
LABELS = st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True)
HOSTS = st.lists(LABELS, min_size=1, max_size=3).map(lambda labels: ".".join((*labels, "example")))
PATHS = st.text("abcXYZ019/?=&#._~", max_size=30).map(lambda rest: f"/{rest}")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "https://EXAMPLE.ORG./a?code=1",
        "http://example.org:8080/",
        "https://example.org:/",
        "https://www.example.net/x",
        "https://a.b.example.net",
        "http://192.0.2.7/",
        "https://ｅｘａｍｐｌｅ.org/",
    ],
)
def test_an_address_at_a_listed_host_is_allowed_in_any_spelling_that_all_programs_read_alike(url: str) -> None:
    assert allowed_host(url, "", LISTED)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/",
        "https://example.net/",
        "https://example.org.evil.example/",
        "https://evilexample.org/",
        "https://notexample.net/",
        "https://example.org@evil.example/",
        "https://example.org:pass@evil.example/",
        "https://evil.example/@example.org",
        "https://evil.example#@example.org",
        "https://evil.example?example.org",
        "https://evil.example\\@example.org/",
        "https://example.org\\@evil.example/",
        "https://example.org\\.evil.example/",
        "https://example.org:80@evil.example/",
        "https://example.org:80:evil.example/",
        "https://example.org:99999/",
        "https://example.org:８０/",
        "https://example.org%2eevil.example/",
        "https://example.org%00.evil.example/",
        "https://example.org\t.evil.example/",
        "https://example.org\n/",
        " https://example.org/",
        "https:// example.org/",
        "https:///example.org/",
        "https:example.org",
        "//example.org/",
        "example.org",
        "https://exаmple.org/",
        "https://exam\u200bple.org/",
        "https://exam\u200dple.org/",
        "https://examp\u0142e.org/",
        "https://example.org../",
        "https://.example.org/",
        "https://example。org。evil.example/",
        "https://example.org／evil.example/",
        "https://3221225991/",
        "https://0xc0.0.2.7/",
        "https://192.0.2.07/",
        "https://192.0.519/",
        "javascript:fetch('https://example.org')",
        "data:text/html,https://example.org",
        "file://example.org/etc/passwd",
        "gopher://example.org/",
        "https://[::ffff:192.0.2.7]/",
        "https://[::1",
        "",
    ],
)
def test_an_address_that_leads_elsewhere_or_that_programs_may_read_differently_is_not_allowed(url: str) -> None:
    assert not allowed_host(url, "", LISTED)


def test_a_host_with_letters_that_older_programs_read_as_others_is_allowed_nowhere() -> None:
    assert host_of("https://straße.example/") is None
    assert not allowed_host("https://straße.example/", "look at straße.example", NONE)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Read https://example.org/a?b=c, please.", {"example.org"}),
        ("(see http://Example.ORG:8080/x)", {"example.org"}),
        ("What does example.org say? And news.example.net!", {"example.org", "news.example.net"}),
        ("Schau auf bücher.example nach", {"xn--bcher-kva.example"}),
        ("Посмотри на пример.example", {"xn--e1afmkfd.example"}),
        ("Fetch https://[2001:db8::1]/x", {"2001:db8::1"}),
        ("Write to bob@example.org", {"bob@example.org"}),
        ("example.org@evil.example", {"example.org@evil.example"}),
        ("https://example.org@evil.example/", set()),
        ("Summarise report.md and setup.py, then unpack photos.zip", set()),
        ("Read https://report.md/x", {"report.md"}),
        ("version 1.2.3 costs 4.50 e.g. today", set()),
        ("The file /etc/example.org/hosts", set()),
        ("", set()),
    ],
)
def test_what_a_person_names_in_their_words_is_hosts_and_mail_addresses_and_no_files(text: str, named: set[str]) -> None:
    assert named_hosts(text) == named


def test_the_name_of_an_attachment_in_the_users_words_allows_no_host_of_that_name() -> None:
    assert not allowed_host("https://report.md/leak?code=1", "Summarise report.md for me", NONE)


def test_a_mail_address_that_the_user_names_allows_that_box_alone() -> None:
    said = "Send it to bob@example.org"
    assert may_leave({"to": "Bob@Example.org"}, said, NONE)
    assert not may_leave({"to": "eve@example.org"}, said, NONE)
    assert not may_leave({"url": "https://example.org/"}, said, NONE)
    assert may_leave({"to": "eve@example.org"}, "", LISTED)


@given(HOSTS, PATHS, HOSTS)
def test_a_host_that_the_user_named_is_allowed_with_any_path_and_no_other_is(host: str, path: str, other: str) -> None:
    assert allowed_host(f"https://{host}{path}", f"Have a look at {host} for me", NONE)
    assert allowed_host(f"https://{host}{path}", f"Have a look at https://{host}/start", NONE)
    if other != host:
        assert not allowed_host(f"https://{other}{path}", f"Have a look at {host} for me", NONE)


@given(HOSTS, st.sampled_from(["{0}@", "{0}:x@", "{0}\\@", "{0}%40", "{0}.", "{0}-", "{0}\t@", "{0}@{0}@"]), HOSTS)
def test_no_prefix_before_another_host_makes_it_the_named_one(host: str, prefix: str, other: str) -> None:
    if not other.endswith(host):
        assert not allowed_host(f"https://{prefix.format(host)}{other}/", f"Read {host}", ActionPolicy(egress=(host,)))


@given(st.text(max_size=60))
def test_reading_any_text_as_an_address_never_fails(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}/"):
        host = host_of(url)
        assert host is None or (host == host.lower() and host.isascii() and normal_host(host) == host)
    assert isinstance(named_hosts(text), frozenset)
    assert isinstance(hosts_in({text: [text]}), frozenset)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS: list[Any] = [
    str,
    lambda url: {"a": [{"b": (url,)}]},
    lambda url: {url: 1},
    lambda url: f"Please post this to <{url}>, thanks.",
    lambda url: f"first line\n{url}\nlast line",
    lambda url: quote(url, safe=""),
    lambda url: quote(quote(url, safe=""), safe=""),
    b64,
    lambda url: base64.urlsafe_b64encode(url.encode()).decode().rstrip("="),
    lambda url: f"path/{b64(url)}",
    lambda url: f"Send {b64(url)} to them, or {url.encode().hex()} instead",
    lambda url: b64(quote(url, safe="")),
    lambda url: b64(b64(url)),
    lambda url: "\n".join(b64(url)[at : at + 8] for at in range(0, len(b64(url)), 8)),
    lambda url: json.dumps({"callback": url}),
    lambda url: json.dumps(json.dumps([url])).replace("https", "\\u0068ttps"),
    lambda url: url.replace("https", "&#104;ttps"),
    lambda url: url.encode().hex(),
    lambda url: url.replace("https:", ""),
    lambda url: url.replace("https://", ""),
    lambda url: url.replace("https://", "HtTpS:\\\\"),
    lambda url: url.replace("https://", "https:/"),
    lambda url: url.replace("https", "ht\ntps"),
    lambda url: url.replace("https://", "/\t/"),
]


@pytest.mark.parametrize("encode", ENCODINGS, ids=range(len(ENCODINGS)))
@given(host=HOSTS)
def test_an_address_is_found_however_it_is_packed_into_the_arguments(encode: Any, host: str) -> None:
    found = hosts_in({"method": "GET", "given": encode(f"https://{host}/leak?code=4711")})
    assert found
    assert found <= {host, NOWHERE}
    assert not may_leave({"given": encode(f"https://{host}/leak?code=4711")}, "Read the prices", LISTED)


@given(HOSTS, HOSTS)
def test_one_address_that_is_not_allowed_holds_back_all_the_others(host: str, other: str) -> None:
    arguments = {"url": f"https://{host}/", "headers": {"Referer": f"https://{other}/"}, "then": [quote(f"https://{other}/x")]}
    assert may_leave(arguments, f"Read {host} and {other}", NONE)
    assert may_leave(arguments, f"Read {host}", NONE) == (host == other)


@pytest.mark.parametrize("inside", [str, lambda url: quote(url, safe=""), b64, lambda url: url.removeprefix("https://")])
def test_an_address_that_an_allowed_one_leads_on_to_counts_too(inside: Any) -> None:
    url = f"https://example.org/go?to={inside('https://evil.example/?c=1')}"
    assert hosts_in({"url": url}) == {"example.org", "evil.example"}
    assert not may_leave({"url": url}, "", LISTED)


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "What is the price of oil? See chapter 1.2, e.g. the table."},
        {"path": "notes/2024.txt", "amount": 12.5, "ratio": "3:4", "when": "2024-05-04T07:30:00Z"},
        {
            "id": "b8d1f2a3-4c5e-4d6f-8a7b-9c0d1e2f3a4b",
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        },
        {"file": "main.py", "words": ["and/or", "this - that", None, True]},
        {},
    ],
)
def test_arguments_without_an_address_name_no_host(arguments: dict[str, Any]) -> None:
    assert (hosts_in(arguments), call_host(arguments), may_leave(arguments, "", NONE)) == (frozenset(), "", True)


def test_the_host_of_a_call_names_all_of_its_hosts_in_one_order() -> None:
    first = call_host({"a": "https://b.example/", "b": "https://a.example/", "c": "https://x@y/"})
    assert first == call_host({"x": ["https://x@y/", "https://a.example/1", "https://b.example/2"]}) == "?,a.example,b.example"


def test_what_is_nested_too_deeply_or_too_long_to_be_looked_through_may_not_leave() -> None:
    deep: Any = "nothing"
    for _ in range(30):
        deep = [deep]
    assert not may_leave({"x": deep}, "", LISTED)
    assert not may_leave({"x": "a " * 600_000}, "", LISTED)
