"""The settings."""

from __future__ import annotations

from pathlib import Path

import phronesis.memory
from phronesis.memory.settings import MemorySettings

README = Path(phronesis.memory.__path__[0]).parents[1] / "README.md"


def test_every_setting_stands_in_the_readme_with_its_default() -> None:
    text = README.read_text()
    for name, field in MemorySettings.model_fields.items():
        assert f"`MEMORY_{name.upper()}` | `{field.default!r}` |" in text, name


def test_there_are_at_most_fifteen() -> None:
    assert len(MemorySettings.model_fields) <= 15
