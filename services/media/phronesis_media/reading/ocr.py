"""What can be said of a picture without a vision model, and the text of scanned pages.

RapidOCR with the PP-OCR models of its wheel, QR codes by OpenCV, lines in reading order, colours in words.
"""

from __future__ import annotations

import colorsys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from PIL import Image

from ..uploads import formats
from .jobs import Answer, Job, Refused, encode_text
from .prepare import LONGEST_SIDE, open_picture, picture_pages

_SIDE = 48
_LEAST = 0.08
"""Share of the picture that a colour has to cover to be named."""
_MOST = 3
_HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (200, "turquoise"), (255, "blue"), (290, "purple"))


def describe_colours(picture: Image.Image) -> str:
    """The colours that cover most of an RGB picture, for example `mostly white, some blue`."""
    small = picture.resize((_SIDE, _SIDE))
    counts: Counter[str] = Counter()
    for count, pixel in small.getcolors(_SIDE * _SIDE) or []:
        counts[_colour_name(*pixel)] += count  # type: ignore[misc]
    shares = [(name, count / (_SIDE * _SIDE)) for name, count in counts.most_common(_MOST)]
    named = [name for name, share in shares if share >= _LEAST]
    if shares[0][1] > 0.97:
        return f"all {shares[0][0]}"
    first = f"mostly {named[0]}" if shares[0][1] >= 0.5 else named[0]
    return f"{first}, some {' and '.join(named[1:])}" if named[1:] else first


def _colour_name(red: int, green: int, blue: int) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.2:
        return "black"
    if saturation < 0.15:
        return "white" if value > 0.9 else "grey"
    degrees = hue * 360
    if 15 <= degrees < 45 and value < 0.7:
        return "brown"
    if (degrees >= 290 or degrees < 15) and saturation < 0.5 and value > 0.8:
        return "pink"
    return next((name for end, name in _HUES if degrees < end), "pink" if degrees < 335 else "red")


_PROSE = 9.0
"""Heights of a line that the lines of a column of prose are wide at least; what is narrower is a table."""
_GUTTER = 1.0
"""Heights of a line between two columns at least."""
_DEEPEST = 12


