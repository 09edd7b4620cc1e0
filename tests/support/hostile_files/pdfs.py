"""PDFs: filters in filters, loops, lies about sizes, and what wants to be run (TRAPS 65)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

from tests.support import documents
from tests.support.hostile_files.form import DAMAGED, LARGE, LATE, TEXT, HostileFile, Lure, fixed, ready

_WORDS = "the honest words"
_SHOWN = b"BT /F1 11 Tf 50 700 Td (the honest words) Tj ET"
_LIMITED = (LARGE, LATE, DAMAGED)
_BLOCK = bytes(1024 * 1024)


def _stream(body: bytes, more: bytes = b"", length: int | None = None) -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(body) if length is None else length, more, body)


def _file(objects: Sequence[bytes], trailer: bytes = b"", previous: bytes = b"") -> bytes:
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R %s %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        *(len(objects) + 1, trailer, previous.replace(b"START", b"%d" % start), start),
    )
    return bytes(out)


def _page(
    content: bytes = _stream(_SHOWN),
    *others: bytes,
    catalog: bytes = b"",
    page: bytes = b"",
    resources: bytes = b"",
    box: bytes = b"0 0 595 842",
    font: bytes = b"/Subtype /Type1 /BaseFont /Helvetica",
    pages: bytes = b"/Kids [4 0 R] /Count 1",
    trailer: bytes = b"",
    previous: bytes = b"",
) -> bytes:
    """A PDF of one page: 1 the catalog, 2 the tree, 3 the font, 4 the page, 5 its content, then the others."""
    return _file(
        [
            b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
            b"<< /Type /Pages %s >>" % pages,
            b"<< /Type /Font %s >>" % font,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Resources << /Font << /F1 3 0 R >> %s >> /Contents 5 0 R %s >>"
            % (box, resources, page),
            content,
            *others,
        ],
        trailer,
        previous,
    )


def _packed(size: int, times: int) -> bytes:
    """So many MiB of nothing, packed so many times."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(_BLOCK) + packer.flush(zlib.Z_FULL_FLUSH)  # alike each time, so one is made
    last = zlib.compressobj(9, wbits=-15).flush()
    body = b"\x78\x9c" + block * size + last + struct.pack(">HH", (size << 20) % 65_521, 1)
    for _ in range(times - 1):
        body = zlib.compress(body, 9)
    return _stream(body, b"/Filter [%s]" % (b"/FlateDecode " * times))


def _runs(times: int) -> bytes:
    """Runs of runs: each level makes 64 bytes of one."""
    body = b"\x81\x00" * 4_000
    for _ in range(times - 1):
        body = b"".join(bytes((0, byte)) for byte in body[:4_000])
    return _stream(body + b"\x80", b"/Filter [%s]" % (b"/RunLengthDecode " * times))


