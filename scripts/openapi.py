"""`docs/generated/openapi.json`: every route of the gateway, from its application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from nats.aio.client import Client

from phronesis_bus import Bus, BusSettings
from phronesis_gateway.app import Parts, build_api
from phronesis_gateway.auth.keys import KeyStore, SessionStore
from phronesis_gateway.auth.users import PostgresUsers
from phronesis_gateway.settings import GatewaySettings

from .tree import GENERATED_DOCS

PATH = GENERATED_DOCS / "openapi.json"


def documents() -> dict[Path, str]:
    """The document."""
    return {PATH: json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"}


def document() -> dict[str, object]:
    """The gateway's routes; nothing is connected and no store is opened for it."""
    bus = Bus("gateway", BusSettings(signing_key_file=None, trust_dir=None), Client())
    parts = Parts(bus, cast(KeyStore, None), cast(SessionStore, None), cast(PostgresUsers, None), GatewaySettings(), {})
    found: dict[str, object] = build_api(parts).openapi()
    return found
