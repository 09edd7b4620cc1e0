"""The program helm: found, or built once, and run on the chart."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import tools
from .tree import ROOT

CHART = ROOT / "deploy" / "helm" / "phronesis"
VALUES = ROOT / "deploy" / "helm" / "values"
SETS = ("small", "production", "managed")
OLDEST, NEWEST = "1.30.0", "1.37.0"
"""Versions of Kubernetes: the oldest that the chart takes, and the newest whose schemas are at hand."""
_SECONDS = 60
"""That one run may take."""


@dataclass(frozen=True)
class Output:
    """What one run of helm said."""

    ok: bool
    text: str
    errors: str


@cache
def program() -> Path:
    """Helm 3: the one on PATH, or the one that `tools` builds.

    Raises:
        Missing: neither is there, and Go is not, or does not build it.
    """
    found = shutil.which("helm")
    if found and re.match(r"v3\.", _said([found, "version", "--short"]).text):
        return Path(found)
    return tools.program("helm")


def lint(values: str) -> Output:
    """What `helm lint --strict` says of the chart with one set of values."""
    arguments = ["lint", "--strict", "--kube-version", OLDEST, str(CHART), "-f", str(VALUES / f"{values}.yaml")]
    return _said([str(program()), *arguments])


def render(values: str, *changes: str, chart: Path = CHART) -> Output:
    """The objects that the chart makes of one set of values.

    Args:
        values: `small`, `production` or `managed`.
        changes: more values, as `--set` takes them.
        chart: another copy of the chart.
    """
    more = [part for change in changes for part in ("--set", change)]
    arguments = ["template", "phronesis", str(chart), "-n", "phronesis", "--kube-version", OLDEST]
    return _said([str(program()), *arguments, "-f", str(VALUES / f"{values}.yaml"), *more])


def _said(command: list[str]) -> Output:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Output(False, "", f"{Path(command[0]).name} {command[1]} took longer than {_SECONDS} s")
    return Output(ran.returncode == 0, ran.stdout, ran.stderr)
