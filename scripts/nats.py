"""`deploy/nats/nats.conf`: the users and permissions of a deployment's NATS server, from the contracts."""

from __future__ import annotations

from pathlib import Path

from phronesis_bus.permissions import deployment_config

from .tree import GENERATED, ROOT

PATH = ROOT / "deploy" / "nats" / "nats.conf"


def documents() -> dict[Path, str]:
    """The file."""
    return {PATH: f"# {GENERATED}\n{deployment_config()}"}
