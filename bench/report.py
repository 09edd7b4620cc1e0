"""The report: its head, and one section for each thing that is measured, each with the commit that it was measured at."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def head() -> str:
    """What stands before the sections."""
    return "\n".join(
        [
            "# Bench report",
            "",
            f"Made by `make bench` on {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()};",
            "the client runs on the same machine. Read the ratios; the absolute figures move with the machine. No model is",
            "called: the `extractive` reasoner answers, unless stated otherwise. Each section is one run on",
            "servers of its own, and names its commit.",
            "",
        ]
    )


def section(title: str, lines: Sequence[str], commit: str) -> str:
    """One section."""
    return "\n".join([f"## {title}", "", f"Measured at `{commit}`.", "", *lines, ""])


def with_sections(report: str, order: Sequence[str], made: Mapping[str, str]) -> str:
    """A report with sections in place of its own of the same titles.

    Args:
        report: as it was; empty where there was none.
        order: every title that a report has, in its order; a section of another title goes.
        made: new sections by title.
    """
    _, *parts = report.split("\n## ")
    found = {part.split("\n", 1)[0].strip(): f"## {part.rstrip()}\n" for part in parts} | dict(made)
    return "\n".join([head(), *(found[title] for title in order if title in found)])


def commit() -> str:
    """The commit that is checked out, with a `+` where files differ from it."""
    name = _git("rev-parse", "--short=12", "HEAD")
    return name + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout.strip()
