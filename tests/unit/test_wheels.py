"""The wheels of the SDK and of the contracts: what they hold, and what they ask for."""

from __future__ import annotations

import re
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

LIBS = Path(__file__).parents[2] / "libs"
WHEELS = {"client": "phronesis", "contracts": "phronesis_contracts"}
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each library, built without the network."""
    folder = tmp_path_factory.mktemp("wheels")
    for library in WHEELS:
        build = [UV, "build", "--offline", "--quiet", "--wheel", "--out-dir", folder, LIBS / library]
        subprocess.run(build, check=True, timeout=60)
    return {library: next(folder.glob(f"{package}-*.whl")) for library, package in WHEELS.items()}


@pytest.mark.parametrize("library", WHEELS)
def test_a_wheel_holds_its_package_and_nothing_else(wheels: dict[str, Path], library: str) -> None:
    package = WHEELS[library]
    sources = LIBS / library / package
    expected = {str(path.relative_to(sources.parent)) for path in sources.rglob("*") if path.suffix in (".py", ".typed")}
    with ZipFile(wheels[library]) as wheel:
        found = {name for name in wheel.namelist() if not name.endswith("/")}
    assert {name for name in found if ".dist-info/" not in name} == expected
    assert f"{package}/py.typed" in found


def _requirements(wheel: Path) -> dict[str, str]:
    with ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        stated = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    return {str(re.match(r"[\w.-]+", line)[0]): line for line in stated}  # type: ignore[index]


def test_the_contracts_ask_for_pydantic_alone(wheels: dict[str, Path]) -> None:
    assert set(_requirements(wheels["contracts"])) == {"pydantic"}


def test_the_client_asks_for_the_contracts_and_for_no_other_package_of_the_repository(wheels: dict[str, Path]) -> None:
    stated = _requirements(wheels["client"])
    assert {name for name in stated if name.startswith("phronesis")} == {"phronesis-contracts"}
    always = {name for name, line in stated.items() if "extra ==" not in line}
    assert always == {"phronesis-contracts", "httpx", "pydantic", "pydantic-settings", "pyyaml", "rich", "typer"}


def test_the_client_brings_the_command(wheels: dict[str, Path]) -> None:
    with ZipFile(wheels["client"]) as wheel:
        [entries] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
        assert "phronesis = phronesis.cli:main" in wheel.read(entries).decode()
