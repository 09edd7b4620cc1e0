"""What `make dist` builds, installed into an environment that has nothing else: it runs without the repository."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from phronesis_local import postgres
from phronesis_local.layout import DataDir, marked_processes
from phronesis_local.stack import stop_stack
from scripts import distribution
from scripts.tree import DOCS, ROOT
from tests.support.pages import Shell, follow

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(1200)]
UV = Path(sys.executable).with_name("uv")
PYTHON = Path(sys.base_prefix) / "bin"
_REGISTRIES = re.compile(r"(PIP|UV|NPM)_|SSL_|LANG|LC_|TMPDIR|(https?|no)_proxy", re.IGNORECASE)
"""Variables that say how packages are had; no other one of the environment gets through."""


@dataclass(frozen=True)
class Place:
    """An empty folder, a home, and the variables of a shell that knows nothing of the repository."""

    folder: Path
    home: Path
    environment: Mapping[str, str]

    @property
    def data(self) -> DataDir:
        return DataDir(self.home / ".phronesis")

    async def run(self, *command: str | Path) -> str:
        """What a command prints on stdout."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=dict(self.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
        assert process.returncode == 0, f"{command}\n{out.decode()}\n{errors.decode()}"
        return out.decode()

    def processes(self) -> list[psutil.Process]:
        return [process for _, process in marked_processes(self.data)] + postgres.workers(self.data.postgres)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is published, built anew."""
    folder = tmp_path_factory.mktemp("published") / "dist"
    distribution.build(folder)
    return folder


def place(folder: Path, dist: Path) -> Place:
    """An empty folder, with `dist` as the only way to the packages of Phronesis."""
    home, empty = folder / "home", folder / "empty"
    home.mkdir(parents=True)
    empty.mkdir()
    constraints = str(dist / distribution.CONSTRAINTS)
    programs = [str(Path(found).parent) for found in (shutil.which("node"),) if found]
    environment = {name: value for name, value in os.environ.items() if _REGISTRIES.match(name)}
    environment |= {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(PYTHON), *programs, "/usr/bin", "/bin"]),
        "DIST": str(dist),
        "PIP_CONSTRAINT": constraints,
        "UV_CONSTRAINT": constraints,
        "UV_PYTHON_DOWNLOADS": "never",
        "PIP_NO_COMPILE": "1",
    }
    for variable, cache in (("PIP_CACHE_DIR", "pip"), ("UV_CACHE_DIR", "uv")):
        environment.setdefault(variable, str(Path.home() / ".cache" / cache))
    return Place(empty, home, environment)


@asynccontextmanager
async def stopped_at_last(where: Place) -> AsyncIterator[None]:
    """A block after which nothing of the place's stack runs."""
    try:
        yield
    finally:
        if where.data.root.exists():
            await asyncio.to_thread(stop_stack, where.data)


@pytest.fixture(scope="module")
async def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """A stack that runs from an environment with `phronesis[local]` and nothing else."""
    where = place(tmp_path_factory.mktemp("installed"), dist)
    environment = where.folder / ".venv"
    await where.run(UV, "venv", "--quiet", "--python", PYTHON / "python3", environment)
    install = ["pip", "install", "--quiet", "--python", environment / "bin" / "python", "--find-links", dist]
    await where.run(UV, *install, "phronesis[local]")
    async with stopped_at_last(where):
        await where.run(command(where), "up", "--detach", "--port", "0")
        yield where


def command(where: Place) -> Path:
    return where.folder / ".venv" / "bin" / "phronesis"


async def test_the_installed_command_tells_the_version_of_the_repository(installed: Place) -> None:
    assert (await installed.run(command(installed), "--version")).strip() == distribution.version()


async def test_an_installed_program_finds_what_it_has_stored(installed: Place) -> None:
    await installed.run(command(installed), "memory", "add", "The launch is on 4 May.", "--speaker", "Ada")
    found = await installed.run(command(installed), "memory", "search", "when is the launch", "--json")
    assert [one["text"] for one in json.loads(found)["memories"]] == ["The launch is on 4 May."]


async def test_the_sample_and_the_backups_come_along(installed: Place) -> None:
    await installed.run(command(installed), "load", "portfolio", "--no-wait")
    answer = json.loads(
        await installed.run(command(installed), "ask", "How many projects are there?", "--agent", "noor", "--json")
    )
    assert "244" in answer["user_response"], answer
    await installed.run(command(installed), "backup", "all.tar")
    assert (installed.folder / "all.tar").stat().st_size > 100_000


async def test_an_integration_installs_with_its_framework_and_finds_the_running_stack(installed: Place, dist: Path) -> None:
    for name in ("langgraph", "openai-agents", "pydantic-ai"):
        environment = installed.folder / f".venv-{name}"
        await installed.run(UV, "venv", "--quiet", "--python", PYTHON / "python3", environment)
        python = environment / "bin" / "python"
        await installed.run(UV, "pip", "install", "--quiet", "--python", python, "--find-links", dist, f"phronesis-{name}")
        await installed.run(python, "-c", f"import phronesis_{name.replace('-', '_')}")
    program = (
        "from phronesis_langgraph import PhronesisStore; store = PhronesisStore(); "
        "store.put(('n',), 'k', {'v': 1}); print(store.get(('n',), 'k').value)"
    )
    assert await installed.run(installed.folder / ".venv-langgraph" / "bin" / "python", "-c", program) == "{'v': 1}\n"


async def test_nothing_that_runs_is_of_the_repository(installed: Place) -> None:
    await installed.run(command(installed), "status")
    running = installed.processes()
    seen = {path for process in running for path in paths(process)}
    assert len(running) > 9
    assert any(path.is_relative_to(installed.folder) for path in seen)
    assert sorted(path for path in seen if path.is_relative_to(ROOT)) == []


def paths(process: psutil.Process) -> Iterator[Path]:
    """The files that a process is made of, works in, or was told of."""
    yield from (Path(process.exe()), Path(process.cwd()))
    yield from (Path(each.path) for each in process.memory_maps() if each.path.startswith("/"))
    yield from (Path(each.path) for each in process.open_files())
    yield from (Path(each) for each in process.cmdline() if each.startswith("/"))
    yield from (Path(each) for value in process.environ().values() for each in value.split(os.pathsep) if each.startswith("/"))


async def test_the_first_command_of_the_readme_starts_a_stack(dist: Path, tmp_path: Path) -> None:
    where = place(tmp_path, dist)
    shutil.copytree(dist, where.folder / "dist")
    [line] = re.findall(r"^ *(uvx .* phronesis) up$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    environment = {**where.environment, "PATH": f"{UV.parent}:{where.environment['PATH']}"}
    async with stopped_at_last(where), Shell(where.folder, environment) as shell:
        code, printed = await shell.run(f"{line} --version")
        assert (code, printed.splitlines()[-1]) == (0, distribution.version()), printed
        code, printed = await shell.run(f"{line} up --detach --port 0")
        assert (code, "ready in" in printed) == (0, True), printed
        assert await shell.run(f"{line} down") == (0, "stopped\n")


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node 20 with npm")
async def test_a_reader_of_the_start_page_gets_what_it_shows(dist: Path, tmp_path: Path) -> None:
    where = place(tmp_path, dist)
    page = (DOCS / "tutorials" / "start.md").read_text("utf-8")
    async with stopped_at_last(where), Shell(where.folder, where.environment) as shell:
        await follow(page, shell, where.folder)
    assert where.processes() == []
