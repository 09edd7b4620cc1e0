"""The parts of the specification have each their module."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[4] / "docs" / "cognition.md"


@pytest.mark.req("V-162")
def test_every_module_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(phronesis_orchestrator[\w.]+)`", _PAGE.read_text("utf-8").partition("## Where it is")[2])
    assert len(named) >= 8
    for name in named:
        importlib.import_module(name)


@pytest.mark.req("V-163", "V-002")
@pytest.mark.parametrize("module", ["thought", "state", "preparation"])
def test_each_part_can_be_imported_alone(module: str) -> None:
    alone = [sys.executable, "-c", f"import phronesis_orchestrator.agents.cognition.{module}"]
    assert subprocess.run(alone, capture_output=True, timeout=60).returncode == 0
