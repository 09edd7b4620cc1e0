"""The local model's packages are named in two places that have to agree."""

from __future__ import annotations

import tomllib

from tests.support.shared import ROOT

LOCAL = ROOT / "deploy" / "local"


def test_the_extra_and_what_the_lock_is_made_from_are_the_same() -> None:
    extra = tomllib.loads((LOCAL / "pyproject.toml").read_text())["project"]["optional-dependencies"]["model"]
    assert (LOCAL / "requirements-model.in").read_text().split("\n")[:-1] == extra


def test_the_model_is_not_part_of_the_workspaces_lock() -> None:
    assert "llama-cpp-python" not in (ROOT / "requirements.lock").read_text()
    assert "llama-cpp-python==" in (LOCAL / "requirements-model.lock").read_text()
