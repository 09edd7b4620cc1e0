"""Worlds of the task suite on a real stack: loaded as they are written, read back whole, and mended after a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.client import Client
from evals.stack import Stack
from evals.tasks import main
from evals.worlds import FOLDER, World, use
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.timeout(600)]


@pytest.fixture
def where(stack: RunningStack) -> Stack:
    return Stack(stack.data.url.read_text().strip(), stack.data.key.read_text().strip())


@pytest.fixture
def lighthouses(where: Stack, tmp_path: Path) -> Iterator[tuple[World, Client, Client]]:
    """A world with its administrator, and somebody who works in it."""
    world = World(FOLDER / "lighthouses")
    with Client(where.url, world.load(where, tmp_path)) as admin, admin.user("maren", "maestro") as person:
        world.equip(person)
        yield world, admin, person


def test_a_world_is_read_back_as_its_files_have_it(lighthouses: tuple[World, Client, Client]) -> None:
    world, _, person = lighthouses
    state = world.state(person)
    assert set(state.nodes) == {node["id"] for node in world.nodes}
    assert state.links == set(world.links)
    assert [row["name"] for row in state.twin["Beacon"]] == sorted(row["name"] for row in world.rows["Beacon"])
    assert state.memories == {*world.memories, *world.notes.values()}
    assert state == world.state(person)


def test_whatever_a_task_did_to_the_graph_is_undone(lighthouses: tuple[World, Client, Client]) -> None:
    world, admin, person = lighthouses
    before = world.state(person)
    use(person, "task.create.v1", {"title": "A stray task"})
    use(person, "task.update.v1", {"id": "ta-order", "status": "done", "priority": 1})
    use(admin, "node.delete.v1", {"id": "ri-boat"})
    use(person, "relationship.create.v1", {"fromId": "ta-rails", "type": "BLOCKS", "toId": "ta-hull"})
    after = world.state(person)
    assert after != before
    world.mend(admin, before, after)
    assert world.state(person) == before


def test_tasks_are_judged_and_recorded(where: Stack, tmp_path: Path) -> None:
    records, failures, report = (tmp_path / name for name in ("records.jsonl", "failures.txt", "report.md"))
    chosen = ["--domain", "lighthouses", "--id", "lh-photos", "--id", "lh-weather", "--trials", "2"]
    files = ["--records", str(records), "--failures", str(failures), "--report", str(report)]
    assert main(["--url", where.url, "--key", where.key, *chosen, *files]) == 0
    found = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    assert [(one["id"], one["trial"]) for one in found] == [(id, n) for n in (0, 1) for id in ("lh-weather", "lh-photos")]
    assert {one["status"] for one in found} == {"failed"}
    assert "| full | outside | 100.0 %" in report.read_text("utf-8")
