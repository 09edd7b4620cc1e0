"""How far an answer is to be trusted: a pure function of how surely it was understood and of what it rests on.

`calibration.yaml` maps the raw score to how often answers with it were right when that was measured; between its points the
value is interpolated. It is data, so that a new measurement needs no code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

import yaml

from .finding import Finding
from .plan import Understood

_EACH_GAP = 0.95
"""What each kind of gap that was met leaves of the confidence; three count at most."""
_EACH_DEGRADED = 0.9
"""The same for each part that the answer was made without."""
_SHARE_AT_LEAST = 0.4
"""An answer that says how much is not published is not worthless, however much that is."""
_MOST = 3


def confidence(finding: Finding, understood: Understood, degraded: int = 0) -> float:
    """From 0 to 1.

    Args:
        finding: what was found; what could not be listed or ordered is no answer, and has 0.
        understood: how the message was understood, with its certainty.
        degraded: how many parts of the turn failed open.
    """
    if finding.outcome in ("too_many", "unordered", "incomparable"):
        return 0.0
    whole = finding.known + finding.unknown
    share = max(finding.known / whole, _SHARE_AT_LEAST) if whole else 1.0
    raw = understood.certainty * share * _EACH_GAP ** min(finding.gaps, _MOST) * _EACH_DEGRADED ** min(degraded, _MOST)
    return round(calibrated(raw, _points()), 3)


def calibrated(raw: float, points: Sequence[tuple[float, float]]) -> float:
    """The value at `raw` of the line through points that rise from left to right."""
    if raw <= points[0][0]:
        return points[0][1]
    for (x, y), (x2, y2) in pairwise(points):
        if raw <= x2:
            return y + (y2 - y) * (raw - x) / (x2 - x)
    return points[-1][1]


@cache
def _points() -> tuple[tuple[float, float], ...]:
    file = files("phronesis_orchestrator.understanding").joinpath("content", "calibration.yaml")
    return tuple((float(raw), float(right)) for raw, right in yaml.safe_load(file.read_text(encoding="utf-8"))["points"])
