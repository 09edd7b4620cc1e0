"""Programs that checks need and no Python package brings: built once with Go, pinned, and kept in the user's cache.

python -m scripts.tools NAME...    print each program's path; build it first where it is not there
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

_SECONDS = 1_500
"""Seconds that one build may take; promtool takes five minutes of two cores."""
_KUBERNETES = "1.37.2"
_LINKED = "k8s.io/component-base/version"
_VERSION = f"-X {_LINKED}.gitVersion=v{_KUBERNETES} -X {_LINKED}.gitMajor=1 -X {_LINKED}.gitMinor={_KUBERNETES.split('.')[1]}"


class CacheSettings(BaseSettings):
    """Where caches are, by the convention of desktops."""

    folder: Path = Field(default=Path("~/.cache"), validation_alias="XDG_CACHE_HOME")
    """The user's cache."""


@dataclass(frozen=True)
class Tool:
    """A Go program.

    `go install` refuses modules whose own file excludes or replaces others, so each is built from a module of our own.
    """

    package: str
    version: str
    staged: str = ""
    """The module, where it takes others from folders of its own repository: they are published under versions of their own."""
    linked: str = ""
    """More for the linker."""


class Missing(Exception):
    """A program could not be built."""


TOOLS = {
    "actionlint": Tool("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12"),
    "helm": Tool("helm.sh/helm/v3/cmd/helm", "v3.19.0"),
    "compose": Tool("github.com/docker/compose/v2/cmd", "v2.40.3"),
    "promtool": Tool("github.com/prometheus/prometheus/cmd/promtool", "v0.313.5"),
    "kind": Tool("sigs.k8s.io/kind", "v0.33.0"),
    "etcd": Tool("go.etcd.io/etcd/server/v3", "v3.7.3"),
    "kube-apiserver": Tool("k8s.io/kubernetes/cmd/kube-apiserver", f"v{_KUBERNETES}", "k8s.io/kubernetes", _VERSION),
    "kube-controller-manager": Tool(
        "k8s.io/kubernetes/cmd/kube-controller-manager", f"v{_KUBERNETES}", "k8s.io/kubernetes", _VERSION
    ),
}


def cache_folder() -> Path:
    """Where what is built or fetched once is kept: `phronesis` in the user's cache."""
    return CacheSettings().folder.expanduser() / "phronesis"


def place(name: str) -> Path:
    """Where a tool is, or will be once it is built."""
    return cache_folder() / "tools" / f"{name}-{TOOLS[name].version}"


def program(name: str) -> Path:
    """The path of a tool, built first where it is not there. Two callers at once build it once.

    Args:
        name: a key of `TOOLS`.

    Raises:
        Missing: there is no Go, or the build failed.
    """
    tool, built = TOOLS[name], place(name)
    if built.exists():
        return built
    cache = built.parent
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{name}.lock"):
        if not built.exists():
            for left in cache.glob(f".{name}-*"):  # of a build that was killed
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as scratch:
                _build(tool, Path(scratch)).replace(built)
    return built


def _build(tool: Tool, folder: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        raise Missing(f"{tool.package} has to be built, and there is no Go here")

    def run(*command: str) -> str:
        try:
            done = subprocess.run([go, *command], cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Missing(f"{tool.package} was not built within {_SECONDS} seconds") from error
        if done.returncode != 0:
            raise Missing(f"{tool.package}: go {command[0]} failed\n{done.stderr[-2000:]}")
        return done.stdout

    run("mod", "init", "scratch")
    if tool.staged:
        own = json.loads(run("mod", "download", "-json", f"{tool.staged}@{tool.version}"))["GoMod"]
        staged = [each["Old"]["Path"] for each in json.loads(run("mod", "edit", "-json", own))["Replace"]]
        # Version 1.37.2 of the whole is version 0.37.2 of each part.
        version = f"v0.{tool.version.partition('.')[2]}"
        run("mod", "edit", *(f"-replace={name}={name}@{version}" for name in staged))
    run("get", f"{tool.package}@{tool.version}")
    run("build", f"-ldflags=-s -w {tool.linked}".rstrip(), "-o", "program", tool.package)
    return folder / "program"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=sorted(TOOLS), metavar="NAME", help=", ".join(sorted(TOOLS)))
    try:
        for name in parser.parse_args().names:
            print(program(name), flush=True)
    except Missing as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
