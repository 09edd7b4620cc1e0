"""The colours of a picture in words."""

from __future__ import annotations

import colorsys
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE = 48
_LEAST = 0.08
"""Share of the picture that a colour has to cover to be named."""
_MOST = 3
_HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (200, "turquoise"), (255, "blue"), (290, "purple"))


def colours(picture: Image) -> str:
    """The colours that cover most of an RGB picture, for example `mostly white, some blue`."""
    small = picture.resize((_SIDE, _SIDE))
    counts: Counter[str] = Counter()
    for count, pixel in small.getcolors(_SIDE * _SIDE) or []:
        counts[_name(*pixel)] += count  # type: ignore[misc]
    shares = [(name, count / (_SIDE * _SIDE)) for name, count in counts.most_common(_MOST)]
    named = [name for name, share in shares if share >= _LEAST]
    if shares[0][1] > 0.97:
        return f"all {shares[0][0]}"
    first = f"mostly {named[0]}" if shares[0][1] >= 0.5 else named[0]
    return f"{first}, some {' and '.join(named[1:])}" if named[1:] else first


def _name(red: int, green: int, blue: int) -> str:
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
