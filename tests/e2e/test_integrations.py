"""The integrations on a whole stack: each one's own tests, in the environment of `make integrations`."""

from __future__ import annotations

import asyncio
import os

import pytest

from scripts.tree import ROOT
from tests.support.people import Town

PYTHON = ROOT / ".venv-integrations" / "bin" / "python"
pytestmark = [
    pytest.mark.verify,
    pytest.mark.any_store,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.exists(), reason="needs `make integrations`"),
]
INTEGRATIONS = sorted(path.parent.name for path in (ROOT / "integrations").glob("*/pyproject.toml"))


@pytest.mark.parametrize("name", INTEGRATIONS)
async def test_the_tests_of_an_integration_pass_on_a_running_stack(everybody: Town, name: str) -> None:
    backend = await everybody.someone(scopes=("act_for_users",))
    where = {"PHRONESIS_URL": str(backend.http.base_url), "PHRONESIS_KEY": backend.key, "HOME": os.environ["HOME"]}
    process = await asyncio.create_subprocess_exec(
        *(PYTHON, "-m", "pytest", "-q", f"integrations/{name}"),
        cwd=ROOT,
        env=where,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
