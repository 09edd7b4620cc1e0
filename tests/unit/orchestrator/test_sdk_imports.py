"""Who knows a model's SDK: adapters, and nobody who decides anything (D-058)."""

from __future__ import annotations

import re

import pytest

from scripts.tree import ROOT

_SDK = re.compile(
    r'^\s*(?:import|from)\s+(?:groq|openai)\b|"Async(?:Groq|OpenAI)"|import_module\("(?:groq|openai)', re.MULTILINE
)


@pytest.mark.req("D-058")
def test_a_models_sdk_is_named_by_adapters_alone() -> None:
    """The import rules see import statements; this sees what is imported by name, too."""
    sources = [path for folder in ("libs", "services", "deploy") for path in (ROOT / folder).rglob("*.py")]
    found = [path.relative_to(ROOT) for path in sources if _SDK.search(path.read_text())]
    assert "services/orchestrator/phronesis_orchestrator/models/client.py" in [path.as_posix() for path in found]
    assert [path for path in found if path.parent.name != "adapters"] == []


@pytest.mark.req("D-058")
def test_the_import_rules_forbid_it_to_everybody_else() -> None:
    rules = (ROOT / ".importlinter").read_text().split("[importlinter:contract:")
    (contract,) = [rule for rule in rules if "forbidden_modules =\n    groq\n    openai\n" in rule]
    assert "source_modules =\n    phronesis.*\n" in contract
    allowed = re.findall(r"^    (\S+) -> ", contract, re.MULTILINE)
    assert [name for name in allowed if not name.endswith(".adapters.**")] == []