@dataclass(frozen=True)
class Line:
    """A line of text, and where it stands, in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def reading_order(lines: Sequence[Line], depth: int = 0) -> str:
    """The lines as text, one row of the picture a line."""
    if not lines:
        return ""
    height = median(line.bottom - line.top for line in lines) or 1.0
    if depth < _DEEPEST and len(lines) > 3:
        columns = _cut(lines, "left", "right", _GUTTER * height)
        if columns and all(_is_prose(column) for column in columns):
            return "\n\n".join(reading_order(column, depth + 1) for column in columns)
        parts = _cut(lines, "top", "bottom", 0.0)
        if parts:
            return "\n".join(reading_order(part, depth + 1) for part in parts)
    return "\n".join("  ".join(line.text for line in row) for row in _rows(lines))


def _is_prose(lines: Sequence[Line]) -> bool:
    wide = median((line.right - line.left) / ((line.bottom - line.top) or 1.0) for line in lines)
    return len(lines) > 1 and wide >= _PROSE


def _cut(lines: Sequence[Line], start: str, end: str, least: float) -> tuple[list[Line], list[Line]] | None:
    """Two parts with the widest empty strip between them, where one is wider than `least`."""
    sides = sorted(lines, key=lambda line: getattr(line, start))
    reach = getattr(sides[0], end)
    widest, at = least, 0
    for place, line in enumerate(sides[1:], 1):
        gap = getattr(line, start) - reach
        if gap > widest:
            widest, at = gap, place
        reach = max(reach, getattr(line, end))
    return (sides[:at], sides[at:]) if at else None


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines side by side make one row: their middle is within the height of the row's first."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.top):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].top <= middle <= rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


_SLIMMEST = 8
"""How many times longer than wide a picture may be; the models make others larger than memory holds."""
_LONGEST_CODE = 1000
_CODES = 5


def engine_name() -> str:
    """Name and version."""
    return f"rapidocr {version('rapidocr')} (PP-OCR)"


def load_models() -> None:
    """Load the models, which otherwise happens at the first picture."""
    import numpy

    _models()(numpy.full((64, 64, 3), 255, dtype=numpy.uint8))


def recognise_text(picture: Image.Image) -> str:
    """The text in an RGB picture, in reading order; empty where there is none."""
    low, high = picture.convert("L").getextrema()
    if low == high:
        return ""
    import numpy

    found = _models()(numpy.asarray(_pad(picture))[:, :, ::-1])
    if found.boxes is None or not found.txts:
        return ""
    lines = [
        Line(words.strip(), float(box[:, 0].min()), float(box[:, 1].min()), float(box[:, 0].max()), float(box[:, 1].max()))
        for words, box in zip(found.txts, found.boxes, strict=True)
        if words.strip()
    ]
    return reading_order(lines)


def read_codes(picture: Image.Image) -> list[str]:
    """The contents of QR codes, each as one line of text."""
    import cv2
    import numpy

    try:
        _, contents, _, _ = cv2.QRCodeDetector().detectAndDecodeMulti(numpy.asarray(picture.convert("L")))
    except (cv2.error, UnicodeDecodeError):
        return []  # what looks like a code and is none
    kept = dict.fromkeys(" ".join(content.split())[:_LONGEST_CODE] for content in contents)
    return [content for content in kept if content][:_CODES]


def _pad(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    least = max(width, height) // _SLIMMEST + 1
    if min(width, height) >= least:
        return picture
    wide = Image.new("RGB", (max(width, least), max(height, least)), picture.getpixel((0, 0)))
    wide.paste(picture, (0, 0))
    return wide


@cache
def _models() -> Any:
    """The engine, loaded once. Each model is named by its file, since one that is not would be looked for on the network."""
    import rapidocr

    folder = Path(rapidocr.__file__).parent / "models"
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": 2000,
            "Det.model_path": str(folder / "PP-OCRv6_det_small.onnx"),
            "Rec.model_path": str(folder / "PP-OCRv6_rec_small.onnx"),
            "Cls.model_path": str(folder / "ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


T = TypeVar("T")

_SHARE = 0.55
"""Share of the time after which no further page is begun: the last one needs some too."""
_DOTS_PER_POINT = 150 / 72


def warm() -> None:
    """Load the models."""
    load_models()


def read(data: bytes, job: Job) -> Answer:
    """A caption of a picture; or the text of the pages of a PDF that `job.only` names, with a form feed between them."""
    if job.type == formats.PDF:
        return _read_scan(data, job)
    picture = open_picture(data, job)
    width, height = picture.size
    first: list[str] = []

    def look(page: Image.Image) -> str:
        if not first:
            first.extend([describe_colours(page), *read_codes(page)])
        return recognise_text(page)

    found = _within_time(picture_pages(picture, job), look, job)
    words = "\n\n".join(page for page in found if page)
    kind = (picture.format or "").upper()
    count = f" Its first {len(found)} pages were looked at." if len(found) > 1 else ""
    parts = [words or "No text was found in the picture."]
    parts += [f"A QR code in the picture says: {code}" for code in first[1:]]
    parts.append(
        f"About the picture: {kind}, {width} by {height} pixels, {first[0]}.{count} "
        f"{'The text above was read by OCR; no' if words else 'No'} vision model has described what the picture shows."
    )
    return Answer(encode_text("\n\n".join(parts), job), engine_name())


def _read_scan(data: bytes, job: Job) -> Answer:
    import pypdfium2  # type: ignore[import-untyped]

    def page_image(number: int) -> Image.Image:
        page = document[number - 1]
        try:
            scale = min(_DOTS_PER_POINT, LONGEST_SIDE / max(*page.get_size(), 1.0))
            rendered: Image.Image = page.render(scale=scale, may_draw_forms=False).to_pil().convert("RGB")
        finally:
            page.close()
        rendered.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return rendered

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Refused("unreadable") from error
    numbers = [number for number in job.only if number <= len(document)][: job.pages]
    found = _within_time(numbers, lambda number: recognise_text(page_image(number)), job)
    return Answer(
        encode_text("\f".join(found), job), f"{engine_name()}, pypdfium2 {version('pypdfium2')}", {"done": len(found)}
    )


def _within_time(items: Iterable[T], look: Callable[[T], str], job: Job) -> list[str]:
    """What `look` gives for each item, as many as fit in the time."""
    start = time.monotonic()
    found = []
    for item in items:
        found.append(look(item))
        if time.monotonic() - start > _SHARE * job.seconds:
            break
    return found
