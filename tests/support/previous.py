"""The version before this one: the commit that `tests/e2e/previous_version.txt` names, as a tree that can be run."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = ROOT / "tests" / "e2e" / "previous_version.txt"
_FOLDERS = ("libs", "services")


def previous_tree(folder: Path) -> Path:
    """The libraries and services of that commit, in a folder that is made.

    Raises:
        AssertionError: the repository does not hold the commit.
    """
    commit = NAMED.read_text().strip()
    made = _git("archive", commit, *_FOLDERS)
    assert made.returncode == 0, (
        f"commit {commit}, which {NAMED.name} names, is not in this repository: {made.stderr.decode().strip()}; "
        "a shallow clone has to be completed: git fetch --unshallow"
    )
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def python_path(tree: Path) -> str:
    """`PYTHONPATH` with which a process runs the code of this tree, on the packages of others that are installed."""
    return ":".join(str(package) for folder in _FOLDERS for package in sorted((tree / folder).iterdir()) if package.is_dir())


def is_ancestor() -> bool:
    """Whether what is checked out here came after that commit."""
    return _git("merge-base", "--is-ancestor", NAMED.read_text().strip(), "HEAD").returncode == 0


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, timeout=60)
