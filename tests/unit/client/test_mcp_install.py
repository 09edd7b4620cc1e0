"""`phronesis mcp install`: the configuration of a desktop client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phronesis.cli.app import app

SERVER = {"command": sys.executable, "args": ["-m", "phronesis", "mcp", "--tools", "memory"]}


def install(client: str, file: Path, *more: str, where: tuple[str, ...] = ()) -> int:
    return CliRunner().invoke(app, ["mcp", *where, "install", client, "--file", str(file), *more]).exit_code


@pytest.mark.parametrize(("client", "member"), [("claude", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")])
def test_what_else_stands_in_a_configuration_stays(client: str, member: str, tmp_path: Path) -> None:
    file = tmp_path / "new" / "mcp.json"
    file.parent.mkdir()
    before = {"theme": "dark", member: {"other": {"command": "x"}}}
    file.write_text(json.dumps(before))
    assert install(client, file) == 0
    assert json.loads(file.read_text()) == {"theme": "dark", member: {"other": {"command": "x"}, "phronesis": SERVER}}
    assert json.loads((file.parent / "mcp.json.before").read_text()) == before


def test_an_address_and_a_key_that_are_given_go_into_a_file_that_nobody_else_reads(tmp_path: Path) -> None:
    file = tmp_path / "new" / "mcp.json"
    assert install("cursor", file, where=("--url", "https://phronesis.example", "--key", "phr_x")) == 0
    env = {"PHRONESIS_URL": "https://phronesis.example", "PHRONESIS_KEY": "phr_x"}
    assert json.loads(file.read_text())["mcpServers"]["phronesis"]["env"] == env
    assert file.stat().st_mode & 0o077 == 0


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert install("claude", tmp_path / "mcp.json", "--dry-run") == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[]", "no json", '{"mcpServers": 1}'])
def test_a_file_that_is_no_configuration_is_left_as_it_is(text: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    assert install("claude", file) != 0
    assert file.read_text() == text
