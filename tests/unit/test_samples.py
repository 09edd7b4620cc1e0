"""The product knows nothing of the sample data: their names and ids stand beside the samples alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTS = sorted(ROOT.glob("samples/phronesis_samples/*/names.txt"))
TEXTS = {".py", ".md", ".yaml", ".yml", ".json", ".toml", ".sql", ".html", ".js", ".ts", ".tsx", ".css", ".txt"}
_WORD = re.compile(r"\w+")
EXEMPT = (
    "services/orchestrator/phronesis_orchestrator/agents/counsel/",
    "services/gateway/phronesis_gateway/console/web/",
    "clients/console/src/api/schema.ts",
)
"""Rules of the constitutional agents, which are not yet written for any data; and what is made by programs."""
FOLDERS = ("services", "libs", "clients/console/src", "clients/console/messages")


def names(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def test_every_list_has_names() -> None:
    assert [path.parent.name for path in LISTS if len(names(path)) > 40] == ["institute", "portfolio"]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.parent.name)
def test_no_name_of_a_sample_stands_in_the_product(path: Path) -> None:
    listed = [(name, _first_word(name), re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")) for name in names(path)]
    found = []
    for file in (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*"))):
        where = file.relative_to(ROOT).as_posix()
        if file.suffix in TEXTS and not where.startswith(EXEMPT):
            text = file.read_text("utf-8", errors="replace")
            words = set(_WORD.findall(text))
            found += [f"{where}: {name}" for name, first, pattern in listed if first in words and pattern.search(text)]
    assert found == []


def _first_word(name: str) -> str:
    """A text that holds the name holds this word: to look for it first takes a tenth of the time."""
    return _WORD.findall(name)[0]
