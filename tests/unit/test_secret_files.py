"""Secrets as files: what a file says, and what a variable says before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr
from pydantic_settings import BaseSettings

from phronesis_bus import Tracing
from phronesis_media.settings import MediaSettings
from phronesis_memory.settings import MemorySettings
from phronesis_orchestrator.__main__ import open_reasoner
from phronesis_orchestrator.models.reasoner import Rules
from phronesis_orchestrator.settings import CalendarSettings, ModelSettings

KEYS = [
    (MediaSettings, "GROQ_API_KEY", "groq_api_key"),
    (ModelSettings, "GROQ_API_KEY", "groq_api_key"),
    (ModelSettings, "ORCHESTRATOR_MODEL_KEY", "model_key"),
    (CalendarSettings, "ORCHESTRATOR_CALENDAR_KEY", "calendar_key"),
    (MemorySettings, "MEMORY_EMBEDDING_KEY", "embedding_key"),
]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, variable, _ in KEYS:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("settings", "variable", "field"), KEYS)
def test_a_key_is_read_from_the_file_with_its_variable_s_name(
    tmp_path: Path, settings: type[BaseSettings], variable: str, field: str
) -> None:
    (tmp_path / variable).write_text("a key of the file\n")
    assert getattr(settings(_secrets_dir=tmp_path), field) == SecretStr("a key of the file")


@pytest.mark.parametrize(("settings", "variable", "field"), KEYS)
def test_a_variable_goes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: type[BaseSettings], variable: str, field: str
) -> None:
    (tmp_path / variable).write_text("a key of the file\n")
    monkeypatch.setenv(variable, "a key of the variable")
    assert getattr(settings(_secrets_dir=tmp_path), field) == SecretStr("a key of the variable")


async def test_an_empty_key_file_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "GROQ_API_KEY").touch()
    async with open_reasoner(ModelSettings(_secrets_dir=tmp_path), Tracing("orchestrator")) as thinks:
        assert isinstance(thinks, Rules)
