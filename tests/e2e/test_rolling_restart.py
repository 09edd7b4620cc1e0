"""A rolling restart under load, two of each service, this version and the one before it side by side.

The load, the stack and the comparison stand in `tests/e2e/rolling`; `python -m tests.e2e.rolling` makes the long run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.previous import is_ancestor, previous_tree, python_path

from .rolling.run import FIRST, SECOND, running

_WHERE = """
import importlib, pkgutil, phronesis
names = ["contracts", "bus", "postgres", "gateway", "orchestrator", "memory", "instructions", "graph", "media"]
print("\\n".join(importlib.import_module(f"phronesis.{name}").__file__ for name in names))
from phronesis.contracts.orchestrator import Turn
print("expires_at" in Turn.model_fields)
"""


def test_the_version_before_came_before(tmp_path: Path) -> None:
    assert is_ancestor()


def test_a_process_with_the_path_of_another_tree_runs_all_of_its_code(tmp_path: Path) -> None:
    """One contract field apart: the version before does not know when a turn expires."""
    tree = previous_tree(tmp_path / "tree")
    done = subprocess.run(
        [sys.executable, "-c", _WHERE], env={"PYTHONPATH": python_path(tree)}, capture_output=True, text=True, timeout=60
    )
    *files, knows = done.stdout.split()
    assert len(files) == 9, done.stderr
    assert [file for file in files if not file.startswith(str(tree))] == []
    assert knows == "False"


@pytest.mark.timeout(900)
@pytest.mark.req("D-122")
async def test_a_rolling_restart_between_two_versions_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Half of the processes have the version before; each is replaced by one of the other version, and the load goes on.

    Every accepted turn ends with one reply, every write takes effect once, every stream of events is whole for a reader that
    comes back to whichever gateway, and the SDK absorbs what fails on the way. Then services are restarted once more, and
    two processes are killed in the middle of it.
    """
    async with running(tmp_path, seed=31) as (run, outcome):
        assert run.stack.previous() == set(FIRST)
        await run.turns(5)
        whole = await run.roll(SECOND)
        assert (whole.replaced, run.stack.previous()) == (12, set(SECOND))
        assert run.stack.starts() == 0
        await run.turns(5)
        killed = await run.roll((), "memory", "orchestrator", kills=("memory", "orchestrator-2"))
        assert sorted(killed.killed) == ["memory stopping", "orchestrator-2 starting"]
        assert run.stack.previous() == {part for part in SECOND if part.split("-")[0] not in ("memory", "orchestrator")}
        await run.turns(5)
    found = outcome.result()
    assert found.quiet, [one.failures for one in found.rolled]
    assert found.held.kept, found.held
    assert found.resumed > 0
    assert found.held.found.accepted >= 15
    assert found.held.with_field > 0 < found.held.without_field
