"""The program helm: found, or built once from its source into a cache folder, and run on the chart."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .tree import ROOT

VERSION = "v3.19.0"
CHART = ROOT / "deploy" / "helm" / "phronesis"
VALUES = ROOT / "deploy" / "helm" / "values"
SETS = ("small", "production", "managed")
OLDEST, NEWEST = "1.30.0", "1.37.0"
"""Versions of Kubernetes: the oldest that the chart takes, and the newest whose schemas are at hand."""
_BUILD, _RUN = 1_500, 60
"""Seconds that building it may take, and one run of it."""


class HelmMissing(Exception):
    """There is no helm, and it cannot be built."""


@dataclass(frozen=True)
class Output:
    """What one run of helm said."""

    ok: bool
    text: str
    errors: str


def cache_folder() -> Path:
    """Where what is built or fetched once is kept: `$XDG_CACHE_HOME/phronesis`, or `~/.cache/phronesis`."""
    base = os.environ.get("XDG_CACHE_HOME")  # noqa: TID251  # a script's own place, as the convention has it
    return (Path(base) if base else Path.home() / ".cache") / "phronesis"


@cache
def program() -> Path:
    """Helm 3: the one on PATH, or the one in the cache, which is built there first where it is missing.

    Raises:
        HelmMissing: neither is there, and Go is not, or does not build it.
    """
    found = shutil.which("helm")
    if found and re.match(r"v3\.", _said([found, "version", "--short"], _RUN).text):
        return Path(found)
    built = cache_folder() / f"helm-{VERSION}"
    if not built.exists():
        _build(built)
    return built


def _build(built: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise HelmMissing("helm 3 is not on PATH, and neither is go, with which it could be built")
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        said = _said([go, "install", f"helm.sh/helm/v3/cmd/helm@{VERSION}"], _BUILD, GOBIN=folder)
        if not said.ok:
            raise HelmMissing(f"helm could not be built:\n{said.errors}")
        (Path(folder) / "helm").replace(built)  # at once: another run sees it whole or not at all


def lint(values: str) -> Output:
    """What `helm lint --strict` says of the chart with one set of values."""
    arguments = ["lint", "--strict", "--kube-version", OLDEST, str(CHART), "-f", str(VALUES / f"{values}.yaml")]
    return _said([str(program()), *arguments], _RUN)


def render(values: str, *changes: str, chart: Path = CHART) -> Output:
    """The objects that the chart makes of one set of values.

    Args:
        values: `small`, `production` or `managed`.
        changes: more values, as `--set` takes them.
        chart: another copy of the chart.
    """
    more = [part for change in changes for part in ("--set", change)]
    arguments = ["template", "phronesis", str(chart), "-n", "phronesis", "--kube-version", OLDEST]
    return _said([str(program()), *arguments, "-f", str(VALUES / f"{values}.yaml"), *more], _RUN)


def _said(command: list[str], seconds: float, **variables: str) -> Output:
    environment = {**os.environ, **variables}  # noqa: TID251  # handed on, not read
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return Output(False, "", f"{Path(command[0]).name} {command[1]} took longer than {seconds:.0f} s")
    return Output(ran.returncode == 0, ran.stdout, ran.stderr)
