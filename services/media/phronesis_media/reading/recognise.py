"""Text and QR codes in a picture: RapidOCR with the PP-OCR models of its wheel, and OpenCV."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from PIL import Image

from .layout import Line, ordered

_SLIMMEST = 8
"""How many times longer than wide a picture may be; the models make others larger than memory holds."""
_LONGEST_CODE = 1000
_CODES = 5


def engine() -> str:
    """Name and version."""
    return f"rapidocr {version('rapidocr')} (PP-OCR)"


def load() -> None:
    """Load the models, which otherwise happens at the first picture."""
    import numpy

    _models()(numpy.full((64, 64, 3), 255, dtype=numpy.uint8))


def recognised(picture: Image.Image) -> str:
    """The text in an RGB picture, in reading order; empty where there is none."""
    low, high = picture.convert("L").getextrema()
    if low == high:
        return ""
    import numpy

    found = _models()(numpy.asarray(_padded(picture))[:, :, ::-1])
    if found.boxes is None or not found.txts:
        return ""
    lines = [
        Line(words.strip(), float(box[:, 0].min()), float(box[:, 1].min()), float(box[:, 0].max()), float(box[:, 1].max()))
        for words, box in zip(found.txts, found.boxes, strict=True)
        if words.strip()
    ]
    return ordered(lines)


def codes(picture: Image.Image) -> list[str]:
    """The contents of QR codes, each as one line of text."""
    import cv2
    import numpy

    try:
        _, contents, _, _ = cv2.QRCodeDetector().detectAndDecodeMulti(numpy.asarray(picture.convert("L")))
    except (cv2.error, UnicodeDecodeError):
        return []  # what looks like a code and is none
    kept = dict.fromkeys(" ".join(content.split())[:_LONGEST_CODE] for content in contents)
    return [content for content in kept if content][:_CODES]


def _padded(picture: Image.Image) -> Image.Image:
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
