"""Figures: bounded, and readable even where one of them cannot be had."""

from __future__ import annotations

import pytest

from phronesis_bus.metrics import OTHER, SERIES, Kind, Metric, Metrics

ASKED = Metric("asked", Kind.COUNTER, "Questions.", ("subject",))
DEPTH = Metric("depth", Kind.GAUGE, "What waits.")
TOOK = Metric("took_seconds", Kind.HISTOGRAM, "Time.", ("what", "error_type"), (1.0, 2.0))


def lines(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if not line.startswith("#") and "_created" not in line]


async def test_what_is_counted_is_shown() -> None:
    metrics = Metrics()
    metrics.count(ASKED, "a")
    metrics.count(ASKED, "a", by=2)
    metrics.set(DEPTH, 7)
    assert lines(await metrics.text()) == ['asked_total{subject="a"} 3.0', "depth 7.0"]


async def test_series_beyond_the_limit_are_counted_together() -> None:
    metrics = Metrics()
    for number in range(SERIES + 5):
        metrics.count(ASKED, f"s{number}")
    shown = lines(await metrics.text())
    assert (len(shown), f'asked_total{{subject="{OTHER}"}} 5.0' in shown) == (SERIES + 1, True)


async def test_a_probe_sets_its_gauge_at_each_reading() -> None:
    metrics, depths = Metrics(), iter((3.0, 5.0))

    async def look() -> None:
        metrics.set(DEPTH, next(depths))

    metrics.probe(look)
    assert [lines(await metrics.text()) for _ in range(2)] == [["depth 3.0"], ["depth 5.0"]]


async def test_a_probe_that_fails_takes_no_other_figure_with_it() -> None:
    metrics = Metrics()

    async def look() -> None:
        raise ConnectionError("a-password")

    metrics.probe(look)
    metrics.count(ASKED, "a")
    assert lines(await metrics.text()) == ['asked_total{subject="a"} 1.0']


async def test_a_block_that_raises_is_timed_under_its_class() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="no"), metrics.timed(TOOK, "work"):
        raise ValueError("no")
    assert 'took_seconds_count{error_type="ValueError",what="work"} 1.0' in lines(await metrics.text())
