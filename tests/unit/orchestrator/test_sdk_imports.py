"""Who knows a model's SDK: the clients of models, and nobody who decides anything."""

from __future__ import annotations

import re

import pytest

from scripts.tree import ROOT

_SDK = re.compile(
    r'^\s*(?:import|from)\s+(?:groq|openai)\b|"Async(?:Groq|OpenAI)"|import_module\("(?:groq|openai)', re.MULTILINE
)
CLIENTS = {
    "services/orchestrator/phronesis_orchestrator/models/client.py",
    "services/media/phronesis_media/reading/readers.py",
}


@pytest.mark.req("D-058")
def test_a_models_sdk_is_named_by_the_clients_of_models_alone() -> None:
    """The import rules see import statements; this sees what is imported by name, too."""
    sources = [path for folder in ("libs", "services", "deploy") for path in (ROOT / folder).rglob("*.py")]
    found = [path.relative_to(ROOT) for path in sources if _SDK.search(path.read_text())]
    assert {path.as_posix() for path in found} == CLIENTS


@pytest.mark.req("D-058")
def test_the_import_rules_forbid_it_to_everybody_else() -> None:
    rules = (ROOT / ".importlinter").read_text().split("[importlinter:contract:")
    (contract,) = [rule for rule in rules if "forbidden_modules =\n    groq\n    openai\n" in rule]
    folders = [
        path for part in ("libs", "services", "deploy", "samples") for path in ROOT.glob(f"{part}/**/phronesis*/__init__.py")
    ]
    packages = {path.parent.name for path in folders}
    sources = contract.partition("source_modules =\n")[2].partition("forbidden_modules")[0].split()
    assert packages - set(sources) == {"phronesis_samples"} & packages
    allowed = re.findall(r"^    (\S+) -> ", contract, re.MULTILINE)
    assert set(allowed) <= {path.split("/", 2)[2].removesuffix(".py").replace("/", ".") for path in CLIENTS}
