"""Nobody but the graph service writes the graph."""

from __future__ import annotations

from pathlib import Path
from tomllib import loads

import pytest

from phronesis_contracts.service import SERVICES
from phronesis_gateway.settings import GatewaySettings
from phronesis_memory.settings import MemorySettings

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.req("O-354")
@pytest.mark.parametrize("service", sorted(SERVICES))
def test_the_stores_driver_is_the_graph_services_alone(service: str) -> None:
    told = loads((ROOT / "services" / service / "pyproject.toml").read_text())
    assert any(one.startswith("neo4j>") for one in told["project"]["dependencies"]) is (service == "graph")


@pytest.mark.req("O-354")
@pytest.mark.parametrize("settings", [MemorySettings, GatewaySettings])
def test_no_other_service_is_told_where_the_graph_store_is(settings: type[GatewaySettings] | type[MemorySettings]) -> None:
    assert [name for name in settings.model_fields if "graph" in name or "neo4j" in name or "bolt" in name] == []
