"""What the chart holds of elsewhere: whose consumers are whose, the files of `deploy/nats`, and the alerts.

A chart cannot read a file outside its own folder.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from phronesis_bus.topology import consumers
from phronesis_contracts.service import SERVICES

from . import nats
from .tree import GENERATED, ROOT

CHART = ROOT / "deploy" / "helm" / "phronesis"
NATS = ROOT / "deploy" / "nats"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"


def documents() -> dict[Path, str]:
    """The files by path."""
    files = {path: path.read_text() for path in sorted(NATS.glob("*.conf"))} | nats.documents()
    copies = {CHART / "charts" / "nats" / "files" / path.name: text for path, text in files.items()}
    alerts = f"# {GENERATED}\n{ALERTS.read_text()}"
    return {CHART / "files" / "consumers.yaml": _consumers(), CHART / "files" / "alerts.yaml": alerts, **copies}


def _consumers() -> str:
    found: dict[str, list[dict[str, str]]] = {name: [] for name in SERVICES}
    for stream, config in consumers(ack_wait=1):
        durable = config["durable_name"]
        found[durable.partition("-")[0]].append({"stream": stream, "consumer": durable})
    return f"# {GENERATED}\n" + yaml.safe_dump(found, sort_keys=False)
