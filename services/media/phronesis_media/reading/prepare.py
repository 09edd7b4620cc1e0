"""A medium made ready for a provider's model: a picture as a JPEG of fitting size, a recording measured."""

from __future__ import annotations

from importlib.metadata import version
from io import BytesIO

from .. import formats
from .jobs import Answer, Job
from .pictures import opened, pages

_JPEG = 2_900_000
"""Bytes; as base64 they stay below 4 MB, which is what the provider takes."""
_SMALLEST = 200


def read(data: bytes, job: Job) -> Answer:
    """The picture as JPEG; or nothing but the seconds of a recording, as it may go as it is."""
    if job.type in formats.AUDIO:
        return _measured(data, job)
    picture = next(pages(opened(data, job), job))
    while True:
        out = BytesIO()
        picture.save(out, "JPEG", quality=85)
        if len(out.getvalue()) <= _JPEG or max(picture.size) < _SMALLEST:
            return Answer(out.getvalue(), f"pillow {version('pillow')}")
        picture.thumbnail((picture.width // 2, picture.height // 2))


def _measured(data: bytes, job: Job) -> Answer:
    from .sound import frames

    seconds = sum(frame.samples / frame.sample_rate for frame in frames(data, job))
    return Answer(b"", f"av {version('av')}", {"seconds": round(seconds, 1)})
