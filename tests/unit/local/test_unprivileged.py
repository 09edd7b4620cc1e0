"""A program that root starts as `nobody`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone starts programs as somebody else")
_ASK = "import os, sys; print(os.geteuid(), os.access(sys.argv[1], os.R_OK), open(sys.argv[1]).read())"


def test_it_is_not_root_and_both_sees_and_reads_what_only_root_may_enter(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    file = tmp_path / "closed" / "file"
    file.write_text("text")
    file.chmod(0o600)
    started = [sys.executable, "-m", "phronesis_local.unprivileged", sys.executable, "-c", _ASK, file]
    assert subprocess.run(started, capture_output=True, text=True, check=True).stdout.split() == ["65534", "True", "text"]
