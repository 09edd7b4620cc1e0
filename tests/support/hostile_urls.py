"""Addresses that may not be fetched: each spelling, name, redirect and page with an id of its own (TRAPS 71).

`{port}` stands for a port of this machine at which a canary listens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

REFUSED = "bad_request"
HERE = "127.77.0.1"
"""Where the tests' public web stands; the one address inside that counts as public, on Linux alone."""


@dataclass(frozen=True)
class HostileUrl:
    """One address, and the code of the error that it ends with."""

    id: str
    family: str
    url: str
    code: str = REFUSED


_SPELLINGS: dict[str, tuple[str, ...]] = {
    "loopback": (
        *("127.0.0.1", "127.0.0.1.", "127.1.2.3", "127.255.255.254", "localhost", "localhost.", "LOCALHOST", "LocalHost."),
        *("db.localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "0.0.0.0", "0.0.0.0."),
    ),
    "number": (
        *("0", "127.1", "127.0.1", "10.1", "0x7f000001", "0x7F.1", "0x7f.0x0.0x0.0x1", "2130706433", "017700000001"),
        *("0177.0.0.1", "0177.0.0.01", "127.0.0.0x1", "00000177.1", "4294967297", "3232235521", "2852039166", "0xa9fea9fe"),
        *("1.2.3.4.5", "127.0.0.1.0x7f", "127.0.0.256", "127.0.0.-1", "0x", "127.00.00.01", "٢١٣٠٧٠٦٤٣٣"),
    ),
    "private": (
        *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.255", "100.64.0.1"),
        *("100.127.255.255", "100.100.100.200", "169.254.169.254", "169.254.170.2", "168.63.129.16", "192.0.0.192"),
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "198.18.0.1", "224.0.0.1", "239.255.255.250"),
        *("240.0.0.1", "255.255.255.255"),
    ),
    "ipv6": (
        *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        *("[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::ffff:10.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]"),
        *("[64:ff9b::169.254.169.254]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001::1]"),
        *("[2001:0:7f00:1::]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[fc00::1]", "[fd00:ec2::254]", "[fd12:3456::1]"),
        *("[fe80::1]", "[fe80::1%25lo]", "[fe80::1%lo]", "[fec0::1]", "[ff02::1]", "[ff05::1:3]", "[5f00::1]", "[::1%25lo]"),
        *("[v1.a]", "[::1", "::1", "[127.0.0.1]", "[]", "[1::2::3]"),
    ),
    "unicode": (
        *(
            "①②⑦.⓪.⓪.①",
            "１２７.0.0.1",
            "127。0。0。1",
            "127．0．0．1",
            "127｡0｡0｡1",
            "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
            "ｌｏｃａｌｈｏｓｔ",
            "localhost。",
        ),
        *("loc\u00adalhost", "local\u200bhost", "\u202e1.0.0.721", "𝟏𝟐𝟕.𝟎.𝟎.𝟏", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "xn--", "xn--a-.example"),
    ),
    "name": (
        *("gateway", "nats", "postgres", "kubernetes.default.svc.cluster.local", "metadata.google.internal", "metadata"),
        *(
            "printer.local",
            "router.home.arpa",
            "a..example",
            ".example",
            ".",
            "..",
            "-a.example",
            "a-.example",
            "a" * 64 + ".com",
        ),
    ),
}
_WHOLE: dict[str, tuple[str, ...]] = {
    "user": (
        *("http://public.example\\@127.0.0.1/", "http://public.example@127.0.0.1/", "http://127.0.0.1@public.example/"),
        *("http://user:secret@public.example/", "http://@public.example/", "http://:@127.0.0.1/", "http://a%40127.0.0.1/"),
        *("http://127.0.0.1#@public.example/", "http://127.0.0.1?@public.example/", "http://public.example%2f@127.0.0.1/"),
        *("http://127.0.0.1\\.public.example/", "http://127.0.0.1;public.example/", "http://127.0.0.1%2fpublic.example/"),
        *("http:\\\\127.0.0.1\\", "http:/127.0.0.1/", "http:127.0.0.1/", "http:////127.0.0.1/", "http://%31%32%37.0.0.1/"),
        *("http://127.0.0.1%00.public.example/", "http://public.example%0d%0aHost:%20127.0.0.1/"),
    ),
    "port": (
        *("http://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://localhost:{port}/", "http://public.example:{port}/"),
        *(f"http://public.example:{port}/" for port in (0, 22, 25, 443, 2375, 4222, 5432, 6379, 7687, 8222, 9200, 65535)),
        *("https://public.example:80/", "http://public.example:-1/", "http://public.example:99999/", "http://public.example:６３７９/"),
        *("http://public.example:80:80/", "http://public.example:0x50/"),
    ),
    "scheme": (
        *("file:///etc/passwd", "file://localhost/etc/passwd", "FILE:///etc/passwd", "gopher://public.example:6379/_PING"),
        *("ftp://public.example/a", "ftps://public.example/a", "sftp://public.example/a", "tftp://public.example/a"),
        *("dict://127.0.0.1:{port}/info", "ldap://127.0.0.1/", "jar:http://public.example/a.jar!/a", "netdoc:///etc/passwd"),
        *("ws://public.example/", "wss://public.example/", "unix:///run/docker.sock", "http+unix://%2frun%2fdocker.sock/"),
        *("data:text/plain;base64,aGVsbG8=", "data:,hello", "javascript:alert(1)", "about:blank", "blob:http://a.example/1"),
        *("php://filter/resource=/etc/passwd", "expect://id", "concat:/etc/passwd", "nats://127.0.0.1:{port}/", "view-source:http://a/"),
        *("url:http://127.0.0.1/", " http://127.0.0.1/", "//127.0.0.1/", "/etc/passwd", "127.0.0.1", "http://", "http:", ":"),
    ),
    "shape": (
        *("http://public.example/\r\nHost: 127.0.0.1", "http://public.example/a b", "http://public.example/\x00", "http://\t127.0.0.1/"),
        *("http://127.0.0.1/" + "a" * 2_100, "http://" + "a." * 200 + "example/", "http://public.example/\x7f"),
    ),
}  # fmt: skip

