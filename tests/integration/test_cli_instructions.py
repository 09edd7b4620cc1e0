"""`phronesis instructions` and its routes, on a whole embedded stack."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from phronesis_local.layout import inherited_environment

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


class Stack:
    """A running stack, and the command on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.environment = inherited_environment() | {"PHRONESIS_DATA": str(data)}

    async def phronesis(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "phronesis", *arguments]
        return await asyncio.to_thread(
            subprocess.run, whole, env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=240
        )

    async def told(self, *arguments: str) -> str:
        """What the command prints, where it is to succeed."""
        done = await self.phronesis("instructions", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("cli") / "data")
    try:
        up = await stack.phronesis("up", "--detach", "--port", "0")
        assert up.returncode == 0, up.stdout + up.stderr
        yield stack
    finally:
        await stack.phronesis("down")


async def test_texts_are_listed_shown_compared_published_and_taken_back(stack: Stack, tmp_path: Path) -> None:
    listed = json.loads(await stack.told("list", "--tier", "3", "--json"))
    assert (len(listed["texts"]), listed["release"]) == (64, "4.0.0")
    before = await stack.told("show", "EntityRisk")
    (tmp_path / "EntityRisk.md").write_text("---\nuse_cases: [risks]\n---\nRisks, told anew.\n")
    assert "+Risks, told anew." in await stack.told("diff", str(tmp_path))
    assert await stack.told("show", "EntityRisk") == before
    assert await stack.told("publish", str(tmp_path), "--note", "shorter", "--yes") == "changed  EntityRisk  4.0.0 -> 4.0.1\n"
    assert await stack.told("show", "EntityRisk") == "Risks, told anew.\n"
    assert "shorter" in await stack.told("releases")
    await stack.told("rollback", "--yes")
    assert await stack.told("show", "EntityRisk") == before


async def test_what_would_not_work_is_refused_with_every_fault(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "EntityRisk.md").write_text("<element name='x'>Risks</element>")
    (tmp_path / "tier2_mode_a.md").write_text("All of it.")
    refused = await stack.phronesis("instructions", "publish", str(tmp_path), "--yes")
    assert refused.returncode == 3
    assert "instructions.unpublishable" in refused.stderr
    assert all(tag in refused.stderr for tag in ("EntityRisk: ", "tier2_mode_a: "))


async def test_an_experiment_is_started_reported_and_stopped(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "step5_return.md").write_text("Be short.")
    arms = ("--arm", "control=50", "--arm", f"short=50:{tmp_path}")
    started = json.loads(await stack.told("experiment", "start", "tone", *arms, "--yes", "--json"))
    assert [(arm["name"], arm["tags"]) for arm in started["arms"]] == [("control", []), ("short", ["step5_return"])]
    assert "tone: running" in await stack.told("experiment", "report", "tone")
    assert "tone: stopped" in await stack.told("experiment", "stop", "tone", "--yes")
    assert "tone: stopped" in await stack.told("experiment", "list")


@pytest.mark.req("N-243")
async def test_a_route_is_open_to_an_editor_and_closed_to_others(stack: Stack) -> None:
    url = (stack.data / "url").read_text().strip()
    answers = {}
    for agent in ("editor", "noor"):
        made = await stack.phronesis("keys", "create", "--tenant", "acme", "--user", agent, "--agent", agent)
        assert made.returncode == 0, made.stderr
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {made.stdout.strip()}"}) as client:
            body = {"texts": [{"tag": "EntityRisk", "content": "Risks."}]}
            answers[agent] = (await client.post("/api/v1/tools/publish_instructions", json=body)).status_code
    assert answers == {"editor": 200, "noor": 403}
