"""Neo4j and Weaviate from their packages, installed once into a cache folder outside the tree."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from phronesis_local import neo4j
from phronesis_local.layout import inherited_environment
from phronesis_local.loopback import free_port
from phronesis_local.processes import Child, ChildFailed

NEO4J_VERSION = "5.26.30"
"""The newest of 5.26, which is the long-term one; Java 17 runs it."""
WEAVIATE_VERSION = "1.35.2"
"""The one that the client in the lock is made for."""
_MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_NEO4J = (("org.neo4j", "neo4j"), ("org.neo4j.app", "neo4j-server"))
_WEAVIATE = "github.com/weaviate/weaviate/cmd/weaviate-server"
_LONGEST = 1800.0
"""Seconds after which an installation is given up: Weaviate is compiled, which takes two slow cores ten minutes."""


class CannotInstall(Exception):
    """A server could not be had; the text says what lacks."""


def cache() -> Path:
    """The folder of everything that is installed here."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "phronesis"


def neo4j_home() -> Path:
    """The folder whose `lib` holds Neo4j's archives, installed if it is not.

    Raises:
        CannotInstall: a program is missing, or a download failed.
    """
    home = cache() / f"neo4j-{NEO4J_VERSION}"
    _needs("java", "Neo4j runs on Java 17 or newer")
    if not home.exists():
        _needs("mvn", "Neo4j's archives come from Maven Central")
        with _only_one(home) as folder:
            if folder is not None:
                _say(f"installing Neo4j {NEO4J_VERSION} into {home} (130 MB)")
                _download_neo4j(folder)
    if not neo4j.class_archive(home).exists():
        _archive_classes(home)
    return home


def weaviate() -> Path:
    """The program `weaviate-server`, installed if it is not.

    Raises:
        CannotInstall: Go is missing, or the download or the compilation failed.
    """
    home = cache() / f"weaviate-{WEAVIATE_VERSION}"
    if not home.exists():
        _needs("go", "Weaviate is compiled by Go 1.25 or newer")
        with _only_one(home) as folder:
            if folder is not None:
                _say(f"compiling Weaviate {WEAVIATE_VERSION} into {home} (170 MB; minutes)")
                _compile_weaviate(folder)
    return home / "weaviate-server"


def _download_neo4j(folder: Path) -> None:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{NEO4J_VERSION}</version></dependency>"
        for group, name in _NEO4J
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>phronesis</groupId><artifactId>neo4j</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>\n"
    )
    command = ["mvn", "-B", "-q", "-f", str(folder / "pom.xml"), f"{_MAVEN_PLUGIN}:copy-dependencies"]
    _run([*command, "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"], {})
    if not (folder / "lib" / f"neo4j-server-{NEO4J_VERSION}.jar").exists():
        raise CannotInstall("mvn ended well and Neo4j's archives are not there")


def _archive_classes(home: Path) -> None:
    """Let a server run once, and keep its classes: each later start costs half. The archives' place may not change after it."""
    with _locked(home), tempfile.TemporaryDirectory(prefix="phronesis-neo4j-") as folder:
        archive = neo4j.class_archive(home)
        if archive.exists():
            return
        fresh = archive.with_suffix(".new")
        run = neo4j.program(
            home, Path(folder), free_port(), secrets.token_hex(8), Path(folder) / "log", inherited_environment()
        )
        command = [run.command[0], f"-XX:ArchiveClassesAtExit={fresh}", *run.command[1:]]
        asyncio.run(_once(Child(replace(run, command=command, stop_within=_LONGEST))))
        if fresh.exists():
            fresh.rename(archive)


async def _once(server: Child) -> None:
    await server.start()
    try:
        await server.wait_ready()
    except ChildFailed as error:
        raise CannotInstall(f"Neo4j does not start: {error}") from error
    finally:
        await server.stop()


def _compile_weaviate(folder: Path) -> None:
    # What the machine's own settings of Go say of vendoring, or of another system, is not meant for this.
    settings = {"GOBIN": str(folder), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "auto", "GO111MODULE": "on", "GOWORK": "off"}
    _run(["go", "install", f"{_WEAVIATE}@v{WEAVIATE_VERSION}"], {**settings, "GOOS": "", "GOARCH": ""})


def _needs(program: str, why: str) -> None:
    if shutil.which(program) is None:
        raise CannotInstall(f"`{program}` is not installed: {why}")


def _run(command: Sequence[str], settings: Mapping[str, str]) -> None:
    environment = {name: value for name, value in {**os.environ, **settings}.items() if value}
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(command, env=environment, stdout=output, stderr=output, timeout=_LONGEST)
        except subprocess.TimeoutExpired as error:
            raise CannotInstall(f"`{command[0]}` took longer than {_LONGEST:.0f} s") from error
        if done.returncode != 0:
            output.seek(0)
            last = "\n".join(output.read().splitlines()[-20:])
            raise CannotInstall(f"`{' '.join(command[:2])}` ended with code {done.returncode}:\n{last}")


@contextmanager
def _only_one(home: Path) -> Iterator[Path | None]:
    """A folder that becomes `home` when the block ends well; `None` where another process has made `home` meanwhile."""
    with _locked(home):
        if home.exists():
            yield None
            return
        fresh = home.with_name(f"{home.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)  # an earlier run may have been killed half-way
        fresh.mkdir()
        yield fresh
        fresh.rename(home)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One process at a time installs into `home`; the system lets go of the lock when the process ends in any way."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