NAMES: dict[str, list[tuple[str, ...]]] = {
    "public.example": [(HERE,)],
    "loopback.example": [("127.0.0.1",)],
    "loopback6.example": [("::1",)],
    "any.example": [("0.0.0.0",)],
    "private.example": [("10.0.0.1",)],
    "lan.example": [("192.168.1.1",)],
    "metadata.example": [("169.254.169.254",)],
    "shared.example": [("100.64.0.1",)],
    "mapped.example": [("::ffff:127.0.0.1",)],
    "nat64.example": [("64:ff9b::7f00:1",)],
    "sixtofour.example": [("2002:7f00:1::",)],
    "teredo.example": [("2001:0:7f00:1::",)],
    "unique.example": [("fd00::1",)],
    "link.example": [("fe80::1%lo",)],
    "multicast.example": [("224.0.0.1",)],
    "127.0.0.1.nip.example": [("127.0.0.1",)],
    "mixed.example": [(HERE, "127.0.0.1")],
    "mixed6.example": [(HERE, "::1")],
    "last.example": [(HERE, HERE, HERE, HERE, "10.0.0.1")],
    "nobody.example": [()],
    "nonsense.example": [("not an address",)],
    "xn--pulic-4ye.example": [("127.0.0.1",)],
}
"""What the tests' resolver says, one answer after the other; the last one stays."""
_MOVES = (301, 302, 303, 307, 308)
TARGETS: tuple[str, ...] = (
    *("http://127.0.0.1/", "http://127.0.0.1:{port}/", "http://[::1]/", "http://localhost/", "//127.0.0.1/", "http://0/"),
    *("http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:127.0.0.1]/", "http://loopback.example/"),
    *(
        "http://mixed.example/",
        "http://2130706433/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/_PING",
        "ftp://127.0.0.1/",
    ),
    *(
        "data:text/plain,hello",
        "http://user@public.example/",
        "http://public.example@127.0.0.1/",
        "http://public.example:6379/",
    ),
    *(
        "https://127.0.0.1/",
        "http://[",
        "http://①②⑦.⓪.⓪.①/",
        "http://[fe80::1%25lo]/",
        "\\\\127.0.0.1\\",
        "https:///etc/passwd",
    ),
    *("http://[::1", "http://127.0.0.1:abc/", "http://" + "a" * 70_000 + ".example/"),
)
"""Where a public page says that it has moved to."""
_PAGES = {
    "loop": REFUSED,
    "fifty-redirects": REFUSED,
    "gone": REFUSED,
    "endless": "too_large",
    "says-large": "too_large",
    "endless-chunks": "too_large",
    "slow-body": "timed_out",
    "slow-head": "timed_out",
    "silent": "timed_out",
    "endless-continue": "timed_out",
    "short": "unavailable",
    "packed": "unavailable",
    "packed-bomb": "unavailable",
    "many-heads": "unavailable",
    "large-head": "unavailable",
    "two-lengths": "unavailable",
    "negative-length": "unavailable",
    "wrong-chunks": "unavailable",
    "location-line-break": REFUSED,
    "no-web-server": "unavailable",
    "hangs-up": "unavailable",
    "broken": "unavailable",
    "upgrade": "unavailable",
    "partial": "unavailable",
    "empty": REFUSED,
}
"""Pages that behave badly, and the code of the error."""


def hostile_urls() -> Iterator[HostileUrl]:
    """All of them."""
    for family, hosts in _SPELLINGS.items():
        yield from (HostileUrl(f"{family}-{_short(host)}", family, f"http://{host}/") for host in hosts)
    for family, urls in _WHOLE.items():
        yield from (HostileUrl(f"{family}-{_short(url)}", family, url) for url in urls)
    for name in NAMES:
        if name not in ("public.example",):
            yield HostileUrl(f"resolver-{name}", "resolver", f"http://{name}/")
    for place, target in enumerate(TARGETS):
        for status in _MOVES:
            yield HostileUrl(f"redirect-{status}-{_short(target)}", "redirect", f"http://public.example/{status}/{place}")
    for page, code in _PAGES.items():
        yield HostileUrl(f"page-{page}", "page", f"http://public.example/{page}", code)


def _short(text: str) -> str:
    """The text in ASCII, as part of an id."""
    return (text if len(text) < 60 else f"{text[:40]}... ({len(text)})").encode("ascii", "backslashreplace").decode()
