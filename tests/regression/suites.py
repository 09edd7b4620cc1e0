"""The first two steps: the unit tests, all of which pass, and the integration tests, of which more than 95 in 100 pass."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .steps import Found

ROOT = Path(__file__).parents[2]
UNIT = ("tests/unit", "tests/contract")
INTEGRATION = ("tests/stores", "tests/integration", "tests/e2e")
SHARE = 0.95
"""Of the integration tests, at least."""
_NAMED = 20


@dataclass(frozen=True)
class Counted:
    """How a run of tests ended."""

    run: int
    failed: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of those that ran, how many passed."""
        return (self.run - len(self.failed)) / self.run if self.run else 0.0


async def unit() -> Found:
    """Step 1."""
    return all_pass(await _pytest(UNIT))


async def integration() -> Found:
    """Step 2."""
    return most_pass(await _pytest(INTEGRATION))


def all_pass(counted: Counted) -> Found:
    """Every test passes, and there is one."""
    return Found(
        _told(counted), () if counted.run and not counted.failed else (f"{counted.share:.1%} pass, of which 100% have to",)
    )


def most_pass(counted: Counted) -> Found:
    """More than 95 of 100 pass."""
    kept = counted.share > SHARE
    return Found(_told(counted), () if kept else (f"{counted.share:.1%} pass, and more than {SHARE:.0%} have to",))


def counted(report: Path) -> Counted:
    """What a JUnit report of pytest says; skipped tests did not run."""
    cases = [case for case in ElementTree.parse(report).iter("testcase") if case.find("skipped") is None]
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return Counted(len(cases), tuple(f"{case.get('classname')}.{case.get('name')}" for case in bad))


def _told(found: Counted) -> tuple[str, ...]:
    return (f"{found.run} tests, {len(found.failed)} failed", *(f"failed: {name}" for name in found.failed[:_NAMED]))


async def _pytest(folders: Sequence[str]) -> Counted:
    with tempfile.TemporaryDirectory(prefix="phronesis-regression-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *folders, f"--junitxml={report}"]
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=sys.stderr)
        await process.wait()
        return counted(report) if report.exists() else Counted(0, ())
