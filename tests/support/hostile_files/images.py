"""Images: sizes that no memory holds, frames without end, chunks that unpack, and what is no image (TRAPS 66)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.support import pictures
from tests.support.hostile_files.form import DAMAGED, LARGE, TEXT, HostileFile, Lure, fixed, ready
from tests.support.hostile_files.office import laughs

_ELF = b"\x7fELF\x02\x01\x01" + bytes(57)
_PLAIN = pictures.encoded(Image.new("RGB", (40, 30), "navy"))
_NOISE = Image.effect_noise((64, 64), 60).convert("RGB")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _with(*chunks: bytes) -> bytes:
    """A good PNG with further chunks after its header."""
    return _PLAIN[:33] + b"".join(chunks) + _PLAIN[33:]


def _png_of_real_pixels(side: int) -> bytes:
    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(bytes(1 + side * 3)) for _ in range(side)) + packer.flush()
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _frames(format: str) -> bytes:
    others = [Image.new("P", (4, 4), n % 7) for n in range(3_000)]
    return pictures.encoded(Image.new("P", (4, 4)), format, save_all=True, append_images=others, loop=0)


def _jpeg(width: int, height: int) -> bytes:
    data = pictures.encoded(_NOISE, "JPEG")
    at = data.index(b"\xff\xc0")
    return data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]


def _scans() -> bytes:
    """A progressive JPEG whose last scan comes 5,000 times."""
    data = pictures.encoded(Image.new("RGB", (2_000, 2_000)), "JPEG", progressive=True)
    at = data.rindex(b"\xff\xda")
    return data[:at] + data[at:-2] * 5_000 + data[-2:]


def _tiff(entries: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    body = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\x00" + struct.pack("<IH", 8, len(entries)) + body + struct.pack("<I", following)


def _tiff_of(width: int, height: int, following: int = 0) -> bytes:
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 0)]
    return _tiff([*tags, (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, width * height % 2**32)], following) + bytes(200)


def _exif(about: str) -> bytes:
    exif = Image.Exif()
    exif[0x010E] = about
    exif[0x0112] = 77
    return pictures.encoded(_NOISE, "JPEG", exif=exif)


def _exif_loop() -> bytes:
    directory = struct.pack("<HHHII", 1, 0x8769, 4, 1, 8) + struct.pack("<I", 8)
    body = b"Exif\x00\x00II*\x00\x08\x00\x00\x00" + directory
    plain = pictures.encoded(_NOISE, "JPEG")
    return plain[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + plain[2:]


def _webp(width: int, height: int) -> bytes:
    wide = struct.pack("<BBBB", 2, 0, 0, 0) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", len(wide)) + wide + b"VP8 " + struct.pack("<I", 4) + b"evil"
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _bmp(width: int, height: int, bits: int = 24, packing: int = 0) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head + bytes(100)


def _lies() -> Iterator[HostileFile]:
    big: dict[str, tuple[str, bytes]] = {
        "png-60000-by-60000": ("a.png", pictures.png_of(60_000, 60_000)),
        "png-two-billion-wide": ("a.png", pictures.png_of(2**31 - 1, 1)),
        "png-two-billion-high": ("a.png", pictures.png_of(1, 2**31 - 1)),
        "jpeg-65535-by-65535": ("a.jpg", _jpeg(65_535, 65_535)),
        "tiff-two-billion-wide": ("a.tif", _tiff_of(2**31 - 1, 2**31 - 1)),
        "webp-sixteen-million-wide": ("a.webp", _webp(2**24, 2**24)),
        "bmp-two-billion-wide": ("a.bmp", _bmp(2**31 - 1, 2**31 - 1)),
        "bmp-negative-size": ("a.bmp", _bmp(-5, -(2**31))),
        "gif-65535-by-65535": (
            "a.gif",
            b"GIF89a\xff\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x01\x00\x00;",
        ),
    }
    for id, (name, data) in big.items():
        yield HostileFile(id, name, ready(data), (LARGE, DAMAGED))
    broken: dict[str, tuple[str, bytes]] = {
        "png-0-by-0": ("a.png", pictures.png_of(0, 0)),
        "png-without-pixels": ("a.png", _PLAIN[:33] + _chunk(b"IEND", b"")),
        "png-chunk-of-four-gigabytes": ("a.png", _PLAIN[:33] + b"\xff\xff\xff\xffIDAT" + bytes(100)),
        "png-that-is-elf": ("a.png", _ELF),
        "png-signature-then-elf": ("a.png", _PLAIN[:8] + _ELF),
        "jpeg-0-high": ("a.jpg", _jpeg(64, 0)),
        "tiff-directory-loop": ("a.tif", _tiff_of(0, 0, following=8)),
        "tiff-no-tags": ("a.tif", _tiff([])),
        "tiff-value-far-outside": ("a.tif", _tiff([(256, 4, 2**31, 2**31)] * 50)),
        "bmp-strange-packing": ("a.bmp", _bmp(9, 9, 99, 12)),
        "webp-garbage": ("a.webp", b"RIFF\xff\xff\xff\xffWEBPVP8L" + b"\x2f" * 400),
        "gif-header-alone": ("a.gif", b"GIF89a"),
        "ico": ("a.ico", struct.pack("<HHHBBBBHHII", 0, 1, 1, 0, 0, 0, 0, 1, 32, 2**31, 22) + b"\x89PNG\r\n\x1a\n" + bytes(50)),
        "avif": ("a.avif", struct.pack(">I", 28) + b"ftypavif" + bytes(300)),
        "psd": ("a.psd", b"8BPS\x00\x01" + b"\xff" * 60),
        "jpeg-2000": ("a.jp2", struct.pack(">I", 12) + b"jP  \r\n\x87\n" + bytes(100)),
    }
    for id, (name, data) in broken.items():
        yield HostileFile(id, name, ready(data), (DAMAGED,))


def _bombs() -> Iterator[HostileFile]:
    packed = zlib.compress(bytes(200 * 1024 * 1024), 9)
    yield HostileFile(
        "png-text-bomb", "a.png", fixed(lambda: _with(_chunk(b"zTXt", b"Comment\x00\x00" + packed))), (DAMAGED, TEXT)
    )
    yield HostileFile(
        "png-colour-profile-bomb", "a.png", fixed(lambda: _with(_chunk(b"iCCP", b"p\x00\x00" + packed))), (DAMAGED, TEXT)
    )
    yield HostileFile(
        "png-pixels-unpack-to-more",
        "a.png",
        fixed(lambda: _PLAIN[:33] + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")),
        (DAMAGED, TEXT),
    )
    many = [_chunk(b"tEXt", b"k\x00v")] * 200_000
    yield HostileFile("png-two-hundred-thousand-chunks", "a.png", fixed(lambda: _with(*many)), (DAMAGED, TEXT))
    yield HostileFile("png-forty-million-pixels", "a.png", fixed(lambda: _png_of_real_pixels(6_300)), (TEXT,))
    yield HostileFile("apng-three-thousand-frames", "a.png", fixed(lambda: _frames("PNG")), (TEXT,))
    yield HostileFile("gif-three-thousand-frames", "a.gif", fixed(lambda: _frames("GIF")), (TEXT,))
    others = [Image.new("1", (8, 8))] * 500
    yield HostileFile(
        "tiff-five-hundred-pages",
        "a.tif",
        fixed(lambda: pictures.encoded(Image.new("1", (8, 8)), "TIFF", save_all=True, append_images=others)),
        (TEXT,),
    )
    yield HostileFile("jpeg-five-thousand-scans", "a.jpg", fixed(_scans), (TEXT, DAMAGED, LARGE))
    yield HostileFile("jpeg-exif-loop", "a.jpg", fixed(_exif_loop), (TEXT, DAMAGED))
    yield HostileFile("jpeg-exif-script", "a.jpg", fixed(lambda: _exif("<script>alert(1)</script>" * 100)), (TEXT,))


def _disguised() -> Iterator[HostileFile]:
    def svg(inner: str, declared: str = "") -> bytes:
        return f'<?xml version="1.0"?><!DOCTYPE svg [{declared}]><svg xmlns="http://www.w3.org/2000/svg">{inner}</svg>'.encode()

    def entity(lure: Lure) -> bytes:
        return svg("<text>&x;</text>", f'<!ENTITY x SYSTEM "{lure.secret.as_uri()}">')

    def link(lure: Lure) -> bytes:
        pictures = "".join(f'<image href="{place}"/>' for place in (lure.url, lure.secret.as_uri()))
        return f'<svg xmlns="http://www.w3.org/2000/svg">{pictures}</svg>'.encode()

    yield HostileFile("svg-entity-of-a-file", "a.svg", entity, (DAMAGED,))
    yield HostileFile("svg-links", "a.svg", link, (DAMAGED,))
    yield HostileFile("svg-laughs", "a.svg", fixed(lambda: svg("&e9;", laughs())), (DAMAGED,))
    yield HostileFile("svg-called-png", "a.png", link, (DAMAGED,))
    yield HostileFile("gif-and-script", "a.gif", fixed(lambda: b"GIF89a/*" + bytes(8) + b"*/=1;alert(1)"), (DAMAGED,))
    yield HostileFile(
        "png-and-html", "a.png", fixed(lambda: _with(_chunk(b"tEXt", b"k\x00<script>alert(1)</script>"))), (TEXT,)
    )
    yield HostileFile(
        "postscript", "a.eps", fixed(lambda: b"%!PS\n(/etc/passwd) (r) file 100 string readstring pop ="), (TEXT,), "%!PS"
    )
    for mode in ("CMYK", "I;16", "PA", "LAB", "1", "F"):
        picture = Image.new(mode, (40, 30))
        format = {"CMYK": "JPEG", "PA": "PNG", "LAB": "TIFF", "F": "TIFF"}.get(mode, "PNG")
        if mode == "PA":
            picture = Image.new("RGBA", (40, 30), (9, 9, 9, 9)).quantize(4)
        data = pictures.encoded(picture, format)
        yield HostileFile(f"mode-{mode.lower().replace(';', '-')}", f"a.{format.lower()}", ready(data), (TEXT,))


def images() -> Iterator[HostileFile]:
    """All of them."""
    yield from _lies()
    yield from _bombs()
    yield from _disguised()
    whole = pictures.encoded(_NOISE)
    for tenth in range(1, 10):
        part = whole[: len(whole) * tenth // 10]
        yield HostileFile(f"png-cut-at-{tenth}0-percent", "a.png", ready(part), (DAMAGED,))
