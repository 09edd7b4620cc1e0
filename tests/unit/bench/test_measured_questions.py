"""The committed report of the bench: how long questions to the memory of 10,000 episodes took, their vectors given."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

REPORT = Path(__file__).resolve().parents[3] / "docs" / "generated" / "bench-report.md"
HEADING = "\n## Episodes, strategies and questions to the memory\n"
ROW = re.compile(r"^\| 10,000 \| `memory_query` (?P<what>[^|]+) \| (?P<median>[\d.]+) \|", re.M)


@pytest.mark.req("V-060")
def test_the_typical_question_to_the_memory_of_10_000_episodes_took_about_ten_milliseconds() -> None:
    section = REPORT.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    medians = {row["what"]: float(row["median"]) for row in ROW.finditer(section)}
    assert set(medians) == {"episodes", "context", "style", "failures, by a tool's name", "failures, by words"}
    assert statistics.median(medians.values()) < 11
    assert max(medians.values()) < 20
