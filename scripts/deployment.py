"""Check files by the programs that read them: compose itself, Prometheus's own checker, and one for GitHub's workflows.

python -m scripts.deployment
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from .tools import Missing, program
from .tree import ROOT

COMPOSE = ROOT / "docker-compose.yml"
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
WORKFLOWS = ROOT / ".github" / "workflows"
DASHBOARDS = DEPLOY / "grafana" / "dashboards"
_SECONDS = 60


class Wrong(Exception):
    """A program does not take one of the files."""


def expressions() -> Iterator[tuple[str, str]]:
    """Where each question of the alerts and the dashboards to Prometheus stands, and the question."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", rule["expr"]
    for path in sorted(DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield f"{path.name}: {panel['title']}", target["expr"].replace("$__rate_interval", "5m")


def check() -> None:
    """Check every file.

    Raises:
        Wrong: a program does not take one.
        Missing: a program could not be built.
    """
    compose = _compose()
    profiles = sorted(
        {p for part in yaml.safe_load(COMPOSE.read_text())["services"].values() for p in part.get("profiles", ())}
    )
    for chosen in ([], *([name] for name in profiles)):
        flags = [flag for name in chosen for flag in ("--profile", name)]
        _run([*compose, "--file", str(COMPOSE), "--env-file", str(ROOT / ".env.example"), *flags, "config", "--quiet"])
    # What it would find shellcheck or pyflakes for, where a machine happens to have them, is not asked for.
    workflows = sorted(map(str, WORKFLOWS.glob("*.yaml")))
    _run([str(program("actionlint")), "-shellcheck=", "-pyflakes=", *workflows])
    promtool = str(program("promtool"))
    _run([promtool, "check", "config", str(DEPLOY / "prometheus" / "prometheus.yml")])
    with tempfile.TemporaryDirectory() as folder:
        asked = [{"record": f"asked:{i}", "expr": expr} for i, (_, expr) in enumerate(expressions())]
        path = Path(folder) / "asked.yml"
        path.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": asked}]}))
        _run([promtool, "check", "rules", "--lint=none", str(path)])


def _compose() -> list[str]:
    """Docker's own compose where it is installed, else the pinned one."""
    docker = shutil.which("docker")
    if docker is not None:
        asked = subprocess.run([docker, "compose", "version"], capture_output=True, timeout=_SECONDS)
        if asked.returncode == 0:
            return [docker, "compose"]
    return [str(program("compose"))]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS)
    said = done.stderr.strip()
    if done.returncode != 0 or "level=warning" in said:
        raise Wrong(f"{' '.join(command)}\n{said or done.stdout.strip()}")


def main() -> None:
    """The command."""
    try:
        check()
    except (Wrong, Missing) as error:
        sys.exit(str(error))
    print("compose, Prometheus and GitHub take their files")


if __name__ == "__main__":
    main()
