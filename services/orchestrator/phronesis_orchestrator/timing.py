"""A part of a turn with a span and an entry in a histogram, by what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from phronesis_bus import Metric, Tracing


@dataclass
class Outcome:
    """What came of a part; the block may say more."""

    name: str = "ok"


@contextmanager
def timed(tracing: Tracing, metric: Metric, span: str, label: str) -> Iterator[Outcome]:
    """Measure a block. One that raises is counted by the code of the error, or by its class.

    Args:
        tracing: where the span and the figure go.
        metric: a histogram with two labels: which part it was, and what came of it.
        span: name of the span.
        label: name of the part.
    """
    began, outcome = time.perf_counter(), Outcome()
    try:
        with tracing.span(span):
            yield outcome
    except BaseException as error:
        outcome.name = getattr(error, "code", None) or type(error).__name__
        raise
    finally:
        tracing.metrics.observe(metric, time.perf_counter() - began, label, outcome.name)
