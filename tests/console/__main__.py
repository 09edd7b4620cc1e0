"""Make the pictures of docs/console.md anew, with the browser's tests: python -m tests.console"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.browser import PICTURES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "console"

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ[PICTURES] = str(FOLDER)
    made_by = ("console", "e2e/test_console.py", "e2e/test_constitution_console.py")
    # The trace of the whole stack comes last, and takes the place of the scripted one.
    named = "fits_a_window or trace or constitution_console"
    sys.exit(pytest.main([*(str(ROOT / "tests" / each) for each in made_by), "-k", named]))
