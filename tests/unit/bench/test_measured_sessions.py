"""The committed report of the bench: how long the starts of sessions took when they were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPORT = Path(__file__).resolve().parents[3] / "docs" / "generated" / "bench-report.md"
PAIRS = ("ArcadeDB and pgvector", "Neo4j and Weaviate")


def section(pair: str) -> str:
    """What the report says of the constitutional graph on a pair of stores."""
    whole = REPORT.read_text(encoding="utf-8").split("\n## The constitutional graph\n")[1].split("\n## ")[0]
    return whole.split(f"\n### {pair}\n")[1].split("\n### ")[0]


@pytest.mark.req("O-002", "O-247")
@pytest.mark.parametrize("pair", PAIRS)
def test_sessions_of_500_nodes_began_in_under_five_seconds_and_at_the_99th_percentile_in_under_eight(pair: str) -> None:
    row = re.search(r"^\| Session start, full context \| 5.0 \| ([\d.]+) \| 8.0 \| ([\d.]+) \| yes \|$", section(pair), re.M)
    assert row
    assert (float(row[1]) < 5.0, float(row[2]) < 8.0) == (True, True)


@pytest.mark.req("O-002", "O-247")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("size", "seconds"), [(45, 3.0), (500, 5.0)])
def test_sessions_that_nothing_was_kept_of_began_in_seconds(pair: str, size: int, seconds: float) -> None:
    row = re.search(rf"^\| {size} \| session.start.v1 after a write \| ([\d.]+) \| ([\d.]+) \|", section(pair), re.M)
    assert row
    assert (float(row[1]) < 1000 * seconds, float(row[2]) < 8000) == (True, True)
