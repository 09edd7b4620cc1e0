"""Pages and texts: what a browser would follow, what a parser would unfold, and characters made to confuse (TRAPS 68)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.hostile_files.form import DAMAGED, LARGE, LATE, TEXT, HostileFile, Lure, fixed, ready
from tests.support.hostile_files.office import laughs

_WORDS = "the honest words"
_LIMITED = (TEXT, LARGE, LATE, DAMAGED)


def _page(inner: str, head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body><p>{_WORDS}</p>{inner}</body></html>".encode()


def _pages() -> Iterator[HostileFile]:
    def follow(lure: Lure) -> bytes:
        refresh = f'<meta http-equiv="refresh" content="0;url={lure.url}">'
        return _page("", f'{refresh}<base href="{lure.url}"><link rel="stylesheet" href="a.css">')

    def load(lure: Lure) -> bytes:
        tags = ("iframe", "img", "script", "embed", "audio", "video", "frame")
        return _page(
            "".join(f'<{tag} src="{lure.url}{tag}"></{tag}>' for tag in tags) + f'<object data="{lure.secret.as_uri()}">'
        )

    def entity(lure: Lure) -> bytes:
        kind = f'<!DOCTYPE html [<!ENTITY x SYSTEM "{lure.secret.as_uri()}">{laughs()}]>'
        body = f"<body><p>{_WORDS} &x; &e9;</p></body>"
        return f'<?xml version="1.0"?>{kind}<html xmlns="http://www.w3.org/1999/xhtml">{body}</html>'.encode()

    yield HostileFile("html-refresh", "a.html", follow, (TEXT,), _WORDS)
    yield HostileFile("html-frames-and-pictures", "a.html", load, (TEXT,), _WORDS)
    yield HostileFile("xhtml-entities", "a.xhtml", entity, (TEXT,), _WORDS)
    yield HostileFile("html-deep", "a.html", fixed(lambda: _page("<div>" * 100_000)), _LIMITED)
    yield HostileFile("html-deep-lists", "a.html", fixed(lambda: _page("<ul><li>x" * 3_000)), _LIMITED)
    yield HostileFile(
        "html-many-attributes",
        "a.html",
        fixed(lambda: _page("<p " + " ".join(f"a{n}=1" for n in range(300_000)) + ">")),
        _LIMITED,
    )
    yield HostileFile("html-never-closed", "a.html", fixed(lambda: _page("<!--" + "<a <b <c " * 300_000)), _LIMITED)
    yield HostileFile(
        "html-wide-table", "a.html", fixed(lambda: _page(f"<table><tr>{'<td colspan=100000>x' * 50}</table>")), _LIMITED
    )
    yield HostileFile("html-many-references", "a.html", fixed(lambda: _page("&#x41;" * 1_000_000)), _LIMITED)


def _characters() -> Iterator[HostileFile]:
    read: dict[str, tuple[str, bytes, str]] = {
        "text-of-combining-marks": ("a.txt", ("a" + "\u0301" * 500_000).encode(), ""),
        "text-that-turns-its-direction": ("a.txt", "invoice\u202egnp.exe".encode(), "invoice"),
        "text-of-nothing-to-see": ("a.txt", ("words" + "\u200b" * 10_000).encode(), "words"),
        "text-of-tags-nobody-sees": ("a.txt", ("words" + "".join(chr(0xE0000 + ord(c)) for c in "obey")).encode(), "words"),
        "text-of-terminal-codes": ("a.txt", b"words \x1b]0;evil\x07 \x1b[2J", ""),
        "text-of-a-million-lines": ("a.txt", b"a\n" * 1_000_000, "a"),
        "text-of-one-line": ("a.txt", b"a" * 10_000_000, "a"),
        "json-of-one-line": ("a.json", b'{"a":"' + b"a" * 10_000_000 + b'"}', "aaaa"),
        "json-deep": ("a.json", b"[" * 500_000 + b"]" * 500_000, "["),
        "csv-formula": ("a.csv", b"name,=cmd|'/c calc'!A1\n@SUM(1+1),+1\n", "=cmd"),
        "csv-of-a-million-cells": ("a.csv", b"a" + b"," * 1_000_000, "a,"),
        "markdown-picture": ("a.md", b"![x](http://127.0.0.1/) words", "words"),
        "xml-laughs": ("a.xml", f'<?xml version="1.0"?><!DOCTYPE a [{laughs()}]><a>&e9;</a>'.encode(), "&e9;"),
        "text-in-utf-7": ("a.txt", b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-", "+ADw-"),
        "script": ("a.sh", b"#!/bin/sh\nrm -rf /\n", "rm -rf"),
    }
    for id, (name, data, words) in read.items():
        ends = (TEXT, DAMAGED) if id in ("text-of-terminal-codes",) else (TEXT,)
        yield HostileFile(id, name, ready(data), ends, words)
    refused: dict[str, tuple[str, bytes]] = {
        "text-of-lone-surrogates": ("a.txt", b"words \xed\xa0\x80 words"),
        "text-overlong": ("a.txt", b"words \xc0\xaf words"),
        "text-with-a-null": ("a.txt", b"words\x00words"),
        "text-in-utf-16-unmarked": ("a.txt", "words and more".encode("utf-16-le")),
        "text-in-utf-32": ("a.txt", "words".encode("utf-32")),
        "text-of-half-a-character": ("a.txt", b"\xff\xfea\x00\x3d\xd8"),
        "text-of-a-mark-alone": ("a.txt", b"\xef\xbb\xbf"),
        "text-of-blanks": ("a.txt", b" \n\t" * 1_000),
    }
    for id, (name, data) in refused.items():
        yield HostileFile(id, name, ready(data), (DAMAGED,))
    yield HostileFile("nothing", "a.txt", fixed(lambda: b""), ("bad_request",))


def texts() -> Iterator[HostileFile]:
    """All of them."""
    yield from _pages()
    yield from _characters()
