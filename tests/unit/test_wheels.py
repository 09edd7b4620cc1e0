"""The packages as they are published: what their wheels hold and ask for, and the one version of all of them."""

from __future__ import annotations

import re
import shutil
import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from scripts import distribution, licences
from scripts.tree import ROOT

PROJECTS = {
    tomllib.loads(path.read_text())["project"]["name"]: path.parent
    for glob in distribution.MEMBERS
    for path in sorted(ROOT.glob(glob))
}
"""The folder of each distribution."""


def _package(project: str) -> str:
    return project.replace("-", "_")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each package, built without the network from its source distribution, as `make dist` does."""
    folder = tmp_path_factory.mktemp("wheels")
    distribution.build_packages(folder, "--offline")
    return {project: next(folder.glob(f"{_package(project)}-*.whl")) for project in PROJECTS}


def _metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(metadata).decode())


def _requirements(wheel: Path) -> dict[str, str]:
    stated = _metadata(wheel).get_all("Requires-Dist", [])
    return {str(re.match(r"[\w.-]+", line)[0]): line for line in stated}  # type: ignore[index]


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_holds_its_whole_package_and_nothing_else(wheels: dict[str, Path], project: str) -> None:
    package, folder = _package(project), PROJECTS[project]
    files = [path for path in (folder / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with ZipFile(wheels[project]) as wheel:
        found = {name for name in wheel.namelist() if not name.endswith("/")}
    assert {name for name in found if ".dist-info/" not in name} == {str(path.relative_to(folder)) for path in files}
    assert f"{package}/py.typed" in found


@pytest.mark.parametrize("project", PROJECTS)
def test_a_wheel_carries_the_licence_and_the_notices(wheels: dict[str, Path], project: str) -> None:
    with ZipFile(wheels[project]) as wheel:
        texts = {Path(name).name: wheel.read(name) for name in wheel.namelist() if re.search(r"/licenses/.", name)}
    assert texts == {name: (ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE")}


@pytest.mark.parametrize("project", PROJECTS)
def test_a_package_asks_for_the_others_at_its_own_version(wheels: dict[str, Path], project: str) -> None:
    ours = {name: line for name, line in _requirements(wheels[project]).items() if name in PROJECTS}
    assert [line for line in ours.values() if f"=={distribution.version()}" not in line] == []


def test_the_version_is_one_wherever_it_stands() -> None:
    assert {version for _, version in distribution.stated()} == {distribution.version()}
    assert {path.parent for path, _ in distribution.stated()} >= set(PROJECTS.values())


def test_a_new_version_is_written_wherever_it_stands(tmp_path: Path) -> None:
    places = {path.relative_to(ROOT) for path, _ in distribution.stated()}
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    distribution.write_version("2.10.0rc1", tmp_path)
    written = distribution.stated(tmp_path)
    assert {version for _, version in written} == {"2.10.0rc1"}
    assert [path.relative_to(tmp_path) for path, _ in written] == [path.relative_to(ROOT) for path, _ in distribution.stated()]


def test_the_constraints_are_the_versions_of_the_lock() -> None:
    lock = "a==1 \\\n    --hash=sha256:00\nb==2.1 ; sys_platform == 'win32' \\\n    --hash=sha256:01 \\\n    --hash=sha256:02\n"
    assert distribution.constraints(lock) == "a==1\nb==2.1 ; sys_platform == 'win32'\n"


def test_the_contracts_ask_for_pydantic_alone(wheels: dict[str, Path]) -> None:
    assert set(_requirements(wheels["phronesis-contracts"])) == {"pydantic"}


def test_the_client_asks_for_the_contracts_and_for_no_other_package_of_the_repository(wheels: dict[str, Path]) -> None:
    stated = _requirements(wheels["phronesis"])
    always = {name for name, line in stated.items() if "extra ==" not in line}
    assert always == {"phronesis-contracts", "httpx", "ijson", "pydantic", "pydantic-settings", "pyyaml", "rich", "typer"}


def test_the_extra_local_brings_the_stack_its_backups_and_the_sample(wheels: dict[str, Path]) -> None:
    local = {name for name, line in _requirements(wheels["phronesis"]).items() if "extra == 'local'" in line}
    assert local == {"phronesis-local", "phronesis-operations", "phronesis-samples"}


def test_the_client_brings_the_command(wheels: dict[str, Path]) -> None:
    with ZipFile(wheels["phronesis"]) as wheel:
        [entries] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
        assert "phronesis = phronesis.cli:main" in wheel.read(entries).decode()


@pytest.mark.parametrize(
    ("project", "framework"),
    [
        ("phronesis-langgraph", "langgraph"),
        ("phronesis-openai-agents", "openai-agents"),
        ("phronesis-pydantic-ai", "pydantic-ai-slim"),
    ],
)
def test_an_integration_asks_for_the_client_and_its_framework_within_a_range_that_the_lock_has(
    wheels: dict[str, Path], project: str, framework: str
) -> None:
    asked = _requirements(wheels[project])
    assert set(asked) == {"phronesis", framework}
    lock = (ROOT / "integrations" / "requirements.lock").read_text()
    [locked] = re.findall(rf"^{framework}==(\S+)", lock, re.MULTILINE)
    ranged = Requirement(asked[framework]).specifier
    assert locked in ranged
    assert any(bound.operator == "<" for bound in ranged)


def test_the_frameworks_are_not_part_of_the_workspaces_lock() -> None:
    locked = {one.name for one in licences.read_lock(licences.LOCK)}
    assert licences.list_frameworks() == {"langgraph", "openai-agents", "pydantic-ai-slim"}
    assert not licences.list_frameworks() & locked
