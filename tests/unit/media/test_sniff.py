"""Types by content: what is read, what is refused, and who lies."""

from __future__ import annotations

import contextlib
import struct
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest, ServiceError, TooLarge, UnsupportedMedia
from phronesis_media.uploads import formats
from phronesis_media.uploads.formats import decode_text, detect_type
from tests.support import documents
from tests.support.cases import for_each

PDF = documents.pdf([["one"], ["two"]])
DOCX = documents.docx(["one"])
PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
NO_IMAGE = "this type of image is not readable; save it as PNG, JPEG, WebP, GIF, BMP or TIFF"
MP4 = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00mp42\x00\x00\x00\x00" + bytes(20)
ELF = b"\x7fELF\x02\x01\x01" + bytes(64)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)


@for_each(
    ("data", "name", "claim", "type"),
    [
        (PDF, "a.pdf", "application/pdf", formats.PDF),
        (PDF, "report", None, formats.PDF),
        (b"\n" + PDF, "a.pdf", "application/octet-stream", formats.PDF),
        (DOCX, "a.docx", formats.DOCX, formats.DOCX),
        (DOCX, "a.docx", "application/zip", formats.DOCX),
        (documents.xlsx([["a"]]), "a.xlsx", None, formats.XLSX),
        (documents.pptx([("a", "b")]), "a.pptx", None, formats.PPTX),
        (documents.html("a", ["b"]), "a.html", "text/html; charset=utf-8", formats.HTML),
        (documents.html("a", ["b"]), "page", None, formats.HTML),
        (b"<!-- a --><!-- b -->\n<html>", "page", None, formats.HTML),
        ("<html><body>Grüße".encode("latin-1"), "a.html", "text/html", formats.HTML),
        (b"<p>a part of a page</p>", "a.htm", None, formats.HTML),
        (documents.html("a", ["b"]), "page.txt", None, formats.PLAIN),
        (b"# Title", "a.md", "text/plain", formats.MARKDOWN),
        (b"a,b\n1,2\n", "a.csv", "application/vnd.ms-excel", formats.CSV),
        (b"a,b\n1,2\n", "data", "text/csv", formats.CSV),
        (b"\xef\xbb\xbfhello", "a.txt", "text/plain", formats.PLAIN),
        ("h\u00e9llo".encode("utf-16"), "a.txt", "text/plain", formats.PLAIN),
        (b'{"a": 1}', "a.json", "application/json", formats.PLAIN),
        (b"What is WEBP?", "a.txt", None, formats.PLAIN),
        (b"BM and MZ are letters", "notes", "application/x-something", formats.PLAIN),
        (PNG, "cat.png", "image/png", "image/png"),
        (PNG, "cat.jpg", "image/jpeg", "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "cat.jpeg", None, "image/jpeg"),
        (b"GIF89a" + bytes(20), "cat", None, "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP" + bytes(20), "cat.webp", None, "image/webp"),
        (b"BM" + bytes(30), "cat.bmp", None, "image/bmp"),
        (b"II*\x00" + bytes(30), "cat.tif", None, "image/tiff"),
        (b"RIFF\x00\x00\x00\x00WAVE" + bytes(8), "a.wav", "audio/x-wav", "audio/wav"),
        (b"ID3\x04\xff" + bytes(20), "a.mp3", "audio/mpeg", "audio/mpeg"),
        (b"\xff\xfb\x90\x00" + bytes(20), "a.mp3", "audio/mp3", "audio/mpeg"),
        (b"fLaC" + bytes(20), "a.flac", None, "audio/flac"),
        (b"OggS\x00\x02" + bytes(20), "a.opus", "audio/opus", "audio/ogg"),
        (b"\x00\x00\x00\x1cftypM4A " + bytes(20), "a.m4a", "audio/x-m4a", "audio/mp4"),
        (MP4, "memo.m4a", None, "audio/mp4"),
    ],
)
@pytest.mark.req("D-031")
def test_a_medium_is_known_by_its_content(data: bytes, name: str, claim: str | None, type: str) -> None:
    assert detect_type(data, name, claim) == type


@for_each(
    ("data", "name", "claim", "field"),
    [
        (ELF, "cat.png", None, "name"),
        (ELF, "cat", "image/png", "claimed_type"),
        (ELF, "report.pdf", "application/pdf", "name"),
        (b"just words", "cat.png", None, "name"),
        (b"just words", "a.txt", "application/pdf", "claimed_type"),
        (PDF, "a.docx", None, "name"),
        (PDF, "a.txt", None, "name"),
        (DOCX, "a.xlsx", None, "name"),
        (DOCX, "a.pdf", None, "name"),
        (documents.archive({"a": "b"}), "a.docx", None, "name"),
        (PNG, "a.pdf", None, "name"),
        (OLE, "a.docx", None, "name"),
        (PNG, "a.wav", None, "name"),
        (b"fLaC" + bytes(20), "a.png", None, "name"),
        (b"#EXTM3U\nfile:///etc/passwd\n", "song.mp3", None, "name"),
        (b"#EXTM3U\nfile:///etc/passwd\n", "song", "audio/mpeg", "claimed_type"),
        (MP4, "clip.png", None, "name"),
    ],
)
@pytest.mark.req("D-031")
def test_content_that_is_not_what_it_claims_is_refused_with_the_claim_at_fault(
    data: bytes, name: str, claim: str | None, field: str
) -> None:
    with pytest.raises(UnsupportedMedia) as refused:
        detect_type(data, name, claim)
    assert refused.value.field == field


@for_each(
    ("data", "name", "words"),
    [
        (b"<?xml version='1.0'?><svg xmlns='x'/>", "a.svg", NO_IMAGE),
        (b"\x00\x00\x00\x1cftypavif" + bytes(20), "a.avif", NO_IMAGE),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00heic" + bytes(20), "a.heic", NO_IMAGE),
        (b"\x1aE\xdf\xa3" + bytes(20), "a.webm", "video is not readable"),
        (b"RIFF\x00\x00\x00\x00AVI " + bytes(8), "a.avi", "video is not readable"),
        (b"\x00\x00\x00\x20ftypisom" + bytes(20), "a.mp4", "video is not readable"),
        (ELF, "a.bin", "this type of file is not supported"),
        (b"MZ\x90\x00" + bytes(30), "a.exe", "this type of file is not supported"),
        (documents.archive({"a.txt": "b"}), "a.zip", "this type of file is not supported"),
        (OLE, "letter", "this is an older or an encrypted Office file; save it as DOCX, XLSX, PPTX or PDF"),
        (b"{\\rtf1 hello}", "a.rtf", "this type of file is not supported"),
        (bytes(range(256)), "a", "this type of file is not supported"),
        (documents.docx(["a"], {"word/vbaProject.bin": b"x"}), "a.docx", "documents with macros are not accepted"),
    ],
)
def test_what_is_not_supported_is_refused_in_plain_words(data: bytes, name: str, words: str) -> None:
    with pytest.raises(UnsupportedMedia) as refused:
        detect_type(data, name, None)
    assert refused.value.detail == words


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(BadRequest, match="the file is empty"):
        detect_type(b"", "a.pdf", None)


def zipped(**changes: int) -> bytes:
    """A DOCX whose first directory entry is changed."""
    data = bytearray(DOCX)
    at = data.rfind(b"PK\x01\x02", 0, data.find(b"PK\x01\x02") + 4)
    for field, value in changes.items():
        offset, format = {"flags": (8, "<H"), "size": (24, "<L")}[field]
        struct.pack_into(format, data, at + offset, value)
    return bytes(data)


def repeated() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a", "2")
    return out.getvalue()


def directory_of(size: int) -> bytes:
    data = bytearray(DOCX)
    struct.pack_into("<L", data, data.rfind(b"PK\x05\x06") + 12, size)
    return bytes(data)


@for_each(
    ("data", "error"),
    [
        (documents.archive({f"{i}": b"" for i in range(10_001)}), TooLarge),
        (documents.archive({"a": bytes(20_000_000)}), TooLarge),
        (zipped(size=300_000_000), TooLarge),
        (directory_of(2_000_000), TooLarge),
        (zipped(flags=1), UnsupportedMedia),
        (documents.archive({"../../etc/passwd": "x"}), UnsupportedMedia),
        (documents.archive({"/etc/passwd": "x"}), UnsupportedMedia),
        (documents.archive({"a\\..\\..\\b": "x"}), UnsupportedMedia),
        (repeated(), UnsupportedMedia),
        (DOCX[:-30], UnsupportedMedia),
        (b"PK\x03\x04", UnsupportedMedia),
        (b"PK\x03\x04" + b"PK\x05\x06", UnsupportedMedia),
        (DOCX[:-22] + b"PK\x06\x07" + bytes(16) + DOCX[-22:], TooLarge),
    ],
)
@pytest.mark.req("D-032")
def test_an_archive_that_is_a_bomb_or_a_trick_is_refused_unopened(data: bytes, error: type[ServiceError]) -> None:
    with pytest.raises(error):
        detect_type(data, "a.docx", None)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a\x00b", b"\x80", b"a\x07b", b"\xc0\xaf"])
def test_bytes_that_are_no_characters_are_no_text(data: bytes) -> None:
    assert decode_text(data) is None


def test_a_comment_after_another_costs_no_time() -> None:
    assert detect_type(b"<!---->" * 580, "a", None) == formats.PLAIN


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from([PDF, DOCX, documents.archive({"a": "b"}), documents.html("a", ["b"])])))
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data[draw(st.integers(0, 3)) :])


@given(st.binary(max_size=400) | mutated(), st.sampled_from(["a", "a.pdf", "a.docx", "a.txt", "a.html"]))
def test_no_bytes_raise_anything_but_a_typed_error(data: bytes, name: str) -> None:
    with contextlib.suppress(ServiceError):
        assert detect_type(data, name, None) in formats.KINDS
