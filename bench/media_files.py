"""Files to read, of every kind; each number makes another content, so that none was read before."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from tests.support import documents, pictures, speech

_WORDS = (
    "river station harbour budget engineer summer contract railway concrete survey water signal bridge report village "
    "garden market winter tender school forest valley tunnel council energy museum record letter window planning"
).split()


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    name: str
    what: str
    tool: str
    file: str
    type: str
    make: Callable[[int], bytes]
    files: int
    """How many are read one at a time, and as many two at a time."""


def _lines(number: int, count: int, words: int) -> list[str]:
    dice = random.Random(number)
    return [" ".join(dice.choices(_WORDS, k=words)) for _ in range(count)]


def _text(number: int) -> bytes:
    return "\n".join(_lines(number, 2_000, 14)).encode()


def _html(number: int) -> bytes:
    return documents.html(f"Page {number}", _lines(number, 500, 28))


def _docx(number: int) -> bytes:
    return documents.docx(_lines(number, 500, 28))


def _pdf(number: int) -> bytes:
    return documents.pdf([_lines(number * 1_000 + page, 45, 10) for page in range(20)])


def _scan(number: int) -> bytes:
    return pictures.scan([_lines(number * 1_000 + page, 8, 6) for page in range(3)])


def _image(number: int) -> bytes:
    return pictures.encoded(pictures.drawn(_lines(number, 6, 6)))


def _audio(number: int) -> bytes:
    return speech.recorded(numpy.concatenate([speech.silence(0.01 * (number % 100 + 1)), speech.samples()]), "ogg")


_DOCUMENT = "document.extract_text"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
KINDS = (
    Kind("text", "2,000 lines", _DOCUMENT, "a.txt", "text/plain", _text, 30),
    Kind("HTML", "500 paragraphs", _DOCUMENT, "a.html", "text/html", _html, 20),
    Kind("DOCX", "500 paragraphs", _DOCUMENT, "a.docx", _WORD, _docx, 20),
    Kind("PDF", "20 pages of 45 lines", _DOCUMENT, "a.pdf", "application/pdf", _pdf, 20),
    Kind("scanned PDF", "3 pages of 8 lines", _DOCUMENT, "a.pdf", "application/pdf", _scan, 4),
    Kind("image", "PNG, 6 lines", "vision.caption", "a.png", "image/png", _image, 8),
    Kind("audio", "Ogg, {seconds:.0f} s of speech", "audio.transcribe", "a.ogg", "audio/ogg", _audio, 6),
)
