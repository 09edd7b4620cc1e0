"""The product knows nothing of the sample data: their names and ids stand beside the samples alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = sorted(ROOT.glob("samples/phronesis_samples/*/names.txt"))
TEXTS = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".sql", ".html", ".js", ".css", ".txt"}
EXEMPT = (
    "services/orchestrator/phronesis_orchestrator/agents/",
    "services/orchestrator/phronesis_orchestrator/tasks/rules/",
)
"""Rules that were written for the portfolio, until one planner for all data replaces them."""


def names(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def test_every_list_has_names() -> None:
    assert [path.parent.name for path in LISTS if len(names(path)) > 40] == ["institute", "portfolio"]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.parent.name)
def test_no_name_of_a_sample_stands_in_the_product(path: Path) -> None:
    any_name = re.compile(r"(?<!\w)(?:" + "|".join(re.escape(name) for name in names(path)) + r")(?!\w)")
    found = []
    for file in (file for folder in ("services", "libs") for file in sorted((ROOT / folder).rglob("*"))):
        where = file.relative_to(ROOT).as_posix()
        if file.suffix in TEXTS and not where.startswith(EXEMPT):
            text = file.read_text("utf-8", errors="replace")
            found += [f"{where}: {match.group()}" for match in any_name.finditer(text)]
    assert found == []
