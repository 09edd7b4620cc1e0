"""What the tests of the integrations share.

They need a running stack, named by `PHRONESIS_URL` and, in `PHRONESIS_KEY`, a key of a new user with the scope
`act_for_users`; `tests/e2e/test_integrations.py` starts one and runs them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def pytest_sessionstart(session: pytest.Session) -> None:
    if missing := {"PHRONESIS_URL", "PHRONESIS_KEY"} - os.environ.keys():
        pytest.exit(f"a running stack is needed: {', '.join(sorted(missing))}", returncode=2)


@pytest.fixture
def user() -> str:
    """A user of whom memory holds nothing yet."""
    return f"user-{uuid4().hex}"


@pytest.fixture
def run_page() -> Callable[..., str]:
    """Runs the Python of a page of the repository, one block after the other; what they printed.

    The arguments behind the page are the names that it takes for known.
    """

    def run(page: str, **known: Any) -> str:
        printed = io.StringIO()
        names = {"__name__": "__main__", **known}
        with contextlib.redirect_stdout(printed):
            for block in _BLOCK.findall((ROOT / page).read_text("utf-8")):
                exec(compile(block, page, "exec", dont_inherit=True), names)
        return printed.getvalue()

    return run
