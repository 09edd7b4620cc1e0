"""The version before this one: the commit that `tests/e2e/previous_version.txt` names, in an environment of its own."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = ROOT / "tests" / "e2e" / "previous_version.txt"
_FOLDERS = ("libs", "services")
_LOCK = "requirements.lock"


def previous_tree(folder: Path) -> Path:
    """The libraries and services of that commit and its lock, in a folder that is made.

    Raises:
        AssertionError: the repository does not hold the commit.
    """
    commit = NAMED.read_text().strip()
    made = _git("archive", commit, *_FOLDERS, _LOCK)
    assert made.returncode == 0, (
        f"commit {commit}, which {NAMED.name} names, is not in this repository: {made.stderr.decode().strip()}; "
        "a shallow clone has to be completed: git fetch --unshallow"
    )
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def previous_python(tree: Path) -> Path:
    """An interpreter that runs the code of this tree: an environment below it with what its lock says.

    Packages of this version are not seen there. `uv` takes what it has in its cache, so this takes seconds.
    """
    environment = tree / ".venv"
    python = environment / "bin" / "python"
    if python.exists():
        return python
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(environment)], check=True, timeout=60)
    sync = [uv, "pip", "sync", "-q", "--python", str(python), "--require-hashes", str(tree / _LOCK)]
    subprocess.run(sync, check=True, timeout=600)
    packages = [package for folder in _FOLDERS for package in sorted((tree / folder).iterdir()) if package.is_dir()]
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "previous.pth").write_text("".join(f"{package}\n" for package in packages))
    return python


def previous_module(tree: Path, service: str) -> str:
    """The package of a service in this tree, as `python -m` takes it."""
    name = f"phronesis_{service}"
    return name if (tree / "services" / service / name).is_dir() else f"phronesis.{service}"


def is_ancestor() -> bool:
    """Whether what is checked out here came after that commit."""
    return _git("merge-base", "--is-ancestor", NAMED.read_text().strip(), "HEAD").returncode == 0


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, timeout=60)
