"""Make the pictures of docs/how-to/console.md anew, with the browser's tests of a whole stack: python -m tests.console"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.browser import PICTURES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "images" / "console"

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ[PICTURES] = str(FOLDER)
    made_by = ("test_console.py", "test_constitution_console.py")
    sys.exit(pytest.main([str(ROOT / "tests" / "e2e" / each) for each in made_by]))
