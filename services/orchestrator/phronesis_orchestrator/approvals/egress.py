"""Where calls and replies would send data: the hosts of every address in them, and those that a person or an admin named.

An address is data as a whole: its host says who reads the rest. One that two programs may read differently has no host here,
and what has no host is allowed nowhere.
"""

from __future__ import annotations

import base64
import binascii
import html
import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import idna

from phronesis_contracts.approvals import ActionPolicy

LONGEST_HOST = 253
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_SCHEMES = frozenset({"http", "https", "ws", "wss", "ftp", "ftps"})
"""Schemes that name a host as web addresses do; an address with another one leads nowhere that is allowed."""
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]")
"""What some programs drop from an address, or read as a slash."""
_DEVIATING = frozenset("ßςẞ\u200c\u200d")
"""Letters of names that older programs read as others."""
_AUTHORITY = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]+)", re.I)
_PORT = re.compile(r":[0-9]{0,5}$")
_NO_HOST = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last part of a name that some programs take for a number."""
_STOP = r"\s\"'<>`{}|^"
_BETWEEN = r"[\t\r\n]*"
"""What programs drop from the inside of an address."""
_WEB = "|".join(_BETWEEN.join(scheme) for scheme in ("https?", "wss?", "ftps?")).replace(f"{_BETWEEN}?", "?")
_ADDRESS = re.compile(
    rf"(?:\b[a-z][a-z0-9+.-]{{1,30}}:)?[/\\]{_BETWEEN}[/\\][^{_STOP}]+"
    rf"|\b(?:{_WEB}){_BETWEEN}:[^{_STOP}]*(?:{_BETWEEN}[/\\][^{_STOP}]*)*"
    rf"|\b(?:javascript|data|file|gopher|ldaps?|dict|smb|tel|sms):[^{_STOP}]+",
    re.I,
)
_NAME = r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?[.。．｡])+(?:xn--[a-z0-9-]+|[^\W\d_]{2,63})"
_BARE = re.compile(rf"(?<![\w@./\\-]){_NAME}(?=[.。．｡]?[:/?#])", re.I)
"""A host without a scheme that a path, a port or a query follows."""
_ALONE = re.compile(rf"\s*{_NAME}[.。．｡]?\s*", re.I)
_MAIL = re.compile(rf"(?<![\w.+-])[\w.+-]{{1,64}}@{_NAME}", re.I)
_NAMED_URL = re.compile(rf"\b(?:https?|wss?|ftps?)://[^{_STOP}]+", re.I)
_NAMED_HOST = re.compile(rf"(?<![\w@./\\%-]){_NAME}(?![\w@\\-]|[.。．｡]\w)", re.I)
_TRAILING = ".,;:!?)]}\u2026\u3002"
_FILE_ENDINGS = frozenset(
    "app bz cab cc cr java mk ml mm mov md pl pm po ps pub py rs sc sh so st sv tc tf ts vi ws zip".split()
)
"""Endings of hosts that are, in what people write, more often those of files: such a name alone names no host."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-f]{2}){8,}", re.I)
_DEPTH, _DECODED = 20, 3
"""Values inside values that are looked into, and encodings inside encodings."""
_MOST_TEXT = 1_000_000
"""Characters that are looked through; what holds more is taken to hold an address that is allowed nowhere."""
NOWHERE = ""
"""Stands for the host of an address that cannot be read in one way alone."""


def normal_host(host: str) -> str | None:
    """A host as it is compared: in lower case, in its ASCII form, without a dot at its end; `None` where it is none.

    Look-alikes in other scripts stay apart, since their ASCII forms differ. A number counts only as a full address: other
    spellings of one are read differently by different programs, as are a few letters of names.
    """
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        pass
    if not _DEVIATING.isdisjoint(host):
        return None
    try:
        ascii = idna.encode(host.removesuffix("."), uts46=True, std3_rules=True).decode().lower()
    except (idna.IDNAError, UnicodeError, IndexError):
        return None
    labels = ascii.split(".")
    if len(ascii) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    return None if _NO_HOST.fullmatch(labels[-1]) else ascii


def host_of(url: str) -> str | None:
    """The host that an address leads to; `None` where programs may differ about it: with a user's name, a backslash, spaces or
    control characters, a number in place of a name, a port that is none, another scheme than the web's.
    """
    if _UNSAFE.search(url) or (found := _AUTHORITY.match(url)) is None or found[1].lower() not in _SCHEMES:
        return None
    authority = found[2]
    if "@" in authority or "%" in authority:
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    normal = normal_host(_PORT.sub("", authority))
    return normal if host and normal is not None and normal_host(host) == normal else None


def named_hosts(text: str) -> frozenset[str]:
    """The hosts that a person names in their own words, as addresses or by name, and the mail addresses, whole: the host of one
    is not named by it. The name of a file names no host.
    """
    urls = [host_of(url.rstrip(_TRAILING)) for url in _NAMED_URL.findall(text)]
    rest = _NAMED_URL.sub(" ", text)
    mails = [_normal_mail(mail) for mail in _MAIL.findall(rest)]
    hosts = [normal_host(name) for name in _NAMED_HOST.findall(rest) if not _is_file(name)]
    return frozenset(host for host in (*urls, *mails, *hosts) if host)