def _filters() -> Iterator[HostileFile]:
    yield HostileFile("pdf-flate-chain", "a.pdf", fixed(lambda: _page(_packed(2, 8))), (*_LIMITED, TEXT))
    yield HostileFile("pdf-flate-bomb", "a.pdf", fixed(lambda: _page(_packed(1_500, 2))), _LIMITED)
    yield HostileFile("pdf-run-length-chain", "a.pdf", fixed(lambda: _page(_runs(6))), _LIMITED)
    hexed = _stream(b"41>" * 1_000, b"/Filter [%s]" % (b"/ASCIIHexDecode " * 5_000))
    yield HostileFile("pdf-five-thousand-filters", "a.pdf", fixed(lambda: _page(hexed)), _LIMITED)
    lzw = _stream(b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01" * 10_000, b"/Filter /LZWDecode")
    yield HostileFile("pdf-lzw", "a.pdf", fixed(lambda: _page(lzw)), (TEXT, *_LIMITED))
    yield HostileFile("pdf-unknown-filter", "a.pdf", fixed(lambda: _page(_stream(b"x", b"/Filter /Evil"))), _LIMITED)
    columns = _stream(
        zlib.compress(bytes(10_000)), b"/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 2000000000 >>"
    )
    yield HostileFile("pdf-predictor-of-wide-rows", "a.pdf", fixed(lambda: _page(columns)), _LIMITED)
    for name, kind in (("jbig2", b"/JBIG2Decode"), ("jpx", b"/JPXDecode"), ("fax", b"/CCITTFaxDecode")):
        image = _stream(b"\x97JB2\r\n" * 500, b"/Subtype /Image /Width 9999 /Height 9999 /BitsPerComponent 1 /Filter " + kind)
        data = _page(_stream(b"/I Do"), image, resources=b"/XObject << /I 6 0 R >>")
        yield HostileFile(f"pdf-{name}-garbage", "a.pdf", ready(data), _LIMITED)
    wide = _stream(
        zlib.compress(bytes(3_000_000)),
        b"/Subtype /Image /Width 1000000 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /FlateDecode",
    )
    shown = _stream(b"1000000 0 0 1 0 0 cm /I Do")
    for name, box in (("wide", b"0 0 1000000 1"), ("endless", b"0 0 1000000000 1000000000"), ("strange", b"nan 0 -5 0")):
        data = _page(shown, wide, resources=b"/XObject << /I 6 0 R >>", box=box)
        yield HostileFile(f"pdf-{name}-page-to-be-seen", "a.pdf", ready(data), _LIMITED)


def _lies() -> Iterator[HostileFile]:
    yield HostileFile("pdf-length-too-long", "a.pdf", fixed(lambda: _page(_stream(_SHOWN, length=2**40))), (TEXT, DAMAGED))
    yield HostileFile("pdf-length-negative", "a.pdf", fixed(lambda: _page(_stream(_SHOWN, length=-5))), (TEXT, DAMAGED))
    yield HostileFile(
        "pdf-length-of-itself",
        "a.pdf",
        fixed(lambda: _page(_stream(_SHOWN).replace(b"/Length 47", b"/Length 5 0 R"))),
        (TEXT, DAMAGED),
    )
    yield HostileFile("pdf-xref-loop", "a.pdf", fixed(lambda: _page(previous=b"/Prev START")), (TEXT, DAMAGED))
    yield HostileFile(
        "pdf-xref-stream-loop", "a.pdf", fixed(lambda: _page(previous=b"/XRefStm START /Prev START")), (TEXT, DAMAGED)
    )
    yield HostileFile(
        "pdf-size-of-billions", "a.pdf", fixed(lambda: _page().replace(b"xref\n0 6", b"xref\n0 999999999")), (TEXT, DAMAGED)
    )
    yield HostileFile(
        "pdf-no-xref",
        "a.pdf",
        fixed(lambda: _page().replace(b"startxref", b"startnone").replace(b"xref", b"none")),
        (TEXT, DAMAGED),
    )
    yield HostileFile(
        "pdf-tree-cycle", "a.pdf", fixed(lambda: _page(pages=b"/Kids [2 0 R 4 0 R 2 0 R] /Count 3")), (TEXT, DAMAGED)
    )
    yield HostileFile(
        "pdf-parent-cycle", "a.pdf", fixed(lambda: _page(pages=b"/Kids [4 0 R] /Count 1 /Parent 2 0 R")), (TEXT, DAMAGED)
    )
    yield HostileFile(
        "pdf-catalog-of-itself", "a.pdf", fixed(lambda: _page().replace(b"/Pages 2 0 R", b"/Pages 1 0 R")), (TEXT, DAMAGED)
    )
    kids = b" ".join(b"%d 0 R" % (6 + n) for n in range(100_000))
    leaf = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 5 0 R>>"
    yield HostileFile(
        "pdf-hundred-thousand-pages",
        "a.pdf",
        fixed(lambda: _page(_stream(_SHOWN), *[leaf] * 100_000, pages=b"/Kids [%s] /Count 100000" % kids)),
        (LARGE,),
    )
    yield HostileFile(
        "pdf-hundred-thousand-objects",
        "a.pdf",
        fixed(lambda: _page(_stream(_SHOWN), *[b"null"] * 100_000)),
        (TEXT, LARGE, LATE),
    )
    yield HostileFile(
        "pdf-claims-billions-of-pages", "a.pdf", fixed(lambda: _page(pages=b"/Kids [4 0 R] /Count 2147483647")), (TEXT,)
    )
    for name, first, last in (("arrays", b"[", b"]"), ("names", b"<</A", b">>")):
        data = _page(_stream(_SHOWN), first * 100_000 + last * 100_000, catalog=b"/Names 6 0 R")
        yield HostileFile(f"pdf-deep-{name}", "a.pdf", ready(data), (TEXT, *_LIMITED))
        data = _page(_stream(first * 200_000 + last * 200_000 + _SHOWN))
        yield HostileFile(f"pdf-deep-{name}-on-the-page", "a.pdf", ready(data), (TEXT, *_LIMITED))
    yield HostileFile(
        "pdf-object-stream-of-itself",
        "a.pdf",
        fixed(
            lambda: _page(
                _stream(_SHOWN), _stream(b"6 0 ", b"/Type /ObjStm /N 1000000 /First 4 /Extends 6 0 R"), catalog=b"/X 6 0 R"
            )
        ),
        (TEXT, DAMAGED),
    )
    yield HostileFile(
        "pdf-number-of-a-million-digits",
        "a.pdf",
        fixed(lambda: _page(_stream(b"9" * 1_000_000 + b" Tf " + _SHOWN))),
        (TEXT, *_LIMITED),
    )
    widths = b"/Subtype /Type0 /BaseFont /A /Encoding /Identity-H /DescendantFonts [6 0 R]"
    inner = (
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A /CIDSystemInfo << /Registry (A) /Ordering (I) /Supplement 0 >> "
        b"/FontDescriptor << /Type /FontDescriptor /FontName /A >> /W [0 2000000000 500] >>"
    )
    yield HostileFile("pdf-widths-of-billions", "a.pdf", fixed(lambda: _page(_stream(_SHOWN), inner, font=widths)), _LIMITED)
    mapped = _stream(
        b"1 begincodespacerange <00000000> <ffffffff> endcodespacerange 1 beginbfrange <00000000> <7fffffff> <0041> endbfrange"
    )
    yield HostileFile(
        "pdf-map-of-billions",
        "a.pdf",
        fixed(lambda: _page(_stream(_SHOWN), mapped, font=b"/Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R")),
        (TEXT, *_LIMITED),
    )
    form = _stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>")
    yield HostileFile(
        "pdf-form-in-itself",
        "a.pdf",
        fixed(lambda: _page(_stream(_SHOWN + b" /X Do"), form, resources=b"/XObject << /X 6 0 R >>")),
        (TEXT, *_LIMITED),
    )
    yield HostileFile(
        "pdf-many-saved-states", "a.pdf", fixed(lambda: _page(_stream(b"q " * 100_000 + _SHOWN))), (TEXT, LARGE, LATE)
    )


def _active() -> Iterator[HostileFile]:
    def launch(lure: Lure) -> bytes:
        return _page(catalog=b"/OpenAction << /S /Launch /F (/bin/sh) /Win << /F (cmd.exe) >> >>")

    def uri(lure: Lure) -> bytes:
        return _page(catalog=b"/OpenAction << /S /URI /URI (%s) >>" % lure.url.encode())

    def script(lure: Lure) -> bytes:
        return _page(catalog=b"/OpenAction << /S /JavaScript /JS (app.launchURL('%s')) >>" % lure.url.encode())

    def outside(lure: Lure) -> bytes:
        outer = b"<< /Length 0 /F << /FS /URL /F (%s) >> >>\nstream\n\nendstream" % lure.url.encode()
        return _page(_stream(_SHOWN), outer, resources=b"/XObject << /X 6 0 R >>")

    def secret(lure: Lure) -> bytes:
        return _page(b"<< /Length 0 /F (%s) >>\nstream\n\nendstream" % str(lure.secret).encode())

    def embedded(lure: Lure) -> bytes:
        names = b"/Names << /EmbeddedFiles << /Names [(a.exe) << /Type /Filespec /F (a.exe) /EF << /F 6 0 R >> >>] >> >>"
        return _page(_stream(_SHOWN), _stream(b"MZ" + bytes(100), b"/Type /EmbeddedFile"), catalog=names)

    def form(lure: Lure) -> bytes:
        xml = b'<!DOCTYPE x [<!ENTITY s SYSTEM "%s">]><xdp>&s;</xdp>' % lure.secret.as_uri().encode()
        return _page(_stream(_SHOWN), _stream(xml), catalog=b"/AcroForm << /XFA 6 0 R >>")

    made = {"launch": launch, "uri": uri, "script": script, "stream-by-http": outside, "embedded-file": embedded, "xfa": form}
    for name, make in made.items():
        yield HostileFile(f"pdf-{name}", "a.pdf", make, (TEXT,), _WORDS)
    yield HostileFile("pdf-stream-of-a-file", "a.pdf", secret, (DAMAGED,))
    code = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (b"41" * 32, b"42" * 32)
    yield HostileFile("pdf-encrypted", "a.pdf", fixed(lambda: _page(trailer=code)), (DAMAGED,))
    strange = b"/Encrypt << /Filter /Evil /V 99 >> /ID [<00><00>]"
    yield HostileFile("pdf-unknown-encryption", "a.pdf", fixed(lambda: _page(trailer=strange)), (DAMAGED,))


def pdfs() -> Iterator[HostileFile]:
    """All of them."""
    yield from _filters()
    yield from _lies()
    yield from _active()
    plain = documents.pdf([[_WORDS] for _ in range(5)])
    for tenth in range(1, 10):
        part = plain[: len(plain) * tenth // 10]
        yield HostileFile(f"pdf-cut-at-{tenth}0-percent", "a.pdf", ready(part), (DAMAGED, TEXT))
    yield HostileFile("pdf-that-is-a-text", "a.pdf", fixed(lambda: b"%PDF-1.4\nnothing"), (DAMAGED,))
    yield HostileFile("pdf-and-zip", "a.pdf", fixed(lambda: _page() + documents.docx(["other words"])), (TEXT,), _WORDS)
