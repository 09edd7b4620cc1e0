"""Pictures, opened within their limits.

The size is looked at before a pixel is made, and of an animation one frame is; and media made ready for a provider's model.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from io import BytesIO

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from ..uploads import formats
from .jobs import Answer, Job, Refused

LONGEST_SIDE = 2000
"""Pixels of the longer side that are worth reading; a larger picture is made smaller."""
_FORMATS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
}
_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")


def open_picture(data: bytes, job: Job) -> Image.Image:
    """The picture, or the first of several, as far as its header. Raises `Refused`: it has too many pixels, or no header."""
    Image.MAX_IMAGE_PIXELS = None  # the limit of this job stands in its place
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        picture = Image.open(BytesIO(data), formats=[_FORMATS[job.type]])
    except UnidentifiedImageError as error:
        raise Refused("unreadable") from error
    _check(picture, job)
    return picture


def picture_pages(picture: Image.Image, job: Job) -> Iterator[Image.Image]:
    """The first pages of a TIFF, the first frame of anything else: upright, in RGB, small enough to be read."""
    for number in range(job.pages if picture.format == "TIFF" else 1):
        if number:
            try:
                picture.seek(number)
            except EOFError:
                return
            _check(picture, job)
        yield _to_rgb(picture)


def _check(picture: Image.Image, job: Job) -> None:
    width, height = picture.size
    if width < 1 or height < 1:
        raise Refused("unreadable")
    if width * height > job.pixels:
        raise Refused("pixels")


def _to_rgb(picture: Image.Image) -> Image.Image:
    if picture.format == "JPEG":
        picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
    small = picture.copy()  # decodes; the original stays to be turned to its next page
    if small.mode.startswith("I"):
        small = small.convert("I").point(lambda level: level * (1 / 256)).convert("L")
    if "transparency" in small.info or small.mode in _ALPHA:
        shown = small.convert("RGBA")
        small = Image.new("RGBA", shown.size, "white")
        small.alpha_composite(shown)
    small = small.convert("RGB")
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    orientation = picture.getexif().get(0x0112)
    if orientation is not None:
        small.getexif()[0x0112] = orientation
        small = ImageOps.exif_transpose(small)
    return small


_JPEG = 2_900_000
"""Bytes; as base64 they stay below 4 MB, which is what the provider takes."""
_SMALLEST = 200


def read(data: bytes, job: Job) -> Answer:
    """The picture as JPEG; or nothing but the seconds of a recording, as it may go as it is."""
    if job.type in formats.AUDIO:
        return _measure(data, job)
    picture = next(picture_pages(open_picture(data, job), job))
    while True:
        out = BytesIO()
        picture.save(out, "JPEG", quality=85)
        if len(out.getvalue()) <= _JPEG or max(picture.size) < _SMALLEST:
            return Answer(out.getvalue(), f"pillow {version('pillow')}")
        picture.thumbnail((picture.width // 2, picture.height // 2))


def _measure(data: bytes, job: Job) -> Answer:
    from .speech import decode_frames

    seconds = sum(frame.samples / frame.sample_rate for frame in decode_frames(data, job))
    return Answer(b"", f"av {version('av')}", {"seconds": round(seconds, 1)})
