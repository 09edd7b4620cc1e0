"""The files of the pages, all from this machine: our own, and the chart library from its Python package."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from starlette.responses import FileResponse, Response

from phronesis_contracts import NotFound

_OWN = Path(__file__).parent / "assets"
_TYPES = {"console.js": "text/javascript", "console.css": "text/css", "icon.svg": "image/svg+xml"}
_CHARTS = "plotly.min.js"
_FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


def url(name: str) -> str:
    """Where a file is; another version of it is elsewhere, so that a browser keeps each for good."""
    return f"/console/assets/{name}?v={_version(name)}"


def asset(name: str) -> Response:
    """A file by its name.

    Raises:
        NotFound: the pages have no such file.
    """
    if name == _CHARTS:
        # Found without importing the package, which costs seconds and is not needed.
        path = distribution("plotly").locate_file(f"plotly/package_data/{name}")
        return FileResponse(str(path), media_type="text/javascript", headers=_FOR_GOOD)
    if name not in _TYPES:
        raise NotFound("there is no such file")
    return FileResponse(_OWN / name, media_type=_TYPES[name], headers=_FOR_GOOD)


@cache
def _version(name: str) -> str:
    if name == _CHARTS:
        return distribution("plotly").version
    return hashlib.sha256((_OWN / name).read_bytes()).hexdigest()[:12]
