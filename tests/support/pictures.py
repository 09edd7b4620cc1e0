"""Pictures that hold given words; `python -m tests.support.pictures` writes the sample picture of the examples anew."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

PATH = Path(__file__).parents[2] / "examples" / "portfolio_picture.png"
LINES = [
    "Geological Disposal Facility Programme",
    "The community open day is on Saturday, 8 June 2024.",
    "It takes place in the town hall of Westmere.",
    "SAMPLE PICTURE, invented for the examples.",
]
Colour = str | tuple[int, int, int]
_BLUE, _PAPER = (20, 60, 140), (250, 247, 235)
_MARGIN, _LEADING, _SIZE = 40, 80, 32


def drawn(lines: Sequence[str], width: int = 1000, ink: Colour = "black", paper: Colour = "white") -> Image.Image:
    """A picture of the lines."""
    picture = Image.new("RGB", (width, 2 * _MARGIN + _LEADING * max(1, len(lines))), paper)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=_SIZE)
    for number, line in enumerate(lines):
        pen.text((_MARGIN, _MARGIN + number * _LEADING), line, font=font, fill=ink)
    return picture


def encoded(picture: Image.Image, format: str = "PNG", **options: object) -> bytes:
    """The picture as a file."""
    out = BytesIO()
    picture.save(out, format, **options)
    return out.getvalue()


def qr_code(words: str) -> Image.Image:
    """A QR code."""
    import cv2

    code = Image.fromarray(cv2.QRCodeEncoder.create().encode(words))
    framed = Image.new("L", (code.width + 8, code.height + 8), 255)
    framed.paste(code, (4, 4))
    return framed.resize((framed.width * 8, framed.height * 8), Image.Resampling.NEAREST).convert("RGB")


def scan(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF whose pages are pictures."""
    first, *rest = [drawn(lines) for lines in pages]
    return encoded(first, "PDF", save_all=True, append_images=rest)


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(bytes(1000))),
            (b"IEND", b""),
        )
    )


if __name__ == "__main__":
    sample = drawn(LINES, 1000, _BLUE, _PAPER)
    PATH.write_bytes(encoded(sample.quantize(16), "PNG", optimize=True))
