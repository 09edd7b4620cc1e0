"""Build what is published into `dist/`: every Python package, the TypeScript client where npm is, and `constraints.txt`.

python -m scripts.distribution [--out DIR]       build
python -m scripts.distribution --version 0.2.0   write this version wherever the version stands
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .tree import ROOT

DIST = ROOT / "dist"
CONSTRAINTS = "constraints.txt"
"""The exact versions of other projects' packages that the tests ran with, as a constraints file of pip and uv."""
NPM = "npm"
"""The folder of the TypeScript client's archive: pip would take one beside the wheels for a Python package."""
TYPESCRIPT = ROOT / "clients" / "typescript"
INTEGRATIONS = "integrations/*/pyproject.toml"
"""Packages outside the workspace, so that its lock does not have the frameworks that they are for."""
MEMBERS = (
    "libs/*/pyproject.toml",
    "services/*/pyproject.toml",
    "deploy/*/pyproject.toml",
    "samples/pyproject.toml",
    INTEGRATIONS,
)
_PROJECT = r'^version = "(.+)"$'
_INNER = r'"phronesis[\w-]*(?:\[[\w,]+\])?==([^"]+)"'
PLACES = {
    "pyproject.toml": _PROJECT,
    **dict.fromkeys(MEMBERS, f"{_PROJECT}|{_INNER}"),
    "libs/bus/phronesis_bus/tracing.py": r'^VERSION = "(.+)"$',
    "clients/typescript/package.json": r'^  "version": "(.+)",$',
    "clients/typescript/package-lock.json": r'"name": "phronesis",\n +"version": "(.+)"',
    "deploy/Dockerfile": r"^ARG VERSION=(.+)$",
    "deploy/helm/phronesis/**/Chart.yaml": r"\b(?:version|appVersion): ([^,\s]+)",
    "docker-compose.yml": r"\$\{PHRONESIS_VERSION:-([^}]+)\}",
    ".env.example": r"^PHRONESIS_VERSION=(.+)$",
}
"""Where the version stands: files, and what comes right before and after it."""


def version() -> str:
    """The version of all packages."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def stated(root: Path = ROOT) -> list[tuple[Path, str]]:
    """Each place where a version stands, and the version that stands there."""
    return [(path, _group(match)[0]) for path, pattern in _places(root) for match in pattern.finditer(path.read_text("utf-8"))]


def write_version(wanted: str, root: Path = ROOT) -> None:
    """Write a version wherever one stands."""
    for path, pattern in _places(root):
        text = path.read_text("utf-8")
        for match in reversed(list(pattern.finditer(text))):
            _, (start, end) = _group(match)
            text = text[:start] + wanted + text[end:]
        path.write_text(text, "utf-8")


def _places(root: Path) -> Iterator[tuple[Path, re.Pattern[str]]]:
    for glob, pattern in PLACES.items():
        for path in sorted(root.glob(glob)):
            yield path, re.compile(pattern, re.MULTILINE)


def _group(match: re.Match[str]) -> tuple[str, tuple[int, int]]:
    assert match.lastindex is not None
    return match[match.lastindex], match.span(match.lastindex)


def constraints(lock: str) -> str:
    """The versions in a lock without their hashes, which pip would then ask of our own packages too."""
    return "".join(f"{match[0].rstrip(' ' + chr(92))}\n" for match in re.finditer(r"^\S+==.*$", lock, re.MULTILINE))


def build_packages(out: Path, *options: str) -> None:
    """Build every Python package into a folder.

    Args:
        out: the folder.
        options: of `uv build`, for all packages of the workspace, which come first.

    Raises:
        subprocess.CalledProcessError: a package cannot be built.
    """
    build: list[str | Path] = [Path(sys.executable).with_name("uv"), "build", "--quiet", "--out-dir", out]
    subprocess.run([*build, *options, "--all-packages"], cwd=ROOT, check=True)
    for project in sorted(ROOT.glob(INTEGRATIONS)):
        subprocess.run([*build, *(one for one in options if one != "--clear"), project.parent], cwd=ROOT, check=True)


def build(out: Path) -> None:
    """Build everything into a folder, which is emptied first.

    Raises:
        subprocess.CalledProcessError: a package cannot be built.
    """
    build_packages(out, "--clear")
    shutil.rmtree(out / NPM, ignore_errors=True)
    (out / CONSTRAINTS).write_text(constraints((ROOT / "requirements.lock").read_text()))
    if npm := shutil.which("npm"):
        _build_typescript(npm, out / NPM)
    else:
        print("no npm: the TypeScript client is not built", file=sys.stderr)


def _build_typescript(npm: str, out: Path) -> None:
    out.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        client = Path(folder) / TYPESCRIPT.relative_to(ROOT)
        shutil.copytree(TYPESCRIPT, client, ignore=shutil.ignore_patterns("node_modules", "dist"))
        shutil.copy(ROOT / "LICENSE", client)
        described = Path("docs", "generated", "openapi.json")
        (Path(folder) / described).parent.mkdir(parents=True)
        shutil.copy(ROOT / described, Path(folder) / described)
        quiet = ["--silent", "--no-audit", "--no-fund"]
        for command in (["ci"], ["run", "build"], ["pack", "--pack-destination", str(out.resolve())]):
            subprocess.run([npm, *command, *quiet], cwd=client, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """The command."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=DIST, help="the folder; dist by default")
    arguments.add_argument("--version", help="write this version instead of building")
    given = arguments.parse_args()
    if given.version:
        write_version(given.version)
        return
    build(given.out.absolute())
    print(*sorted(path.relative_to(given.out) for path in given.out.rglob("[!.]*.*")), sep="\n")


if __name__ == "__main__":
    main()
