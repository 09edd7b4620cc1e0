"""The parts of the specification have each their module."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[4]
_PAGE = _ROOT / "docs" / "explanation" / "cognition.md"
_PACKAGE = _ROOT / "services" / "orchestrator" / "phronesis_orchestrator"


@pytest.mark.req("V-162", "V-T11")
def test_every_module_that_the_page_names_is_there() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| (`.+`) \|$", _PAGE.read_text("utf-8").partition("## Where it is in the code")[2], re.MULTILINE
    )
    assert len(rows) >= 8
    for name in re.findall(r"`([\w/]+)`", " ".join(rows)):
        importlib.import_module(f"{_PACKAGE.name}.{name.replace('/', '.')}")


@pytest.mark.req("V-163", "V-002")
@pytest.mark.parametrize("module", ["thought", "state", "preparation"])
def test_each_part_can_be_imported_alone(module: str) -> None:
    alone = [sys.executable, "-c", f"import phronesis_orchestrator.agents.cognition.{module}"]
    assert subprocess.run(alone, capture_output=True, timeout=60).returncode == 0
