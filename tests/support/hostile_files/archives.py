"""Archives: bombs, names that lead outside, and what only looks like a document (TRAPS 63, 64)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from io import BytesIO

from tests.support import documents
from tests.support.hostile_files.form import DAMAGED, LARGE, TEXT, HostileFile, fixed, ready

_WORDS = "the honest words"
_DOCX = documents.docx([_WORDS])


def _nested(depth: int) -> bytes:
    inner = b"0" * 1000
    for level in range(depth):
        inner = documents.archive({f"{level}.zip": inner})
    return inner


def _forty_two() -> bytes:
    packed = documents.archive({"0.dll": bytes(4 * 1024 * 1024)})
    for level in range(3):
        packed = documents.archive({f"lib {level}{n}.zip": packed for n in range(16)})
    return packed


def _overlapping() -> bytes:
    """A directory of 5,000 entries that all unpack the same 60 kB."""
    one = documents.archive({"word/document.xml": bytes(60_000)})
    start, entry = one.index(b"PK\x01\x02"), one[one.index(b"PK\x01\x02") : one.index(b"PK\x05\x06")]
    names = [b"word/%012d.xm" % n for n in range(5_000)]
    entries = b"".join(entry[:28] + struct.pack("<H", len(name)) + entry[30:46] + name for name in names)
    return one[:start] + entries + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 5_000, 5_000, len(entries), start, 0)


def _many(count: int) -> bytes:
    """A real directory of empty members."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for n in range(count):
            file.writestr(zipfile.ZipInfo(f"word/a-member-with-a-long-name-{n}.xml"), b"")
    return out.getvalue()


def _claiming_a_million() -> bytes:
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1_000_000, 1_000_000, 46_000_000, 0)
    return _DOCX[: _DOCX.index(b"PK\x05\x06")] + wide + struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1) + end


def _with(name: str, body: bytes = b"x", **marks: int) -> bytes:
    """A DOCX with one more member."""
    out = BytesIO(_DOCX)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as file:
        member = zipfile.ZipInfo(name)
        member.external_attr = marks.get("attributes", 0)
        member.compress_type = marks.get("method", zipfile.ZIP_DEFLATED)
        file.writestr(member, body)
    return out.getvalue()


def _symlink() -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(_DOCX)) as given, zipfile.ZipFile(out, "w") as file:
        for member in given.infolist():
            link = zipfile.ZipInfo(member.filename)
            if member.filename == "word/document.xml":
                link.external_attr = 0o120777 << 16
                file.writestr(link, b"/etc/passwd")
            else:
                file.writestr(link, given.read(member))
    return out.getvalue()


def _encrypted() -> bytes:
    data, at = bytearray(_DOCX), 0
    while (at := data.find(b"PK\x01\x02", at + 1)) > 0:
        data[at + 8] |= 1
    return bytes(data)


def _understated() -> bytes:
    """A member that says 100 bytes and unpacks to 64 MiB."""
    size = 64 * 1024 * 1024
    data = documents.docx([], {"word/document.xml": b"<w>" + b" " * (size - 3)})
    return data.replace(struct.pack("<L", size), struct.pack("<L", 100))


def _with_null() -> bytes:
    return _with("word/a0b.xml").replace(b"word/a0b.xml", b"word/a\x00b.xml")


def _sparse_tar() -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        member = tarfile.TarInfo("sparse")
        member.size = 10
        file.addfile(member, BytesIO(bytes(10)))
    return out.getvalue().replace(b"00000000012", b"77777777777", 1)


def archives() -> Iterator[HostileFile]:
    """All of them."""
    refused: dict[str, tuple[str, bytes]] = {
        "zip-of-nothing": ("a.zip", b"PK\x05\x06" + bytes(18)),
        "zip-symlink-for-the-text": ("a.docx", _symlink()),
        "zip-parent-folder": ("a.docx", _with("../../../../tmp/phronesis-hostile")),
        "zip-absolute": ("a.docx", _with("/tmp/phronesis-hostile")),
        "zip-backslashes": ("a.docx", _with("..\\..\\phronesis-hostile")),
        "zip-encrypted": ("a.docx", _encrypted()),
        "zip-a-name-twice": ("a.docx", _with("word/documenX.xml").replace(b"documenX", b"document")),
        "zip-cut": ("a.docx", _DOCX[: len(_DOCX) // 2]),
        "zip-directory-elsewhere": ("a.docx", _DOCX[:-6] + struct.pack("<LH", 0xFFFFFF, 0)),
        "zip-no-document": ("a.docx", documents.archive({"[Content_Types].xml": "<a/>"})),
        "zip-macro": ("a.docx", _with("word/vbaProject.bin")),
        "zip-macro-by-other-case": ("a.docx", _with("word/VBAPROJECT.BIN")),
        "jar": ("a.jar", documents.archive({"META-INF/MANIFEST.MF": "Main-Class: A"})),
        "gzip-bomb": ("a.txt", gzip.compress(bytes(10 * 1024 * 1024), mtime=0)),
        "gzip-for-a-pdf": ("a.pdf", gzip.compress(b"%PDF-1.4", mtime=0)),
        "bzip2": ("a.bz2", bz2.compress(bytes(1024 * 1024))),
        "xz": ("a.xz", lzma.compress(bytes(1024 * 1024))),
        "zstd": ("a.zst", b"\x28\xb5\x2f\xfd\xa4" + bytes(100)),
        "7z-many-streams": ("a.7z", b"7z\xbc\xaf\x27\x1c\x00\x04" + b"\xff" * 200),
        "rar": ("a.rar", b"Rar!\x1a\x07\x01\x00" + bytes(100)),
        "tar-of-a-terabyte": ("a.tar", _sparse_tar()),
    }
    for id, (name, data) in refused.items():
        yield HostileFile(id, name, ready(data), (DAMAGED,))
    yield HostileFile("zip-42", "a.zip", fixed(_forty_two), (DAMAGED, LARGE))
    yield HostileFile("zip-nested-20-deep", "a.zip", fixed(lambda: _nested(20)), (DAMAGED,))
    yield HostileFile("zip-42-in-a-document", "a.docx", fixed(lambda: _with("word/42.zip", _forty_two())), (TEXT, LARGE))
    yield HostileFile("zip-overlapping", "a.docx", fixed(_overlapping), (LARGE,))
    yield HostileFile("zip-claims-a-million-entries", "a.docx", fixed(_claiming_a_million), (LARGE,))
    yield HostileFile("zip-twenty-thousand-entries", "a.docx", fixed(lambda: _many(20_000)), (LARGE,))
    yield HostileFile("zip-with-a-null-in-a-name", "a.docx", fixed(_with_null), (DAMAGED, TEXT))
    yield HostileFile("zip-bomb-in-a-document", "a.docx", fixed(lambda: _with("word/a.xml", bytes(60_000_000))), (LARGE,))
    yield HostileFile(
        "zip-bomb-by-bzip2", "a.docx", fixed(lambda: _with("word/a.xml", bytes(60_000_000), method=zipfile.ZIP_BZIP2)), (LARGE,)
    )
    yield HostileFile("zip-understated-size", "a.docx", fixed(_understated), (DAMAGED,))
