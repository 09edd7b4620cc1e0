"""What the chart tells the programs, compared with what they read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from phronesis_bus import BusSettings
from phronesis_bus.settings import TelemetrySettings
from phronesis_contracts.service import SERVICES
from phronesis_gateway.settings import GatewaySettings, McpSettings
from phronesis_graph.settings import GraphSettings
from phronesis_postgres import PostgresSettings
from scripts.readmes import settings
from scripts.tree import ROOT
from tests.support.chart import BUILD_SECONDS, rendered, secret_keys, workload, workloads

pytestmark = [pytest.mark.verify, pytest.mark.timeout(BUILD_SECONDS)]

SETS = ("small", "production", "managed")
POSTGRES = ("gateway", "orchestrator", "memory", "instructions", "migrate")
TAKEN: dict[str, tuple[type[BaseSettings], ...]] = {
    "gateway": (BusSettings, TelemetrySettings, GatewaySettings, McpSettings, PostgresSettings),
    "orchestrator": (BusSettings, TelemetrySettings, PostgresSettings),
    "memory": (BusSettings, TelemetrySettings, PostgresSettings),
    "instructions": (BusSettings, TelemetrySettings, PostgresSettings),
    "graph": (BusSettings, TelemetrySettings, GraphSettings),
    "media": (BusSettings, TelemetrySettings),
    "declare": (BusSettings, TelemetrySettings),
}


def known(program: str) -> set[str]:
    """The variables that a program's packages read."""
    packages = [ROOT / "libs" / "bus"]
    packages += [ROOT / "libs" / "postgres"] if program in POSTGRES else []
    packages += [ROOT / "services" / program] if program in SERVICES else []
    return {setting.variable for package in packages for setting in settings(package)}


def told(values: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Program, container and variables of everything that is ours."""
    for found in workloads(values):
        if found.component in (*SERVICES, "declare", "migrate"):
            for container in found.containers:
                yield found.component, container["name"], found.variables(container["name"])


@pytest.mark.parametrize("values", SETS)
def test_every_variable_is_a_setting_of_the_program_that_gets_it(values: str) -> None:
    unknown = {name for program, _, variables in told(values) for name in variables if name not in known(program)}
    assert unknown == set()


@pytest.mark.parametrize("values", SETS)
@pytest.mark.parametrize("service", TAKEN)
def test_the_settings_take_the_values(values: str, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in workload(values, service).variables(service).items():
        monkeypatch.setenv(name, value)
    for kind in TAKEN[service]:
        kind()


@pytest.mark.parametrize("values", SETS)
def test_every_file_that_a_variable_names_is_mounted(values: str) -> None:
    for found in workloads(values):
        volumes = {volume["name"]: volume for volume in found.pod.get("volumes", ())}
        for container in found.containers:
            files = set(_mounted(container, volumes))
            named = {
                v for v in found.variables(container["name"]).values() if v.startswith(("/run/secrets/", "/etc/phronesis/"))
            }
            assert {path for path in named if not any(f"{file}/".startswith(f"{path}/") for file in files)} == set()


def _mounted(container: Any, volumes: dict[str, Any]) -> Iterator[str]:
    for mount in container["volumeMounts"]:
        volume = volumes.get(mount["name"], {})
        source = volume.get("secret") or volume.get("configMap") or {}
        yield from (f"{mount['mountPath']}/{item['path']}" for item in source.get("items", ()))


def test_each_program_is_given_the_keys_it_needs_and_no_others() -> None:
    every = ("models.groq=true", "models.model=true", "models.embedding=true")
    given = {found.component: sorted(set(secret_keys(found.object, "phronesis"))) for found in workloads("small", *every)}
    trust = ["trust-gateway.pem", "trust-memory.pem", "trust-orchestrator.pem"]
    assert given == {
        "gateway": sorted(["gateway.key", "nats-gateway.password", "postgres-gateway.password", "signing-gateway.key", *trust]),
        "orchestrator": sorted(
            [
                *("calendar.key", "groq.key", "model.key", "nats-orchestrator.password"),
                *("postgres-orchestrator.password", "signing-orchestrator.key", *trust),
            ]
        ),
        "memory": sorted(
            ["embedding.key", "nats-memory.password", "postgres-memory.password", "signing-memory.key", "weaviate.key", *trust]
        ),
        "instructions": sorted(["nats-instructions.password", "postgres-instructions.password", *trust]),
        "graph": sorted(["nats-graph.password", "neo4j.password", *trust]),
        "media": sorted(["groq.key", "nats-media.password", *trust]),
        "declare": sorted(["admission.pem", "nats-declare.password", *trust]),
        "migrate": sorted(["postgres.password", *(f"postgres-{name}.password" for name in POSTGRES if name != "migrate")]),
        "nats": ["nats-users.conf"],
        "postgres": ["postgres.password"],
        "neo4j": ["neo4j.password"],
        "weaviate": ["weaviate.key"],
    }


def test_a_key_that_is_a_setting_has_the_setting_s_name() -> None:
    every = ("models.groq=true", "models.model=true", "models.embedding=true")
    given: dict[str, set[str]] = {}
    for found in workloads("small", *every):
        volumes = {volume["name"]: volume for volume in found.pod.get("volumes", ())}
        files = {path.rpartition("/")[2] for container in found.containers for path in _mounted(container, volumes)}
        given |= {found.component: named} if (named := {name for name in files if name.isupper()}) else {}
    assert given == {
        "orchestrator": {"GROQ_API_KEY", "ORCHESTRATOR_CALENDAR_KEY", "ORCHESTRATOR_MODEL_KEY"},
        "memory": {"MEMORY_EMBEDDING_KEY"},
        "media": {"GROQ_API_KEY"},
    }
    assert {name for service, names in given.items() for name in names if name not in known(service)} == set()


def test_every_key_of_the_secret_is_in_the_readme() -> None:
    every = ("models.groq=true", "models.model=true", "models.embedding=true")
    used = {key for found in rendered("small", *every) for key in secret_keys(found, "phronesis")}
    readme = (ROOT / "deploy" / "helm" / "README.md").read_text()
    section = readme.partition("## The Secret")[2].partition("\n## ")[0]
    said = {re.sub(r"<.*?>", "*", key) for key in re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)}
    assert {re.sub(r"^(nats|postgres|signing|trust)-(?!users)\w+\.", r"\1-*.", key) for key in used} == said
