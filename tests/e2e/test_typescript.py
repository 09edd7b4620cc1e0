"""The TypeScript client: built from the API's description, and its own tests on a whole stack."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from scripts.tree import ROOT
from tests.support.people import Town

pytestmark = [
    pytest.mark.verify,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node 20 with npm"),
]
CLIENT = ROOT / "clients" / "typescript"
_OURS = ("package.json", "package-lock.json", "tsconfig.json", "src/index.ts", "test/client.test.mjs")


async def run(folder: Path, *command: str, **environment: str) -> str:
    """What a command prints in a folder."""
    where = {"PATH": str(Path(shutil.which("npm") or "").parent) + ":/usr/bin:/bin", "HOME": str(Path.home())} | environment
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=where, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_the_client_builds_and_its_tests_pass_on_a_running_stack(everybody: Town, tmp_path: Path) -> None:
    folder = tmp_path / "clients" / "typescript"
    for name in _OURS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CLIENT / name, folder / name)
    description = tmp_path / "docs" / "generated" / "openapi.json"
    description.parent.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "generated" / "openapi.json", description)
    backend = await everybody.someone(scopes=("act_for_users",))
    await run(folder, "npm", "ci", "--no-audit", "--no-fund")
    await run(folder, "npm", "run", "build")
    told = await run(folder, "npm", "test", PHRONESIS_URL=str(backend.http.base_url).rstrip("/"), PHRONESIS_KEY=backend.key)
    assert "fail 0" in told
    types = (folder / "src" / "api.ts").read_text("utf-8")
    for name in ("Memory", "NewMemory", "FoundMemory", "MemoriesGiven", "SearchGiven", "MemoryPage", "MemoryHistory"):
        found = types.split(f"        {name}: {{", 1)[1].split("\n        };", 1)[0]
        assert not re.search(r'(?<!")\bunknown\b(?!")', found), name  # the type, and not the origin of that name