def _is_file(name: str) -> bool:
    return name.lower().rpartition(".")[2] in _FILE_ENDINGS


def _normal_mail(address: str) -> str | None:
    box, _, name = address.rpartition("@")
    host = normal_host(name)
    return f"{box.lower()}@{host}" if host else None


def allowed_host(url: str, user_text: str, policy: ActionPolicy) -> bool:
    """Whether data may be sent to an address without asking.

    Args:
        url: the address, whole.
        user_text: the user's own words, and nothing else.
        policy: the tenant's, with its hosts.
    """
    host = host_of(url)
    return host is not None and is_allowed(host, named_hosts(user_text), policy)


def is_allowed(host: str, named: Iterable[str], policy: ActionPolicy) -> bool:
    """The same of a host, or a mail address, as `hosts_in` gives it. `named`: those that the person named."""
    above = host.rpartition("@")[2]
    return host != NOWHERE and (host in named or any(_covers(entry, above) for entry in policy.egress))


def _covers(entry: str, host: str) -> bool:
    if entry.startswith("*."):
        above = normal_host(entry[2:])
        return above is not None and host.endswith(f".{above}")
    return normal_host(entry) == host


def check_entry(entry: str) -> str:
    """An entry of the list of hosts as it is kept. Raises `ValueError`: it names no host, or a whole domain of the top."""
    stated = entry.strip()
    host, below = normal_host(stated.removeprefix("*.")), stated.startswith("*.")
    if host is None or (below and ("." not in host or _NO_HOST.fullmatch(host.rpartition(".")[2]) or ":" in host)):
        raise ValueError(f"{entry[:100]!r} is no host; write example.org, or *.example.org for all below it")
    return f"*.{host}" if below else host


def hosts_in(value: Any) -> frozenset[str]:
    """The hosts of every address in a value of JSON, however deep, and its mail addresses; `NOWHERE` for any other address.

    Encoded ones are found too (percent, base64, hexadecimal, entities, JSON in a text), and those in the names of fields.
    """
    found: set[str] = set()
    length = 0
    for text in _texts(value, _DEPTH):
        if text is None or (length := length + len(text)) > _MOST_TEXT:
            found.add(NOWHERE)
            break
        found.update(_hosts_of_text(text, _DECODED))
    return frozenset(found)


def call_host(arguments: Any) -> str:
    """The hosts of all addresses in the arguments of a call, sorted, with commas between them; empty where there is none."""
    return ",".join(host or "?" for host in sorted(hosts_in(arguments)))


def may_leave(arguments: Any, user_text: str, policy: ActionPolicy) -> bool:
    """Whether every address in the arguments of a call leads to a host that the user or an admin named."""
    named = named_hosts(user_text)
    return all(is_allowed(host, named, policy) for host in hosts_in(arguments))


def _texts(value: Any, depth: int) -> Iterator[str | None]:
    if depth < 0:
        yield None
    elif isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _texts(each, depth - 1)


def _hosts_of_text(text: str, decodings: int) -> Iterator[str]:
    yield from _hosts_of_addresses(text)
    rest = _ADDRESS.sub(" ", text)
    for match in _MAIL.finditer(rest):
        yield _normal_mail(match[0]) or NOWHERE
    if _ALONE.fullmatch(rest) and not _is_file(rest.strip()):
        yield normal_host(rest.strip()) or NOWHERE
    if decodings:
        for decoded in _decoded(text):
            for each in _texts(decoded, _DEPTH):
                yield from (NOWHERE,) if each is None else _hosts_of_text(each, decodings - 1)


def _hosts_of_addresses(text: str) -> Iterator[str]:
    """The hosts of addresses, and of those inside them: where one leads on to another."""
    while text:
        inside = []
        for match in _ADDRESS.finditer(text):
            yield _host_or_nowhere(match[0])
            inside.append(_AUTHORITY.sub("", match[0], count=1).lstrip("/") if _AUTHORITY.match(match[0]) else "")
        for match in _BARE.finditer(_ADDRESS.sub(" ", text)):
            yield normal_host(match[0]) or NOWHERE
        text = " ".join(filter(None, inside))


def _host_or_nowhere(address: str) -> str:
    address = address.rstrip(_TRAILING)
    return host_of(f"https:{address}" if address.startswith("//") else address) or NOWHERE


def _decoded(text: str) -> Iterator[Any]:
    """What a text says in each of the encodings that it may be in."""
    if "%" in text and (plain := unquote(text, errors="replace")) != text:
        yield plain
    if "&" in text and (plain := html.unescape(text)) != text:
        yield plain
    if text.lstrip()[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):
            yield json.loads(text)
    for written in dict.fromkeys((text, "".join(text.split()))):
        for match in _BASE64.finditer(written):
            for part in dict.fromkeys((match[0], *re.split("[/_-]", match[0]))):
                if len(part) >= _LEAST and (said := _from_base64(part)) is not None:
                    yield said
        for match in _HEX.finditer(written):
            with suppress(ValueError):
                yield bytes.fromhex(match[0]).decode()


_LEAST = 12
"""Characters in which no address fits in base64."""


def _from_base64(text: str) -> str | None:
    """What a text says in base64, of either alphabet; `None` where it says no text."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
