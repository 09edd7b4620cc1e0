"""Make the pictures of the console anew, with the browser's tests of a whole stack: python -m tests.console"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.browser import PICTURES

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "docs" / "images" / "console"

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ[PICTURES] = str(FOLDER)
    sys.exit(pytest.main(["-p", "no:schemathesis", "-q", str(HERE / "test_first_visit.py")]))
