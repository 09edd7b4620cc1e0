"""A rolling restart under load, two of each service, this version and the one before it side by side.

The load, the stack and the comparison stand in `tests/e2e/rolling`; `python -m tests.e2e.rolling` makes the long run.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from phronesis_contracts.service import SERVICES
from tests.support.previous import is_ancestor, previous_module, previous_python, previous_tree

from .rolling.run import FIRST, SECOND, running

pytestmark = [pytest.mark.verify]

_WHERE = """
import importlib, sys
print("\\n".join(importlib.import_module(name).__file__ for name in sys.argv[1:]))
"""


def test_the_version_before_came_before(tmp_path: Path) -> None:
    assert is_ancestor()


def test_the_version_before_runs_all_of_its_own_code(tmp_path: Path) -> None:
    tree = previous_tree(tmp_path / "tree")
    modules = [previous_module(tree, name) for name in SERVICES]
    command = [str(previous_python(tree)), "-c", _WHERE, *modules]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    files = done.stdout.split()
    assert len(files) == len(SERVICES), done.stderr
    assert [file for file in files if not file.startswith(str(tree))] == []


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
