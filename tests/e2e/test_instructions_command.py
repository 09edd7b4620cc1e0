"""`phronesis instructions` and its routes, on the whole stack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.commands import command
from tests.support.people import Person, Town
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(300)]


class Shell:
    """The command, by an administrator of a tenant of its own."""

    def __init__(self, stack: RunningStack, person: Person) -> None:
        self._stack = stack
        self._own = ("--key", person.key, "--url", str(person.http.base_url))

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `phronesis instructions`."""
        return await command(self._stack, "instructions", *arguments, *self._own)

    async def told(self, *arguments: str) -> str:
        """What the command prints, where it is to succeed."""
        code, out, errors = await self.run(*arguments)
        assert code == 0, out + errors
        return out


@pytest.fixture
async def shell(stack: RunningStack, everybody: Town) -> Shell:
    return Shell(stack, await everybody.someone(role="admin"))


async def test_texts_are_listed_shown_compared_published_and_taken_back(shell: Shell, tmp_path: Path) -> None:
    listed = json.loads(await shell.told("list", "--tier", "3", "--json"))
    assert (len(listed["texts"]), listed["release"]) == (64, "4.0.0")
    before = await shell.told("show", "EntityRisk")
    (tmp_path / "EntityRisk.md").write_text("---\nuse_cases: [risks]\n---\nRisks, told anew.\n")
    assert "+Risks, told anew." in await shell.told("diff", str(tmp_path))
    assert await shell.told("show", "EntityRisk") == before
    assert await shell.told("publish", str(tmp_path), "--note", "shorter", "--yes") == "changed  EntityRisk  4.0.0 -> 4.0.1\n"
    assert await shell.told("show", "EntityRisk") == "Risks, told anew.\n"
    assert "shorter" in await shell.told("releases")
    await shell.told("rollback", "--yes")
    assert await shell.told("show", "EntityRisk") == before


async def test_what_would_not_work_is_refused_with_every_fault(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "EntityRisk.md").write_text("<element name='x'>Risks</element>")
    (tmp_path / "tier2_mode_a.md").write_text("All of it.")
    code, _, errors = await shell.run("publish", str(tmp_path), "--yes")
    assert code == 3
    assert "instructions.unpublishable" in errors
    assert all(tag in errors for tag in ("EntityRisk: ", "tier2_mode_a: "))


async def test_an_experiment_is_started_reported_and_stopped(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "step5_return.md").write_text("Be short.")
    arms = ("--arm", "control=50", "--arm", f"short=50:{tmp_path}")
    started = json.loads(await shell.told("experiment", "start", "tone", *arms, "--yes", "--json"))
    assert [(arm["name"], arm["tags"]) for arm in started["arms"]] == [("control", []), ("short", ["step5_return"])]
    assert "tone: running" in await shell.told("experiment", "report", "tone")
    assert "tone: stopped" in await shell.told("experiment", "stop", "tone", "--yes")
    assert "tone: stopped" in await shell.told("experiment", "list")


@pytest.mark.req("N-243")
async def test_a_route_is_open_to_an_editor_and_closed_to_others(everybody: Town) -> None:
    answers = {}
    for role in ("editor", "noor"):
        person = await everybody.someone(role=role)
        body = {"texts": [{"tag": "EntityRisk", "content": "Risks."}]}
        answers[role] = (await person.tool("publish_instructions", body)).status_code
    assert answers == {"editor": 200, "noor": 403}
