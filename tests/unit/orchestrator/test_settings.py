"""What the orchestrator makes of its environment."""

from __future__ import annotations

import pytest

from phronesis_orchestrator.settings import ModelSettings


def test_an_empty_key_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of variables are handed out with `GROQ_API_KEY=` in them: left empty, the rules answer and no model is asked."""
    monkeypatch.setenv("GROQ_API_KEY", "")
    monkeypatch.setenv("ORCHESTRATOR_MODEL_URL", "")
    settings = ModelSettings()
    assert (settings.groq_api_key, settings.model_url) == (None, None)
