"""What can be said of a picture without a vision model, and the text of scanned pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import TypeVar

from PIL import Image

from .. import formats
from .colours import colours
from .jobs import Answer, Job, Refused, text
from .pictures import LONGEST, opened, pages
from .recognise import codes, engine, load, recognised

T = TypeVar("T")

_SHARE = 0.55
"""Share of the time after which no further page is begun: the last one needs some too."""
_DOTS_PER_POINT = 150 / 72


def warm() -> None:
    """Load the models."""
    load()


def read(data: bytes, job: Job) -> Answer:
    """A caption of a picture; or the text of the pages of a PDF that `job.only` names, with a form feed between them."""
    if job.type == formats.PDF:
        return _scan(data, job)
    picture = opened(data, job)
    width, height = picture.size
    first: list[str] = []

    def look(page: Image.Image) -> str:
        if not first:
            first.extend([colours(page), *codes(page)])
        return recognised(page)

    found = _within_time(pages(picture, job), look, job)
    words = "\n\n".join(page for page in found if page)
    kind = (picture.format or "").upper()
    count = f" Its first {len(found)} pages were looked at." if len(found) > 1 else ""
    parts = [words or "No text was found in the picture."]
    parts += [f"A QR code in the picture says: {code}" for code in first[1:]]
    parts.append(
        f"About the picture: {kind}, {width} by {height} pixels, {first[0]}.{count} "
        f"{'The text above was read by OCR; no' if words else 'No'} vision model has described what the picture shows."
    )
    return Answer(text("\n\n".join(parts), job), engine())


def _scan(data: bytes, job: Job) -> Answer:
    import pypdfium2  # type: ignore[import-untyped]

    def page_image(number: int) -> Image.Image:
        page = document[number - 1]
        try:
            scale = min(_DOTS_PER_POINT, LONGEST / max(*page.get_size(), 1.0))
            rendered: Image.Image = page.render(scale=scale, may_draw_forms=False).to_pil().convert("RGB")
        finally:
            page.close()
        rendered.thumbnail((LONGEST, LONGEST))
        return rendered

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Refused("unreadable") from error
    numbers = [number for number in job.only if number <= len(document)][: job.pages]
    found = _within_time(numbers, lambda number: recognised(page_image(number)), job)
    return Answer(text("\f".join(found), job), f"{engine()}, pypdfium2 {version('pypdfium2')}", {"done": len(found)})


def _within_time(items: Iterable[T], look: Callable[[T], str], job: Job) -> list[str]:
    """What `look` gives for each item, as many as fit in the time."""
    start = time.monotonic()
    found = []
    for item in items:
        found.append(look(item))
        if time.monotonic() - start > _SHARE * job.seconds:
            break
    return found
