"""The Dockerfile, and the programs that check the deployment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phronesis_contracts.service import SERVICES
from scripts import tools
from scripts.tree import ROOT

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
STAGES = re.split(r"^(?=FROM )", DOCKERFILE, flags=re.MULTILINE)[1:]


def instructions(stage: str, name: str) -> list[str]:
    """The arguments of every instruction `name` of a stage."""
    return re.findall(rf"^{name} (.*)$", stage, re.MULTILINE)


def test_every_stage_begins_with_the_same_exact_python() -> None:
    assert [stage.split()[1] for stage in STAGES] == ["python:3.11.14-slim-trixie"] * 2


def test_what_runs_is_a_numbered_user_that_is_not_root() -> None:
    assert instructions(STAGES[-1], "USER") == ["10001:10001"]
    assert STAGES[-1].index("USER 10001:10001") > STAGES[-1].rindex("RUN ")


def test_what_runs_has_no_tools_to_build_or_install_with() -> None:
    assert re.findall(r"apt|\buv\b|gcc|curl|pip install", STAGES[-1]) == []
    assert "pip uninstall --yes --quiet setuptools wheel pip" in STAGES[-1]


def test_the_image_is_made_with_the_uv_of_the_repository() -> None:
    wanted = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert wanted is not None
    assert f" uv=={wanted[1]}\n" in STAGES[0]


def test_packages_come_as_wheels_at_the_versions_of_the_lock() -> None:
    assert "--only-binary :all: --constraints requirements.lock" in STAGES[0]


def test_an_image_is_told_what_it_is() -> None:
    assert set(re.findall(r"org\.opencontainers\.image\.(\w+)=", STAGES[-1])) == {
        "title", "description", "version", "revision", "licenses",
    }  # fmt: skip


@pytest.mark.req("C-95")
def test_every_service_has_what_the_image_starts() -> None:
    assert [s for s in SERVICES if not (ROOT / f"services/{s}/phronesis_{s}/__main__.py").exists()] == []
    assert '"/opt/phronesis/bin/start"' in instructions(STAGES[-1], "ENTRYPOINT")[0]


def test_the_context_of_the_build_is_only_what_an_image_is_made_of() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line for line in lines if line.startswith("!")} == {
        "!LICENSE", "!NOTICE", "!deploy/local", "!deploy/operations", "!libs", "!pyproject.toml", "!requirements.lock",
        "!samples", "!services",
    }  # fmt: skip
    assert "*" in lines


def test_a_tool_that_is_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    built = tmp_path / "phronesis" / "tools" / f"compose-{tools.TOOLS['compose'].version}"
    built.parent.mkdir(parents=True)
    built.touch()
    assert tools.program("compose") == built


def test_without_go_a_tool_is_missing_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tools.Missing, match="no Go"):
        tools.program("compose")
    assert [path.name for path in (tmp_path / "phronesis" / "tools").iterdir()] == ["compose.lock"]


def test_parts_that_are_published_apart_are_taken_at_the_version_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(tools.TOOLS, "part", tools.Tool("whole.example/whole/cmd/part", "v1.5.2", staged="whole.example/whole"))
    go, said = tmp_path / "go", tmp_path / "said"
    go.write_text(
        f"""#!/bin/sh
echo "$@" >> {said}
case "$*" in
    "mod download"*) echo '{{"GoMod": "/whole.mod"}}' ;;
    "mod edit -json /whole.mod") echo '{{"Replace": [{{"Old": {{"Path": "whole.example/api"}}}}]}}' ;;
    build*) touch program ;;
esac
"""
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert tools.program("part").name == "part-v1.5.2"
    assert "mod edit -replace=whole.example/api=whole.example/api@v0.5.2" in said.read_text().splitlines()
